//! Requirements of containerd for a node, and other runtimes on it.

use kk_config::{Host, OwnRegistry};
use kk_connector::quote;
use kk_engine::{Facts, ProbeSpec, Question, question};

use super::immutable::ROOT;
use crate::{
    base::{findings::Findings, host_layout::is_masked, requirements::IMAGES},
    model::inputs::Inputs,
};

/// The unit of containerd.
pub(super) const UNIT: &str = "/etc/systemd/system/containerd.service";

/// Whether a containerd has data on the host.
pub(crate) const DATA: Question<bool> = Question::new("runtime_data", "echo no", question::yes_or_no);

/// Names only: to list digests, ctr reads documents of every image.
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
                "containerd is configured not to change OOM scores",
            );
        }
        found.unanswered(host, &facts.answer(&DATA), "whether a containerd has data on it");
        found.unanswered(host, &facts.answer(&ROOT), "where its containerd keeps its data");
        other_runtimes(inputs, host, facts, found);
    }
    unknown_registry(inputs, found);
}

/// A registry on a host of the file that another control machine set up: its name is known, its CA is not.
fn unknown_registry(inputs: &Inputs, found: &mut Findings) {
    let registry = &inputs.spec.registry;
    let own = inputs.spec.own_registry().filter(|_| registry.private_registry.is_some());
    let is_known = |own: &OwnRegistry<'_>| {
        let auth = registry.auths.get(&own.address);
        auth.is_some_and(|auth| auth.certs_path.is_some() || auth.plain_http || auth.skip_tls_verify)
    };
    if let Some(own) = own.filter(|own| !is_known(own) && inputs.options.bundle.is_none()) {
        found.warning(
            own.host,
            format!("images come from the registry {}, whose CA is not on the control machine", own.address),
            "run kk init registry; if it was run on another machine, copy the directory registry of the \
             cluster from there",
        );
    }
}

/// Refuses another containerd: its containers would get a different runtime, and a delete could not distinguish their data from
/// the data of the cluster.
fn other_runtimes(inputs: &Inputs, host: &Host, facts: &Facts, found: &mut Findings) {
    if facts.units.get("docker.service").is_some_and(|unit| unit.active) {
        found.warning(host, "docker is running", "kk does not change it; Kubernetes uses containerd");
    }
    let ours = facts.owns(UNIT);
    let has_data = facts.answer(&DATA).answered() == Some(true);
    if facts.units.contains_key("containerd.service") && !ours && !is_masked(facts, "containerd") {
        found.error(
            host,
            "containerd is already installed, but not by kk",
            "remove its package first (containerd, containerd.io), or use a host without it",
        );
    } else if has_data && !ours {
        found.error(
            host,
            format!("{} contains data of another containerd", inputs.spec.registry.containerd_data_dir),
            "move it away, or set spec.registry.containerdDataDir to another directory",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        commands::{create_cluster::capabilities, precheck::precheck},
        model::options::Options,
        testing,
    };

    #[tokio::test]
    async fn a_registry_of_the_file_whose_ca_is_unknown_is_a_warning_also_when_kubelets_pull() {
        for (auths, skip_pull_images, warned) in
            [("{}", false, true), ("{}", true, true), ("{hub.local: {plainHTTP: true}}", false, false)]
        {
            let spec = testing::spec(&format!(
                "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
                 - {{name: a, address: 192.0.2.1}}\n  roleGroups: {{etcd: [a], control-plane: [a], worker: [a], registry: [a]}}\n  \
                 registry: {{privateRegistry: hub.local/team, auths: {auths}}}\n"
            ));
            let (fresh, directory) = (testing::fresh(&spec), tempfile::tempdir().unwrap());
            let options = Options { skip_pull_images, ..Options::default() };
            let session = testing::session_with(spec.clone(), directory.path(), options);
            let inputs = session.create_inputs(&fresh).await.unwrap();
            let found = precheck(&capabilities(&spec), &inputs);
            let about_ca =
                found.iter().any(|finding| finding.message.contains("registry hub.local, whose CA"));
            assert_eq!(about_ca, warned, "{auths}: {found:?}");
        }
    }
}
