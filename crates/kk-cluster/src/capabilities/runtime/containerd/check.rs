//! What containerd needs of a node, and other runtimes on it.

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{Facts, ProbeSpec, Question, question};

use super::immutable::ROOT;
use crate::{findings::Findings, inputs::Inputs, requirements::IMAGES};

/// The unit of containerd.
const UNIT: &str = "/etc/systemd/system/containerd.service";

/// Whether a containerd has data on the host.
pub(crate) const DATA: Question<bool> = Question::new("runtime_data", "echo no", question::yes_or_no);

/// Names only: for digests ctr reads documents of every image.
const LIST: &str = "[ ! -S /run/containerd/containerd.sock ] || ctr -n k8s.io images ls -q";
/// The first line is a header.
const LIST_WITH_DIGESTS: &str = "[ ! -S /run/containerd/containerd.sock ] || {
    images=$(ctr -n k8s.io images ls) && printf '%s\n' \"$images\" | awk 'NR > 1 { print $1, $3 }'
}";

pub(super) fn asks(inputs: &Inputs, probe: &mut ProbeSpec) {
    let spec = inputs.spec;
    probe.units.insert("docker.service".to_owned());
    probe.disks.insert(spec.registry.containerd_data_dir.clone());
    let data = quote(&spec.registry.containerd_data_dir).into_owned();
    probe.ask(&IMAGES.with_snippet(if inputs.options.bundle.is_some() { LIST_WITH_DIGESTS } else { LIST }));
    probe.ask(&DATA.with_snippet(format!("ls -d {data}/io.containerd.* >/dev/null && echo yes || echo no")));
}

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.nodes() {
        if !facts.features.contains("overlay") && !facts.modules.contains("overlay") {
            found.error(host, "the kernel has no overlay file system", "load or install the module overlay");
        }
        if !facts.can_raise_limits {
            found.adapted(
                host,
                "root is not allowed to raise resource limits",
                "containerd is told to keep OOM scores as they are",
            );
        }
        found.unanswered(host, &facts.answer(&DATA), "whether a containerd has data on it");
        found.unanswered(host, &facts.answer(&ROOT), "where its containerd keeps its data");
        other_runtimes(inputs, host, facts, found);
    }
}

/// Its containers would get another runtime below them, and a delete could not tell their data from the cluster's.
fn other_runtimes(inputs: &Inputs, host: &Host, facts: &Facts, found: &mut Findings) {
    if facts.units.get("docker.service").is_some_and(|unit| unit.active) {
        found.warning(host, "docker is running", "it is left alone; Kubernetes uses containerd");
    }
    let ours = facts.owns(UNIT);
    let has_data = facts.answer(&DATA).answered() == Some(true);
    if facts.units.contains_key("containerd.service") && !ours {
        found.error(
            host,
            "containerd is installed already, and not by kk",
            "remove its package first (containerd, containerd.io), or take a host without it",
        );
    } else if has_data && !ours {
        found.error(
            host,
            format!("{} holds data of another containerd", inputs.spec.registry.containerd_data_dir),
            "move it away, or set spec.registry.containerdDataDir to another directory",
        );
    }
}
