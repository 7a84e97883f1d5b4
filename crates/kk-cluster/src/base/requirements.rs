//! What the capabilities of a cluster need from those steps that serve them all: downloads, uploads, image pulls, the API
//! and the verification. Plain data.

use std::collections::BTreeMap;

use kk_artifact::Component;
use kk_config::Host;
use kk_engine::{Entry, Question, question};

/// The images of a node, as its runtime lists them.
pub(crate) const IMAGES: Question<Vec<ListedImage>> = Question::new("images", ":", listed_images);

/// An image as the runtime of a node lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedImage {
    /// Its full name, or the digest of its configuration, by which containerd lists each image once more.
    pub name: String,
    /// The digest of the document that it names. Asked only where a bundle says what that has to be.
    pub digest: Option<String>,
}

/// A line for each image: its name, and its digest where that was asked.
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

/// By when a program must be on a host. Uploads travel in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProgramStage {
    /// The runtime and etcd start from it.
    Runtime,
    /// `kubeadm init` and `join` wait for it.
    Join,
    /// Needed once the nodes are there.
    Tools,
}

/// By when an image must be on a host. Pulls are in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ImageStage {
    /// Static pods of a control plane.
    ControlPlane,
    /// A node does not become ready without it.
    Node,
    /// It may run on any node once the nodes are there.
    Addon,
    /// The cluster itself does not need it: a bundle carries it for its user.
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
    /// Name of its note on the control plane, and of its file beside the script.
    pub name: &'static str,
    /// What was last applied, as it is compared with the note.
    pub note: String,
    /// The file `NAME.yaml` beside the script.
    pub file: String,
    /// The objects that it makes. One that is edited or lost is applied again.
    pub objects: Vec<Object>,
    /// Whether `kubeadm init` makes the same, so that a new cluster has it already.
    pub made_by_init: bool,
    /// The command that applies the file; `kubectl apply` when there is none.
    pub command: Option<&'static str>,
}

/// An object of the API by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// Empty where the kind has none.
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

/// What must be true before the cluster is complete.
pub(crate) enum Ready {
    /// All pods of a Deployment or `DaemonSet` are ready.
    Workload(Workload),
    /// The static pods of these programs on every control plane.
    StaticPods(&'static [&'static str]),
    /// Never by kk alone, and why: the user has to do something.
    Never(&'static str),
}

/// A Deployment or `DaemonSet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    /// Its namespace.
    pub namespace: &'static str,
    /// `daemonset/NAME` or `deployment/NAME`.
    pub path: &'static str,
    /// The port on which each of its pods serves its metrics over HTTP. Every node asks there whether it reaches them.
    pub metrics: Option<u16>,
}

/// Lines of a host's record, by the path or unit that they name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// This one.
    Exact(String),
    /// Every one that begins so.
    Prefix(&'static str),
}

impl Recorded {
    /// Whether a line of the record is meant.
    pub(crate) fn matches(&self, entry: &Entry) -> bool {
        match self {
            Self::Exact(name) => entry.subject == *name,
            Self::Prefix(start) => entry.subject.starts_with(start),
        }
    }

    /// The same as an extended regular expression.
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

/// What all capabilities together need.
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
    /// What must be true in the end.
    pub ready: Vec<Ready>,
    /// What of a host's record belongs to the runtime.
    pub stays: Vec<Recorded>,
    /// What of a host's record is not the cluster's: no delete of it takes that.
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

    /// Workloads that must be ready; what becomes ready last is last.
    pub(crate) fn workloads(&self) -> Vec<Workload> {
        let workload = |ready: &Ready| match ready {
            Ready::Workload(workload) => Some(*workload),
            Ready::StaticPods(_) | Ready::Never(_) => None,
        };
        self.ready.iter().filter_map(workload).collect()
    }

    /// Why nodes do not become ready, when a setting says so.
    pub(crate) fn never_ready(&self) -> Option<&'static str> {
        never_ready(&self.ready)
    }

    /// Programs that run as static pods on every control plane.
    pub(crate) fn static_pods(&self) -> Vec<&'static str> {
        let programs = |ready: &Ready| match ready {
            Ready::StaticPods(programs) => *programs,
            Ready::Workload(_) | Ready::Never(_) => &[],
        };
        self.ready.iter().flat_map(programs).copied().collect()
    }
}

/// The Service by which the verification sees whether nodes learn of new ones. Only a killed run leaves it.
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
