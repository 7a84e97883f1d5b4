//! State of the cluster, as a control plane reports it: its disk shows whether it was initialised, its API everything else.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use kk_config::{Host, Spec};
use kk_engine::{Answer, Facts, Question, question};
use serde_json::json;

use crate::base::{
    api_server,
    requirements::{Object, Requirements, Workload, probe_service},
    shell::script,
};

/// The cluster as one control plane reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClusterState {
    /// Nodes by name.
    pub nodes: BTreeMap<String, Node>,
    /// `namespace/name` of Deployments and `DaemonSets` → pods wanted and pods ready, both of the newest revision.
    pub workloads: BTreeMap<String, (u32, u32)>,
    /// `namespace/name` of static pods of control planes → whether they are ready.
    pub pods: BTreeMap<String, bool>,
    /// Objects that kk applies, by [`Object::key`] → what changes with each edit.
    pub objects: BTreeMap<String, String>,
    /// The API gave a complete answer.
    pub answered: bool,
    /// The API answered, and kubeadm's configuration is in the cluster.
    pub has_configuration: bool,
    /// The API answered, and the settings of kubelets are in the cluster.
    pub has_kubelet_configuration: bool,
    initialised: bool,
}

/// A node of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    /// Condition `Ready` is true.
    pub ready: bool,
    /// When its kubelet last reported that, in the API's time format. For 40 s after a loss of power the node is still `ready`.
    pub reported: String,
    /// Its addresses of type `InternalIP`, one of each family.
    pub addresses: Vec<String>,
    /// The kubelet's version: `v1.36.0`.
    pub version: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints as `key=value:Effect`.
    pub taints: Vec<String>,
    /// `/etc/machine-id` as its kubelet read it.
    pub machine: String,
    /// Its pod ranges, one of each family: `10.233.65.0/24`.
    pub pods: Vec<String>,
}

/// Whether `kubeadm init` or the join of a control plane finished on this host. This is a separate question that reads only the
/// disk, because the answer must not depend on the API.
///
/// The last phase of `kubeadm init`, kubelet-finalize, makes `kubelet.conf` refer to the certificate that the kubelet renews. If
/// that renewal is turned off, kk's own note counts: kk writes it after init, and renames it while it applies changed settings.
pub(crate) const INITIALISED: Question<bool> = Question::new(
    "initialised",
    "if [ -e /etc/kubernetes/kubekey/cluster.yaml ] || [ -e /etc/kubernetes/kubekey/cluster.yaml.replaced ] || grep -qs kubelet-client-current.pem /etc/kubernetes/kubelet.conf; then echo yes; else echo no; fi",
    question::yes_or_no,
);

/// The answer of the API. A truncated answer counts as no answer. Each of its two requests may take 40 seconds.
pub(crate) const API: Question<ApiAnswer> =
    Question::new("api", "echo none", ApiAnswer::parse).within(Duration::from_secs(75));

/// The answer of a host about its API.
pub(crate) enum ApiAnswer {
    /// The host has no control plane.
    NotThere,
    /// The API answered.
    Says(Api),
}

/// The answer of an API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Api {
    nodes: BTreeMap<String, Node>,
    workloads: BTreeMap<String, (u32, u32)>,
    pods: BTreeMap<String, bool>,
    objects: BTreeMap<String, String>,
    config_maps: Vec<String>,
}

/// `ConfigMaps` that the last phases of `kubeadm init` create.
const CONFIGURATION: &str = "kube-system/kubeadm-config";
const KUBELET_CONFIGURATION: &str = "kube-system/kubelet-config";
const CLUSTER_INFO: &str = "kube-public/cluster-info";

/// A template for kubectl. It prints the line of an object: its key, and a value that changes with each edit of the fields that
/// kk wrote.
///
/// - For workloads the value is the template of their pods: an autoscaler may set the number of replicas, and the status changes
///   all the time.
/// - For a definition and a `ClusterConfiguration` it is the generation, which does not change with the status either.
/// - For a `ConfigMap` it is the data: kubeadm, run by hand, writes other values into the same fields.
/// - For all other kinds it is the list of fields that kk (or kubeadm, which kk runs) owns: a client that changes a field becomes
///   its owner. Labels, annotations and finalizers that controllers add belong to the controllers.
pub(crate) const VERSION: &str = concat!(
    r#"{{.apiVersion}} {{.kind}} {{with .metadata.namespace}}{{.}}{{end}}/{{.metadata.name}}{{"\t"}}{{.metadata.uid}} "#,
    r#"{{if or (eq .kind "Deployment") (eq .kind "DaemonSet")}}{{printf "%q" .spec.template}}"#,
    r#"{{else if or (eq .kind "ClusterConfiguration") (eq .kind "CustomResourceDefinition")}}{{.metadata.generation}}"#,
    r#"{{else if eq .kind "ConfigMap"}}{{printf "%q" .data}}"#,
    r#"{{else}}{{$own := ""}}{{range .metadata.managedFields}}"#,
    r#"{{if or (eq .manager "kk") (eq .manager "kubeadm")}}{{$own = printf "%s%v" $own .fieldsV1}}{{end}}{{end}}"#,
    r#"{{with $own}}{{.}}{{else}}{{.metadata.resourceVersion}}{{end}}{{end}}"#
);

/// Namespace and name of the mirror pod of a static pod on a host.
pub(crate) fn static_pod(program: &str, host: &Host) -> (&'static str, String) {
    ("kube-system", format!("{program}-{}", host.name))
}

/// Objects in the form that `kubectl get -f` reads.
pub(crate) fn object_list<'a>(objects: impl IntoIterator<Item = &'a Object>) -> String {
    objects.into_iter().fold(String::new(), |mut text, object| {
        let Object { api_version, kind, namespace, name } = object;
        let metadata = json!({"namespace": namespace, "name": name});
        let _ =
            writeln!(text, "---\n{}", json!({"apiVersion": api_version, "kind": kind, "metadata": metadata}));
        text
    })
}

/// The question about the API of a control plane: these workloads and objects, and the static pods of all control planes. All
/// objects except the nodes are requested by name, because a cluster may have thousands of each kind. Each control plane queries
/// its own API server, because the endpoint may resolve to an API server that is down.
pub(crate) fn api_question(spec: &Spec, host: &Host, requirements: &Requirements) -> Question<ApiAnswer> {
    let settings = [CONFIGURATION, KUBELET_CONFIGURATION, CLUSTER_INFO]
        .into_iter()
        .filter_map(|name| name.split_once('/'));
    let settings: Vec<Object> =
        settings.map(|(namespace, name)| Object::new("v1", "ConfigMap", namespace, name)).collect();
    let workload = |of: Workload| {
        let (kind, name) = of.path.split_once('/')?;
        let kind = if kind == "deployment" { "Deployment" } else { "DaemonSet" };
        Some(Object::new("apps/v1", kind, of.namespace, name))
    };
    let workloads: Vec<Object> = requirements.workloads().into_iter().filter_map(workload).collect();
    // The Service that an earlier verification may have left.
    let left = [probe_service()];
    let of_host = |host: &&Host| {
        let pod = |program| {
            let (namespace, name) = static_pod(program, host);
            Object::new("v1", "Pod", namespace, &name)
        };
        requirements.static_pods().into_iter().map(pod).collect::<Vec<_>>()
    };
    let pods: Vec<Object> = spec.control_planes().iter().flat_map(of_host).collect();
    let all = settings.iter().chain(&workloads).chain(&pods).chain(&left).chain(requirements.objects());
    let mut objects: Vec<&Object> = all.collect();
    let mut seen = std::collections::BTreeSet::new();
    objects.retain(|object| seen.insert(object.key()));
    let objects = object_list(objects);
    let server = api_server::url(host);
    let variables = [("objects", objects.as_str()), ("server", server.as_str()), ("version", VERSION)];
    API.with_snippet(script(&variables, include_str!("cluster_state.sh")))
}

impl ApiAnswer {
    fn parse(text: &str) -> Option<Self> {
        if text.trim() == "none" {
            return Some(Self::NotThere);
        }
        let mut api = Api::default();
        for line in text.strip_suffix("end\n")?.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            match fields.as_slice() {
                ["Node", name, ready, version, labels, taints, reported @ ..] => {
                    let text = |at: usize| reported.get(at).copied().unwrap_or_default();
                    let addresses = text(1).split_whitespace().map(str::to_owned).collect();
                    let node = Node {
                        reported: text(0).to_owned(),
                        addresses,
                        machine: text(2).trim().to_owned(),
                        pods: text(3).split_whitespace().map(str::to_owned).collect(),
                        ..node(ready, version, labels, taints)
                    };
                    api.nodes.insert((*name).to_owned(), node);
                }
                ["Deployment" | "DaemonSet", name, wanted, ready] => {
                    let number = |text: &str| text.parse().unwrap_or(0);
                    api.workloads.insert((*name).to_owned(), (number(wanted), number(ready)));
                }
                ["Pod", name, ready] => {
                    api.pods.insert((*name).to_owned(), *ready == "True");
                }
                ["Object", key, version] => {
                    api.objects.insert((*key).to_owned(), (*version).to_owned());
                }
                ["ConfigMap", name, ..] => api.config_maps.push((*name).to_owned()),
                _ => {}
            }
        }
        Some(Self::Says(api))
    }
}

impl Api {
    fn has(&self, config_map: &str) -> bool {
        self.config_maps.iter().any(|found| found == config_map)
    }
}

impl ClusterState {
    /// The state from the answers of a control plane; empty if it was not asked.
    ///
    /// The disk decides whether the control plane was initialised. A missing answer never means "no", because `kubeadm init`
    /// would run again on a working cluster. If the disk says "no" but the API contains everything that an init creates, only the
    /// last phase of the init is missing.
    pub(crate) fn of(facts: &Facts) -> Self {
        let api = match facts.answer(&API) {
            Answer::Answered(ApiAnswer::Says(api)) => Some(api),
            _ => None,
        };
        let by_api = api.as_ref().is_some_and(|api| api.has(CONFIGURATION) && api.has(CLUSTER_INFO));
        let initialised = match facts.answer(&INITIALISED) {
            Answer::Answered(initialised) => initialised || by_api,
            Answer::Unanswered(_) => true,
            Answer::NotAsked => by_api,
        };
        let answered = api.is_some();
        let api = api.unwrap_or_default();
        let has_configuration = api.has(CONFIGURATION);
        let has_kubelet_configuration = api.has(KUBELET_CONFIGURATION);
        Self {
            nodes: api.nodes,
            workloads: api.workloads,
            pods: api.pods,
            objects: api.objects,
            answered,
            has_configuration,
            has_kubelet_configuration,
            initialised,
        }
    }

    /// Whether a workload exists and all its pods are ready.
    pub(crate) fn is_available(&self, workload: &str) -> bool {
        self.workloads.get(workload).is_some_and(|(wanted, ready)| *wanted > 0 && ready >= wanted)
    }

    /// Whether `kubeadm init` finished, or may have finished.
    pub(crate) fn is_initialised(&self) -> bool {
        self.initialised
    }

    /// The API works without the data of the cluster: its etcd is empty.
    pub(crate) fn has_lost_its_data(&self) -> bool {
        self.initialised && self.answered && !self.has_configuration && self.nodes.is_empty()
    }
}

fn node(ready: &str, version: &str, labels: &str, taints: &str) -> Node {
    Node {
        ready: ready == "True",
        version: version.to_owned(),
        labels: labels
            .split_whitespace()
            .filter_map(|label| label.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        taints: taints.split_whitespace().map(str::to_owned).collect(),
        ..Node::default()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        process::{Command, Output},
    };

    use super::*;
    use crate::{base::requirements::Ready, programs, testing};

    const ANSWER: &str = "Node\tnode1\tTrue\tv1.36.0\tkubernetes.io/os=linux a= \tx=y:NoSchedule z:NoExecute \t2026-01-02T03:04:05Z\t192.0.2.1 2001:db8::1 \tabcdef\t10.233.65.0/24 fd00::/64 \n\
        Deployment\tkube-system/coredns\t2\t1\nDaemonSet\tkube-flannel/kube-flannel-ds\t3\t3\n\
        Pod\tkube-system/kube-scheduler-node1\tTrue\nPod\tkube-system/kube-apiserver-node1\t\n\
        ConfigMap\tkube-system/kubeadm-config\t\nConfigMap\tkube-public/cluster-info\t\nend\n";

    fn state(disk: Option<&str>, api: Option<&str>) -> ClusterState {
        let mut facts = Facts::default();
        facts.time_out(&INITIALISED);
        facts.time_out(&API);
        if let Some(disk) = disk {
            facts.reply(&INITIALISED, disk);
        }
        if let Some(api) = api {
            facts.reply(&API, api);
        }
        ClusterState::of(&facts)
    }

    #[test]
    fn a_note_that_changed_settings_have_put_aside_shows_an_initialised_control_plane_too() {
        let mut probe = kk_engine::ProbeSpec::default();
        probe.ask(&INITIALISED);
        let snippet = &probe.questions.values().next().unwrap().snippet;
        for (file, answer) in
            [("other", "no\n"), ("cluster.yaml", "yes\n"), ("cluster.yaml.replaced", "yes\n")]
        {
            let directory = tempfile::tempdir().unwrap();
            let here = directory.path().display().to_string();
            std::fs::create_dir(directory.path().join("kubekey")).unwrap();
            std::fs::write(directory.path().join("kubekey").join(file), "").unwrap();
            let text = snippet.replace("/etc/kubernetes", &here);
            let output = std::process::Command::new("sh").args(["-c", &text]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), answer, "{file}");
        }
    }

    #[test]
    fn reads_an_answer() {
        let state = state(Some("yes\n"), Some(ANSWER));
        assert!(state.answered && state.is_initialised() && state.has_configuration);
        assert!(state.nodes["node1"].ready);
        assert_eq!(state.nodes["node1"].labels["a"], "");
        assert_eq!(state.nodes["node1"].taints, ["x=y:NoSchedule", "z:NoExecute"]);
        assert_eq!(state.nodes["node1"].reported, "2026-01-02T03:04:05Z");
        assert_eq!(state.nodes["node1"].addresses, ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(state.nodes["node1"].pods, ["10.233.65.0/24", "fd00::/64"]);
        assert!(!state.is_available("kube-system/coredns"));
        assert!(state.is_available("kube-flannel/kube-flannel-ds"));
        assert!(
            state.pods["kube-system/kube-scheduler-node1"] && !state.pods["kube-system/kube-apiserver-node1"]
        );
    }

    #[test]
    fn a_cut_answer_counts_as_none() {
        let cut = ANSWER.strip_suffix("end\n");
        assert_eq!(state(Some("no\n"), cut), ClusterState::default());
    }

    #[test]
    fn only_a_disk_that_says_no_allows_an_init() {
        let empty = Some("end\n");
        for (disk, api, initialised) in [
            (Some("no\n"), Some("none\n"), false),
            (Some("no\n"), None, false),
            (Some("no\n"), empty, false),
            // The init was killed in its last phase.
            (Some("no\n"), Some(ANSWER), true),
            (Some("yes\n"), None, true),
            (Some("yes\n"), empty, true),
            (Some("yes\n"), Some("none\n"), true),
            (None, None, true),
            (None, empty, true),
        ] {
            assert_eq!(state(disk, api).is_initialised(), initialised, "{disk:?} {api:?}");
        }
        assert!(state(Some("yes\n"), empty).has_lost_its_data());
        assert!(!state(Some("yes\n"), None).has_lost_its_data());
    }

    /// The line that kubectl prints for an object of kk.
    fn version(metadata: &str) -> String {
        version_with("Namespace", metadata, "")
    }

    /// The line for this kind, with these fields after the metadata.
    fn version_with(kind: &str, metadata: &str, fields: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("object.json");
        let object = format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"{kind}\", \"metadata\": {{\"name\": \"n\", \"uid\": \"u\", {metadata}}}{fields}}}"
        );
        fs::write(&file, object).unwrap();
        let words = ["label", "--local", "-o", &format!("go-template={VERSION}"), "-f"];
        let output = Command::new(programs::find("kubernetes-", "kubectl"))
            .args(words)
            .arg(&file)
            .arg("any=label")
            .env("KUBECONFIG", directory.path().join("none"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn what_controllers_add_to_an_object_is_no_change_of_it() {
        let of = |managers: &[(&str, &str)], version: u32| {
            let entry = |(manager, fields): &(&str, &str)| {
                format!(
                    "{{\"manager\": \"{manager}\", \"fieldsType\": \"FieldsV1\", \"fieldsV1\": {{\"f:metadata\": {{\"f:labels\": {{{fields}}}}}}}}}"
                )
            };
            let managers = managers.iter().map(entry).collect::<Vec<_>>().join(", ");
            version_of(&managers, version)
        };
        let ours = ("kk", "\"f:a\": {}, \"f:b\": {}");
        let applied = of(&[ours], 1);
        assert!(applied.starts_with("v1 Namespace /n\tu "), "{applied}");
        let added = of(&[ours, ("controller-manager", "\"f:kubesphere.io/namespace\": {}")], 2);
        assert_eq!(added, applied);
        let edited = of(&[("kk", "\"f:a\": {}"), ("kubectl-edit", "\"f:b\": {}")], 2);
        assert_ne!(edited, applied);
        // An object that neither kk nor kubeadm created.
        let others = |version| of(&[("helm", "\"f:a\": {}")], version);
        assert_ne!(others(1), others(2));
    }

    /// The values are in fields that kubeadm owned before.
    #[test]
    fn a_config_map_with_other_data_has_another_version() {
        let with = |mode: &str| {
            let fields = format!(", \"data\": {{\"config.conf\": \"mode: {mode}\"}}");
            let managed = "\"managedFields\": [{\"manager\": \"kubeadm\", \"fieldsType\": \"FieldsV1\", \"fieldsV1\": {\"f:data\": {\"f:config.conf\": {}}}}]";
            version_with("ConfigMap", managed, &fields)
        };
        assert_eq!(with("iptables"), with("iptables"));
        assert_ne!(with("iptables"), with("ipvs"));
    }

    fn version_of(managers: &str, resource_version: u32) -> String {
        version(&format!("\"resourceVersion\": \"{resource_version}\", \"managedFields\": [{managers}]"))
    }

    /// The result of the snippet with this script as `kubectl`.
    fn ask(kubectl: &str) -> Output {
        let directory = tempfile::tempdir().unwrap();
        let admin = directory.path().join("admin.conf");
        testing::program(directory.path(), "kubectl", kubectl);
        fs::write(&admin, "").unwrap();
        let text = script(
            &[("objects", ""), ("server", "https://192.0.2.1:6443"), ("version", VERSION)],
            include_str!("cluster_state.sh"),
        )
        .replace("/etc/kubernetes/admin.conf", admin.to_str().unwrap());
        let path = format!("{}:/usr/bin:/bin", directory.path().display());
        Command::new("sh").args(["-c", &text]).env("PATH", path).output().unwrap()
    }

    #[test]
    fn an_api_that_fails_after_it_began_has_not_answered() {
        let whole = ask("exit 0");
        assert!(whole.status.success() && whole.stdout == b"end\n");
        for kubectl in ["printf 'ConfigMap\\ta/b\\t\\n'; exit 1", "case $* in *nodes*) ;; *) exit 1 ;; esac"]
        {
            let part = ask(kubectl);
            assert!(
                !part.status.success() && !String::from_utf8_lossy(&part.stdout).contains("end"),
                "{part:?}"
            );
        }
        // The question has its own, longer time limit.
        let silent = ask("exit 124");
        assert_eq!(silent.status.code(), Some(1));
        assert_eq!(String::from_utf8_lossy(&silent.stderr), "it did not answer within 40 s\n");
    }

    #[test]
    fn every_object_is_asked_for_by_its_name() {
        let mut probe = kk_engine::ProbeSpec::default();
        let spec = crate::testing::sample("all-in-one.yaml");
        let coredns = Workload { namespace: "kube-system", path: "deployment/coredns", metrics: None };
        let requirements = Requirements {
            ready: vec![Ready::Workload(coredns), Ready::StaticPods(&["kube-scheduler"])],
            ..Requirements::default()
        };
        probe.ask(&api_question(&spec, &spec.hosts[0], &requirements));
        let text = &probe.questions["api"].snippet;
        for object in [
            r#""kind":"ConfigMap","metadata":{"namespace":"kube-public","name":"cluster-info"}"#,
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"kube-system","name":"coredns"}}"#,
            &format!(
                r#""kind":"Pod","metadata":{{"namespace":"kube-system","name":"kube-scheduler-{}"}}"#,
                spec.hosts[0].name
            ),
        ] {
            assert!(text.contains(object), "{text}");
        }
    }
}
