//! Computes the permissions that a payload needs, as two `ClusterRole`s: one to read, one to change. None of them contains `*`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::engine::{DELETED_FOR_EXTENSIONS, LOOKED_AT_FOR_EXTENSIONS, examples};
use crate::operator::watched;
use crate::payload::Component;
use crate::render::{Inputs, RenderError, Renderer};
use crate::spec;

/// API group and resource.
type Resource = (String, String);

/// Resources that the engine reads in addition to the kinds of a payload.
const OWN: [(&str, &str); 4] = [("", "persistentvolumeclaims"), ("", "events"), ("", "nodes"), ("", "pods")];

/// Both roles for all components of a payload.
pub async fn roles(renderer: &Renderer) -> Result<Vec<Value>, RenderError> {
    let mut kinds = BTreeSet::new();
    let (mut plurals, mut required, mut deleted) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let mut traced = BTreeSet::new();
    for component in renderer.payload.components().values() {
        if component.is_recorded() {
            kinds.insert((String::new(), "Secret".to_owned()));
        }
        if component.extensions().next().is_some() {
            required.extend(LOOKED_AT_FOR_EXTENSIONS.map(owned));
            deleted.extend(DELETED_FOR_EXTENSIONS.map(owned));
        }
        required.extend(component.requires.iter().map(|one| (group_of(&one.api_version), one.kind.clone())));
        required.extend(component.waits_for.iter().map(|one| (group_of(&one.api_version), one.kind.clone())));
        traced
            .extend(component.remove.traces.iter().map(|one| (group_of(&one.api_version), one.kind.clone())));
        for object in objects(renderer, component).await? {
            let group = group_of(object["apiVersion"].as_str().unwrap_or_default());
            kinds.insert((group, object["kind"].as_str().unwrap_or_default().to_owned()));
            let names = &object["spec"]["names"];
            if let (Some(group), Some(kind), Some(plural)) =
                (object["spec"]["group"].as_str(), names["kind"].as_str(), names["plural"].as_str())
            {
                // Its objects are deleted with it, including objects of other owners.
                kinds.insert((group.to_owned(), kind.to_owned()));
                plurals.insert((group.to_owned(), kind.to_owned()), plural.to_owned());
            }
        }
    }
    let resource = |(group, kind): (String, String)| {
        let plural = plurals.get(&(group.clone(), kind.clone())).cloned().unwrap_or_else(|| plural(&kind));
        (group, plural)
    };
    let change: BTreeSet<Resource> = kinds.into_iter().map(&resource).collect();
    let deleted: BTreeSet<Resource> = deleted.into_iter().map(&resource).collect();
    let traced: BTreeSet<Resource> = traced.into_iter().map(&resource).collect();
    let mut look: BTreeSet<Resource> = change.union(&deleted).chain(&traced).cloned().collect();
    look.extend(required.into_iter().map(resource));
    look.extend(watched().map(|(api_version, kind)| (group_of(api_version), plural(kind))));
    look.extend(OWN.map(|(group, resource)| (group.to_owned(), resource.to_owned())));
    let mut changes = rules(&change, &["create", "patch", "delete"]);
    // Traces of controllers in objects of other owners.
    let only_traced: BTreeSet<Resource> = traced.difference(&change).cloned().collect();
    changes.extend(rules(&only_traced, &["patch", "delete"]));
    let mut only_deleted: BTreeSet<Resource> = deleted.difference(&change).cloned().collect();
    only_deleted.insert((String::new(), "persistentvolumeclaims".to_owned()));
    changes.extend(rules(&only_deleted, &["delete"]));
    // These verbs allow ks-installer to grant permissions that it does not have itself.
    let roles: BTreeSet<Resource> = change
        .iter()
        .filter(|(group, name)| group == "rbac.authorization.k8s.io" && !name.ends_with("bindings"))
        .cloned()
        .collect();
    changes.extend(rules(&roles, &["bind", "escalate"]));
    Ok(vec![
        role("ks-installer-look", &rules(&look, &["get", "list", "watch"])),
        role("ks-installer-change", &changes),
    ])
}

/// All objects that a component may have. The spec is unknown, so all objects that can be rendered are included.
async fn objects(renderer: &Renderer, component: &Component) -> Result<Vec<Value>, RenderError> {
    let wrong = |why| RenderError::Template { part: component.name.clone(), why };
    let generated = examples(&renderer.payload, component).map_err(wrong)?;
    let spec = spec::effective(&json!({}), &Value::Null);
    renderer.every_object(component, Inputs { spec: &spec, generated: &generated }).await
}

fn role(name: &str, rules: &[Value]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": rules,
    })
}

/// One rule for each group.
fn rules(resources: &BTreeSet<Resource>, verbs: &[&str]) -> Vec<Value> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (group, resource) in resources {
        groups.entry(group).or_default().push(resource);
    }
    let rule = |(group, resources): (&str, Vec<&str>)| {
        let mut rule = Map::new();
        rule.insert("apiGroups".to_owned(), json!([group]));
        rule.insert("resources".to_owned(), json!(resources));
        rule.insert("verbs".to_owned(), json!(verbs));
        Value::Object(rule)
    };
    groups.into_iter().map(rule).collect()
}

fn owned((group, kind): (&str, &str)) -> Resource {
    (group.to_owned(), kind.to_owned())
}

fn group_of(api_version: &str) -> String {
    api_version.split_once('/').map_or("", |(group, _)| group).to_owned()
}

/// The plural of a kind by the rules for the kinds of Kubernetes.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        _ if kind == "endpoints" => kind,
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with('s') => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::*;
    use crate::payload::build;
    use crate::render::Nodes;

    #[tokio::test]
    async fn an_extension_needs_its_plan_and_a_look_at_what_is_published() {
        let dir = TempDir::new().unwrap();
        std::fs::create_dir(dir.path().join("components")).unwrap();
        let text = "enabled: spec.a\nsources: [{extension: a}]\n";
        std::fs::write(dir.path().join("components/a.yaml"), text).unwrap();
        let payload = Arc::new(build(dir.path(), "1", "v4.1.3").unwrap());
        let (helm, kubernetes) = (PathBuf::new(), "v1.36.0".to_owned());
        let roles = roles(&Renderer { payload, helm, kubernetes, nodes: Nodes::default() }).await.unwrap();
        let of = |role: &Value, group: &str| {
            let all = role["rules"].as_array().unwrap();
            let rule = all.iter().find(|rule| rule["apiGroups"][0] == group);
            rule.map(|rule| (rule["resources"].clone(), rule["verbs"].clone()))
        };
        let change = json!(["create", "patch", "delete"]);
        assert_eq!(of(&roles[1], "kubesphere.io"), Some((json!(["installplans"]), change)));
        // Records of helm.
        let deleted = json!(["persistentvolumeclaims", "secrets"]);
        assert_eq!(of(&roles[1], ""), Some((deleted, json!(["delete"]))));
        let (seen, verbs) = of(&roles[0], "kubesphere.io").unwrap();
        assert_eq!(seen, json!(["extensions", "extensionversions", "installplans", "repositories"]));
        assert_eq!(verbs, json!(["get", "list", "watch"]));
        assert_eq!(of(&roles[0], "batch").unwrap().0, json!(["jobs"]));
    }

    #[tokio::test]
    async fn what_controllers_leave_may_be_removed() {
        let dir = TempDir::new().unwrap();
        std::fs::create_dir(dir.path().join("components")).unwrap();
        let text = "enabled: spec.a\nsources: []\nremove: {traces: [{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, deletedWith: [a]}]}\n";
        std::fs::write(dir.path().join("components/a.yaml"), text).unwrap();
        let payload = Arc::new(build(dir.path(), "1", "v3.4.1").unwrap());
        let (helm, kubernetes) = (PathBuf::new(), "v1.36.0".to_owned());
        let roles = roles(&Renderer { payload, helm, kubernetes, nodes: Nodes::default() }).await.unwrap();
        for (role, verbs) in roles.iter().zip([json!(["get", "list", "watch"]), json!(["patch", "delete"])]) {
            let may = |rule: &Value| {
                rule["verbs"] == verbs && rule["resources"].as_array().unwrap().contains(&json!("roles"))
            };
            assert!(role["rules"].as_array().unwrap().iter().any(may), "{role}");
        }
    }

    #[test]
    fn kinds_have_their_plurals() {
        for (kind, expected) in [
            ("ConfigMap", "configmaps"),
            ("NetworkPolicy", "networkpolicies"),
            ("Ingress", "ingresses"),
            ("StorageClass", "storageclasses"),
            ("Endpoints", "endpoints"),
            ("Gateway", "gateways"),
        ] {
            assert_eq!(plural(kind), expected, "{kind}");
        }
    }
}
