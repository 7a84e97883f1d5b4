//! What a control plane knows about the cluster: from its API, and while that is down, from its disk.

use std::collections::BTreeMap;

use kk_engine::Facts;

/// The cluster as its API shows it. Without an answer from it, only what is on disk is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClusterState {
    /// Nodes by name.
    pub nodes: BTreeMap<String, Node>,
    /// `namespace/name` of Deployments and `DaemonSets` → pods wanted and pods ready, both of the newest revision.
    pub workloads: BTreeMap<String, (u32, u32)>,
    /// `namespace/name` of `ConfigMaps`.
    pub config_maps: Vec<String>,
    /// The API answered.
    pub answered: bool,
    /// The disk says that `kubeadm init` went through to its end at some time.
    pub was_initialised: bool,
}

/// A node of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    /// Condition `Ready` is true.
    pub ready: bool,
    /// The kubelet's version: `v1.36.4`.
    pub version: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints as `key=value:Effect`.
    pub taints: Vec<String>,
}

/// Asks the disk, then the API once for everything that checks need, one line an object, fields separated by tabs.
/// `kubectl` speaks for the local administrator; it gives up after two seconds, because a probe must not wait for a
/// broken cluster.
///
/// On disk: the last phase of `kubeadm init`, kubelet-finalize, lets `kubelet.conf` name the certificate that the kubelet
/// renews. Where that is turned off, there is the note that this program writes after its init.
pub(crate) const QUERY: &str = r#"if [ -e /etc/kubernetes/kubekey/cluster.yaml ] || grep -qs kubelet-client-current.pem /etc/kubernetes/kubelet.conf; then echo initialised; fi
[ ! -e /etc/kubernetes/admin.conf ] || KUBECACHEDIR=$PWD/cache kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 2s \
get nodes,deployments,daemonsets,configmaps -A -o go-template='{{range .items}}{{.kind}}{{"\t"}}{{.metadata.namespace}}/{{.metadata.name}}{{"\t"}}{{if eq .kind "Node"}}{{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}{{"\t"}}{{.status.nodeInfo.kubeletVersion}}{{"\t"}}{{range $k, $v := .metadata.labels}}{{$k}}={{$v}} {{end}}{{"\t"}}{{range .spec.taints}}{{.key}}{{if .value}}={{.value}}{{end}}:{{.effect}} {{end}}{{else if eq .kind "Deployment"}}{{.spec.replicas}}{{"\t"}}{{if eq .status.observedGeneration .metadata.generation}}{{with .status.availableReplicas}}{{.}}{{else}}0{{end}}{{else}}0{{end}}{{else if eq .kind "DaemonSet"}}{{.status.desiredNumberScheduled}}{{"\t"}}{{if eq .status.observedGeneration .metadata.generation}}{{with .status.numberAvailable}}{{.}}{{else}}0{{end}}{{else}}0{{end}}{{end}}{{"\n"}}{{end}}end{{"\n"}}' || :"#;

impl ClusterState {
    /// What a control plane has answered; nothing when it was not asked.
    pub(crate) fn of(facts: &Facts) -> Self {
        facts.values.get("cluster").map(|answer| Self::parse(answer)).unwrap_or_default()
    }

    /// Reads the answer to [`QUERY`]. A cut answer of the API counts as none.
    pub(crate) fn parse(text: &str) -> Self {
        let mut state = Self::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            match fields.as_slice() {
                ["initialised"] => state.was_initialised = true,
                ["end"] => state.answered = true,
                ["Node", name, ready, version, labels, taints] => {
                    state.nodes.insert(bare(name).to_owned(), node(ready, version, labels, taints));
                }
                ["Deployment" | "DaemonSet", name, wanted, ready] => {
                    let number = |text: &str| text.parse().unwrap_or(0);
                    state.workloads.insert((*name).to_owned(), (number(wanted), number(ready)));
                }
                ["ConfigMap", name, ..] => state.config_maps.push((*name).to_owned()),
                _ => {}
            }
        }
        if state.answered {
            state
        } else {
            Self { was_initialised: state.was_initialised, ..Self::default() }
        }
    }

    /// Whether a workload exists and all its pods are ready.
    pub(crate) fn is_available(&self, workload: &str) -> bool {
        self.workloads.get(workload).is_some_and(|(wanted, ready)| ready >= wanted)
    }

    /// Whether `kubeadm init` went through to its end: its last phases leave these two behind. An API that is down has
    /// no say: then it is the disk's.
    pub(crate) fn is_initialised(&self) -> bool {
        if !self.answered {
            return self.was_initialised;
        }
        ["kube-system/kubeadm-config", "kube-public/cluster-info"]
            .iter()
            .all(|name| self.config_maps.iter().any(|found| found == name))
    }
}

/// The name of an object without a namespace, which the template prints as `<no value>/name`.
fn bare(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "Node\t<no value>/node1\tTrue\tv1.36.4\tkubernetes.io/os=linux a= \tx=y:NoSchedule z:NoExecute \n\
        Deployment\tkube-system/coredns\t2\t1\nDaemonSet\tkube-flannel/kube-flannel-ds\t3\t3\n\
        ConfigMap\tkube-system/kubeadm-config\t\nConfigMap\tkube-public/cluster-info\t\nend\n";

    #[test]
    fn reads_an_answer() {
        let state = ClusterState::parse(ANSWER);
        assert!(state.answered && state.is_initialised());
        assert!(state.nodes["node1"].ready);
        assert_eq!(state.nodes["node1"].labels["a"], "");
        assert_eq!(state.nodes["node1"].taints, ["x=y:NoSchedule", "z:NoExecute"]);
        assert!(!state.is_available("kube-system/coredns"));
        assert!(state.is_available("kube-flannel/kube-flannel-ds"));
    }

    #[test]
    fn a_cut_answer_counts_as_none() {
        assert_eq!(
            ClusterState::parse(ANSWER.trim_end().strip_suffix("end").unwrap()),
            ClusterState::default()
        );
    }

    #[test]
    fn the_disk_decides_only_while_the_api_is_silent() {
        let without = "Node\t<no value>/node1\tTrue\tv1.36.4\t\t\nend\n";
        for (answer, initialised) in [
            ("", false),
            ("initialised\n", true),
            ("initialised\nConfigMap\tkube-system/kubeadm-config\t\n", true),
            (without, false),
            (&format!("initialised\n{without}"), false),
            (ANSWER, true),
        ] {
            assert_eq!(ClusterState::parse(answer).is_initialised(), initialised, "{answer}");
        }
    }
}
