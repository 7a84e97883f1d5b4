//! Builds the manifests of KubeSphere: the operator as in `deploy/ks-installer`, with its image, and the `ClusterConfiguration`
//! with values that only kk knows.

use std::fmt::Write as _;

use kk_config::KubeSphere as Wanted;
use serde_json::{Map, Value, json};

use super::NAMESPACE;
use crate::{
    base::{
        error::BuildError,
        requirements::{Manifest, Object},
        yaml,
    },
    capabilities::etcd::{METRICS_PORT, watches_members},
    model::inputs::Inputs,
};

/// The same files serve for an installation without kk.
const DEFINITION: &str = include_str!("../../../../../deploy/ks-installer/crd.yaml");
const OPERATOR: &str = include_str!("../../../../../deploy/ks-installer/ks-installer.yaml");
/// The label and the taint of control planes (Kubernetes, `cmd/kubeadm/app/constants`).
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// The annotation that permits kk to change the object.
pub(super) const DEPLOYED_BY: &str = "installer.kubesphere.io/deployed-by";
pub(super) const KK: &str = "kk";
const RIGHTS: [&str; 2] = ["ks-installer-look", "ks-installer-change"];

/// The manifest of the operator. Its file contains the objects of the operator; its note also contains the
/// `ClusterConfiguration`, so that every change is detected.
pub(super) fn manifest(inputs: &Inputs, wanted: &Wanted, image: &str) -> Result<Manifest, BuildError> {
    let (mut file, mut objects) = (String::new(), Vec::new());
    for mut object in [DEFINITION, OPERATOR].into_iter().flat_map(documents).collect::<Result<Vec<_>, _>>()? {
        if object["kind"] == "Deployment" {
            place(&mut object, image, &inputs.installer.revision());
        }
        objects.push(name_of(&object));
        // JSON is YAML.
        let _ = writeln!(file, "---\n{object}");
    }
    let role = |name| Object::new("rbac.authorization.k8s.io/v1", "ClusterRole", "", name);
    objects.extend(RIGHTS.map(role));
    let configuration = configuration(inputs, wanted);
    objects.push(name_of(&configuration));
    let version = wanted.version.as_deref().unwrap_or("any version");
    let note = format!("# {version}\n{file}---\n{configuration}\n");
    Ok(Manifest { name: "kubesphere", note, file, objects, made_by_init: false, command: None })
}

/// Runs the operator only on control planes, where its image is. It may change everything, so other pods should not run next to
/// it.
fn place(deployment: &mut Value, image: &str, revision: &str) {
    let pod = &mut deployment["spec"]["template"]["spec"];
    pod["nodeSelector"] = json!({ CONTROL_PLANE: "" });
    pod["tolerations"] = json!([{ "key": CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule" }]);
    let container = &mut pod["containers"][0];
    container["image"] = image.into();
    container["env"] = json!([{ "name": "KS_INSTALLER_REVISION", "value": revision }]);
}

/// The `ClusterConfiguration` of the file, with values that the file leaves to kk.
pub(super) fn configuration(inputs: &Inputs, wanted: &Wanted) -> Value {
    let mut spec = Value::Object(wanted.configuration.clone());
    let members = inputs.spec.etcd_hosts().into_iter().map(|host| host.internal_address.to_string());
    let members = members.collect::<Vec<_>>().join(",");
    // The sample files of KubeSphere contain this value, which is not meant literally.
    if spec["etcd"]["endpointIps"] == "localhost" {
        spec["etcd"]["endpointIps"] = Value::Null;
    }
    let mut etcd = json!({ "endpointIps": members, "port": inputs.spec.etcd.port, "tlsEnable": true });
    if watches_members(inputs.spec, wanted) {
        // The sample files set the port and TLS for clients of etcd.
        for (key, value) in [("port", METRICS_PORT.into()), ("tlsEnable", false.into())] {
            (spec["etcd"][key], etcd[key]) = (Value::Null, value);
        }
    }
    for (key, value) in etcd.as_object().into_iter().flatten() {
        set_missing(&mut spec["etcd"], key, Some(value.clone()));
    }
    let registry = &inputs.spec.registry;
    let private = wanted.registry.as_ref().or(registry.private_registry.as_ref());
    set_missing(&mut spec, "local_registry", private.map(|name| name.as_str().into()));
    let namespace = registry.namespace_override.as_ref().filter(|_| wanted.registry.is_none());
    set_missing(&mut spec, "namespace_override", namespace.map(|name| name.as_str().into()));
    json!({
        "apiVersion": "installer.kubesphere.io/v1alpha1",
        "kind": "ClusterConfiguration",
        "metadata": { "name": "ks-installer", "namespace": NAMESPACE, "annotations": { DEPLOYED_BY: KK } },
        "spec": spec,
    })
}

fn set_missing(into: &mut Value, key: &str, value: Option<Value>) {
    if into.is_null() {
        *into = Map::new().into();
    }
    let (Some(map), Some(value)) = (into.as_object_mut(), value) else { return };
    let is_said = map.get(key).is_some_and(|said| !said.is_null() && said != "");
    if !is_said {
        map.insert(key.to_owned(), value);
    }
}

fn documents(text: &str) -> impl Iterator<Item = Result<Value, BuildError>> {
    text.split("\n---").map(|document| {
        yaml::parse(document).map_err(|why| {
            BuildError::local(
                format!("a manifest of ks-installer in kk is broken: {why}"),
                "please report it",
            )
        })
    })
}

fn name_of(object: &Value) -> Object {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    Object {
        api_version: text(&object["apiVersion"]),
        kind: text(&object["kind"]),
        namespace: text(&metadata["namespace"]),
        name: text(&metadata["name"]),
    }
}
