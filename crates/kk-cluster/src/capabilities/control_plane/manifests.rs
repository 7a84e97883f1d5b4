//! Records the manifests of the static pods as kubeadm wrote them, and checks whether they have changed.

use kk_config::Host;
use kk_engine::{Question, question};

use crate::model::inputs::Inputs;

/// The function that `restart_control_plane.sh` calls to write the manifests.
pub(super) const WRITE: &str = "write_by_kubeadm";

/// Records the checksums of the manifests next to the notes, once the pods that run from them are ready.
pub(super) const RECORD: &str = "\
mkdir -p /etc/kubernetes/kubekey
(cd /etc/kubernetes/manifests && sha256sum kube-apiserver.yaml kube-controller-manager.yaml kube-scheduler.yaml) >/etc/kubernetes/kubekey/manifests.sums.new
mv -f /etc/kubernetes/kubekey/manifests.sums.new /etc/kubernetes/kubekey/manifests.sums
";

/// Whether the manifests are as kubeadm wrote them.
pub(super) const MANIFESTS: Question<Manifests> = Question::new(
    "manifests",
    "sums=/etc/kubernetes/kubekey/manifests.sums
if [ ! -e $sums ]; then echo unrecorded
elif cd /etc/kubernetes/manifests 2>/dev/null && sha256sum -c $sums >/dev/null 2>&1; then echo same
else echo differ; fi",
    parse,
);

/// The state of the manifests on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manifests {
    /// Their checksums are not recorded.
    Unrecorded,
    /// They are as kubeadm wrote them.
    Same,
    /// A manifest is missing or was edited.
    Differ,
}

/// Whether a manifest is missing or was edited.
pub(super) fn differ(inputs: &Inputs, host: &Host) -> bool {
    let there = inputs.facts(host).and_then(|facts| facts.answer(&MANIFESTS).answered());
    there == Some(Manifests::Differ)
}

fn parse(text: &str) -> Option<Manifests> {
    Some(match question::text(text)?.as_str() {
        "unrecorded" => Manifests::Unrecorded,
        "same" => Manifests::Same,
        "differ" => Manifests::Differ,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, process::Command};

    use super::{MANIFESTS, Manifests, RECORD, parse};

    fn run(directory: &Path, text: &str) -> String {
        let text = text.replace("/etc/kubernetes", &directory.display().to_string());
        let output = Command::new("sh").args(["-euc", &text]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_manifest_that_is_gone_or_edited_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let manifests = directory.path().join("manifests");
        fs::create_dir(&manifests).unwrap();
        let mut probe = kk_engine::ProbeSpec::default();
        probe.ask(&MANIFESTS);
        let snippet = probe.questions.values().next().unwrap().snippet.clone();
        let look = || parse(&run(directory.path(), &snippet)).unwrap();
        let parts = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
        let write =
            || parts.iter().for_each(|part| fs::write(manifests.join(format!("{part}.yaml")), part).unwrap());
        write();
        assert_eq!(look(), Manifests::Unrecorded);
        run(directory.path(), RECORD);
        assert_eq!(look(), Manifests::Same);
        fs::remove_file(manifests.join("kube-scheduler.yaml")).unwrap();
        assert_eq!(look(), Manifests::Differ);
        write();
        fs::write(manifests.join("kube-apiserver.yaml"), "edited").unwrap();
        assert_eq!(look(), Manifests::Differ);
        fs::remove_dir_all(&manifests).unwrap();
        assert_eq!(look(), Manifests::Differ);
    }
}
