//! Needs of all capabilities of a cluster from the shared steps: downloads, uploads, image pulls, the API and the verification.
//! Plain data.

use std::collections::BTreeMap;

use kk_artifact::Component;
use kk_config::Host;
use kk_engine::{Entry, Question, question};

/// The images of a node, as its runtime lists them.
pub(crate) const IMAGES: Question<Vec<ListedImage>> = Question::new("images", ":", listed_images);

/// An image as the runtime of a node lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedImage {
    /// Its full name, or the digest of its configuration: containerd lists each image under both.
    pub name: String,
    /// The digest of the manifest or index that the name refers to. Queried only if a bundle specifies the digest.
    pub digest: Option<String>,
}

/// One line for each image: its name, and its digest if that was requested.
fn listed_images(printed: &str) -> Option<Vec<ListedImage>> {
    let lines = question::lines(printed)?;
    let image = |line: &String| {
        let mut words = line.split_whitespace().map(str::to_owned);
        let image = ListedImage { name: words.next()?, digest: words.next() };
        words.next().is_none().then_some(image)
    };
    lines.iter().map(image).collect()
}

/// Why nodes do not become ready, if that is among the conditions.
pub(crate) fn never_ready(conditions: &[Ready]) -> Option<&'static str> {
    conditions.iter().find_map(|ready| match ready {
        Ready::Never(why) => Some(*why),
        Ready::Workload(_) | Ready::StaticPods(_) => None,
    })
}

/// The stage by which a binary must be on a host. Uploads run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProgramStage {
    /// Before the runtime and etcd start.
    Runtime,
    /// Before `kubeadm init` and `join`.
    Join,
    /// After the nodes have joined.
    Tools,
}

/// The stage by which an image must be on a host. Pulls run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ImageStage {
    /// Static pods of a control plane.
    ControlPlane,
    /// A node does not become ready without it.
    Node,
    /// It may run on any node after the nodes have joined.
    Addon,
    /// The cluster does not need it: the user added it to a bundle.
    Own,
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// As firewalls write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// A port on which a program listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    /// Its number.
    pub number: u16,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// The program's name.
    pub program: &'static str,
}

impl Port {
    /// A TCP port.
    pub(crate) fn tcp(number: u16, program: &'static str) -> Self {
        Self { number, protocol: Protocol::Tcp, program }
    }

    /// A UDP port.
    pub(crate) fn udp(number: u16, program: &'static str) -> Self {
        Self { number, protocol: Protocol::Udp, program }
    }
}

/// Objects that are applied through the API.
pub(crate) struct Manifest {
    /// Name of its note on the control plane, and of its file in the directory of the script.
    pub name: &'static str,
    /// The text that is compared with the note, which contains what was last applied.
    pub note: String,
    /// The content of the file `NAME.yaml` in the directory of the script.
    pub file: String,
    /// The objects that the file creates. An edited or missing object is applied again.
    pub objects: Vec<Object>,
    /// Whether `kubeadm init` creates the same objects, so that a new cluster has them already.
    pub made_by_init: bool,
    /// The command that applies the file. `None` for `kubectl apply`.
    pub command: Option<&'static str>,
}

/// An object of the API by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// Empty if the kind has no namespaces.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Object {
    /// An object of Kubernetes' own.
    pub(crate) fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let [api_version, kind, namespace, name] = [api_version, kind, namespace, name].map(str::to_owned);
        Self { api_version, kind, namespace, name }
    }

    /// `apps/v1 Deployment kube-system/coredns`.
    pub(crate) fn key(&self) -> String {
        format!("{} {} {}/{}", self.api_version, self.kind, self.namespace, self.name)
    }
}

/// A condition for a complete cluster.
pub(crate) enum Ready {
    /// All pods of a Deployment or `DaemonSet` are ready.
    Workload(Workload),
    /// The static pods of these programs on every control plane.
    StaticPods(&'static [&'static str]),
    /// kk alone cannot make the cluster ready, for this reason: the user has to do something.
    Never(&'static str),
}

/// A Deployment or `DaemonSet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    /// Its namespace.
    pub namespace: &'static str,
    /// `daemonset/NAME` or `deployment/NAME`.
    pub path: &'static str,
    /// The port on which each of its pods serves metrics over HTTP. Every node queries it to check that it reaches the pods.
    pub metrics: Option<u16>,
}

/// Lines of a host's record, selected by the path or unit that they name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// The line with this path or unit.
    Exact(String),
    /// All lines whose path or unit begins with this text.
    Prefix(&'static str),
}

impl Recorded {
    /// Whether this line of the record is selected.
    pub(crate) fn matches(&self, entry: &Entry) -> bool {
        match self {
            Self::Exact(name) => entry.subject == *name,
            Self::Prefix(start) => entry.subject.starts_with(start),
        }
    }

    /// The selection as an extended regular expression.
    pub(crate) fn expression(&self) -> String {
        let (text, end) = match self {
            Self::Exact(name) => (name.as_str(), "(\t|$)"),
            Self::Prefix(start) => (*start, ""),
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-".contains(c);
        let escaped: String =
            text.chars().map(|c| if is_plain(c) { c.to_string() } else { format!("[{c}]") }).collect();
        format!("^[^\t]*\t{escaped}{end}")
    }
}

/// Needs of all capabilities together.
#[derive(Default)]
pub(crate) struct Requirements {
    /// Programs of each host.
    pub programs: BTreeMap<String, Vec<(ProgramStage, Component)>>,
    /// Images of each host.
    pub images: BTreeMap<String, Vec<(ImageStage, String)>>,
    /// Ports of each host.
    pub ports: BTreeMap<String, Vec<Port>>,
    /// Directories of every node.
    pub directories: Vec<String>,
    /// Network interfaces of every node.
    pub interfaces: Vec<&'static str>,
    /// Objects for the API.
    pub manifests: Vec<Manifest>,
    /// Conditions for a complete cluster.
    pub ready: Vec<Ready>,
    /// Lines of a host's record that belong to the runtime.
    pub stays: Vec<Recorded>,
    /// Lines of a host's record that do not belong to the cluster: deleting the cluster keeps them.
    pub others: Vec<Recorded>,
}

impl Requirements {
    /// The programs that a host needs by a stage.
    pub(crate) fn programs(&self, host: &Host, stage: ProgramStage) -> Vec<Component> {
        let all = self.programs.get(&host.name).into_iter().flatten();
        all.filter(|(by, _)| *by == stage).map(|(_, component)| *component).collect()
    }

    /// The images that a host needs by a stage.
    pub(crate) fn images(&self, host: &Host, stage: ImageStage) -> Vec<String> {
        let all = self.images.get(&host.name).into_iter().flatten();
        all.filter(|(by, _)| *by == stage).map(|(_, image)| image.clone()).collect()
    }

    /// The ports that a host needs.
    pub(crate) fn ports(&self, host: &Host) -> &[Port] {
        self.ports.get(&host.name).map_or(&[], Vec::as_slice)
    }

    /// All objects of the manifests.
    pub(crate) fn objects(&self) -> Vec<&Object> {
        self.manifests.iter().flat_map(|manifest| &manifest.objects).collect()
    }

    /// Workloads that must be ready, in the order in which they become ready.
    pub(crate) fn workloads(&self) -> Vec<Workload> {
        let workload = |ready: &Ready| match ready {
            Ready::Workload(workload) => Some(*workload),
            Ready::StaticPods(_) | Ready::Never(_) => None,
        };
        self.ready.iter().filter_map(workload).collect()
    }

    /// The reason why nodes do not become ready, if a setting prevents it.
    pub(crate) fn never_ready(&self) -> Option<&'static str> {
        never_ready(&self.ready)
    }

    /// Components that run as static pods on every control plane.
    pub(crate) fn static_pods(&self) -> Vec<&'static str> {
        let programs = |ready: &Ready| match ready {
            Ready::StaticPods(programs) => *programs,
            Ready::Workload(_) | Ready::Never(_) => &[],
        };
        self.ready.iter().flat_map(programs).copied().collect()
    }
}

/// The Service by which the verification checks that nodes learn of new Services. Only a killed run leaves it behind.
pub(crate) fn probe_service() -> Object {
    Object::new("v1", "Service", "kube-system", "kk-verify")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use kk_engine::Owned;

    use super::Recorded;

    #[test]
    fn the_expression_and_the_function_agree() {
        let stays = [Recorded::Exact("/srv/a.b".into()), Recorded::Prefix("/etc/cni")];
        let expression = stays.each_ref().map(Recorded::expression).join("|");
        for (line, kept) in [
            ("dir\t/srv/a.b", true),
            ("attr\t/srv/a.b\t755\troot:root", true),
            ("dir\t/srv/axb", false),
            ("dir\t/srv/a.b/c", false),
            ("dir\t/etc/cni/net.d", true),
            ("block\t/etc/hosts\t/etc/cni", false),
        ] {
            let script = r#"printf '%s\n' "$1" | grep -qE -e "$2""#;
            let found = Command::new("sh").args(["-c", script, "sh", line, &expression]).status().unwrap();
            let owned = Owned::from(vec![line]);
            let matches = stays.iter().any(|stay| stay.matches(&owned.entries()[0]));
            assert_eq!((found.success(), matches), (kept, kept), "{line}");
        }
    }
}
