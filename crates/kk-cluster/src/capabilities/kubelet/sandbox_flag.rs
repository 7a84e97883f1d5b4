//! Handles the kubelet's flag `--pod-infra-container-image`, which kubeadm writes up to 1.34 and the kubelet refuses from 1.35
//! on.

use kk_engine::{Question, actions::Command};

use crate::{
    base::{host_layout::NOTES, shell::script},
    model::inputs::Inputs,
};

const FILE: &str = "/var/lib/kubelet/kubeadm-flags.env";

/// The place of the flag on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SandboxFlag {
    /// In kubeadm's file.
    Set,
    /// kk has removed it from kubeadm's file and kept it.
    Kept,
    /// Nowhere.
    Absent,
}

pub(crate) const SANDBOX_FLAG: Question<SandboxFlag> = Question::new(
    "kubelet_sandbox_flag",
    "if grep -q -e --pod-infra-container-image /var/lib/kubelet/kubeadm-flags.env 2>/dev/null; then echo set
elif [ -s /etc/kubernetes/kubekey/sandbox-flag ]; then echo kept
else echo absent; fi",
    parse,
);

fn parse(printed: &str) -> Option<SandboxFlag> {
    match printed.trim() {
        "set" => Some(SandboxFlag::Set),
        "kept" => Some(SandboxFlag::Kept),
        "absent" => Some(SandboxFlag::Absent),
        _ => None,
    }
}

/// Removes the flag for a kubelet of 1.35 or newer, and restores it for an older one: a host whose turn in an upgrade has failed
/// gets its previous kubelet back.
pub(super) fn follow_version(inputs: &Inputs) -> Command {
    let is_refused = inputs.spec.kubernetes.version.at_least(1, 35);
    let (describe, wrong, text) = if is_refused {
        (
            "remove the kubelet's flag --pod-infra-container-image",
            SandboxFlag::Set,
            include_str!("remove_sandbox_flag.sh"),
        )
    } else {
        (
            "restore the kubelet's flag --pod-infra-container-image",
            SandboxFlag::Kept,
            include_str!("restore_sandbox_flag.sh"),
        )
    };
    let kept = format!("{NOTES}/sandbox-flag");
    Command::new(describe, script(&[("file", FILE), ("kept", &kept)], text))
        .when(move |facts| facts.answer(&SANDBOX_FLAG).answered() == Some(wrong))
        .reads(|probe| probe.ask(&SANDBOX_FLAG))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use kk_engine::{FileFact, UnitFact};

    use super::*;
    use crate::{
        commands::add_nodes::tests::{ANSWERED, probed, spec},
        model::options::Drain,
        testing,
    };

    #[test]
    fn the_flag_is_removed_alone_and_restored() {
        for (before, after) in [
            (
                "KUBELET_KUBEADM_ARGS=\"--a=b --pod-infra-container-image=r.example/pause:3.10 --c=d\"\n",
                "KUBELET_KUBEADM_ARGS=\"--a=b --c=d\"\n",
            ),
            (
                "KUBELET_KUBEADM_ARGS=\"--pod-infra-container-image=pause:3.9\"\n",
                "KUBELET_KUBEADM_ARGS=\"\"\n",
            ),
            (
                "KUBELET_KUBEADM_ARGS=\"--pod-infra-container-image=pause:3.9 --c=d\"\n",
                "KUBELET_KUBEADM_ARGS=\" --c=d\"\n",
            ),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let path = |name: &str| directory.path().join(name);
            let run = |text: &str| {
                let (file, kept) = (path("flags").display().to_string(), path("kept").display().to_string());
                let text = script(&[("file", &file), ("kept", &kept)], text);
                let output = testing::run_script(directory.path(), &text);
                assert!(output.status.success(), "{output:?}");
            };
            fs::write(path("flags"), before).unwrap();
            for _ in 0..2 {
                run(include_str!("remove_sandbox_flag.sh"));
                assert_eq!(fs::read_to_string(path("flags")).unwrap(), after);
            }
            run(include_str!("restore_sandbox_flag.sh"));
            let restored = fs::read_to_string(path("flags")).unwrap();
            let flags = |text: &str| -> BTreeSet<String> {
                text.replace(['"', '\n'], " ").split_whitespace().map(str::to_owned).collect()
            };
            assert_eq!(flags(&restored), flags(before));
            assert!(
                restored.starts_with("KUBELET_KUBEADM_ARGS=\"") && restored.ends_with("\"\n"),
                "{restored}"
            );
            assert!(!path("kept").exists());
        }
    }

    #[test]
    fn a_host_says_where_the_flag_stands() {
        for (flags, kept, wanted) in [
            (Some("--pod-infra-container-image=x"), false, SandboxFlag::Set),
            (Some("--pod-infra-container-image=x"), true, SandboxFlag::Set),
            (Some("--a=b"), true, SandboxFlag::Kept),
            (Some("--a=b"), false, SandboxFlag::Absent),
            (None, false, SandboxFlag::Absent),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let path = |name: &str| directory.path().join(name).display().to_string();
            if let Some(flags) = flags {
                fs::write(path("flags"), flags).unwrap();
            }
            if kept {
                fs::write(path("kept"), "x").unwrap();
            }
            let mut probe = kk_engine::ProbeSpec::default();
            probe.ask(&SANDBOX_FLAG);
            let snippet = &probe.questions.values().next().unwrap().snippet;
            let snippet = snippet
                .replace(FILE, &path("flags"))
                .replace(&format!("{NOTES}/sandbox-flag"), &path("kept"));
            let output = testing::run_script(directory.path(), &snippet);
            assert_eq!(parse(&String::from_utf8(output.stdout).unwrap()), Some(wanted), "{flags:?} {kept}");
        }
    }

    /// n2 is in its turn, and its kubelet runs or does not.
    #[tokio::test]
    async fn a_turn_removes_the_flag_before_the_new_kubelet_starts_and_a_failed_turn_restores_it() {
        let directory = tempfile::tempdir().unwrap();
        for (from, to, flag, puts_back, wanted) in [
            ("v1.33.4", "v1.34.1", "set", false, None),
            ("v1.34.1", "v1.35.0", "set", false, Some("remove")),
            ("v1.34.1", "v1.35.0", "absent", false, None),
            ("v1.35.0", "v1.36.0", "set", false, Some("remove")),
            ("v1.35.0", "v1.34.1", "kept", true, Some("restore")),
            ("v1.35.0", "v1.34.1", "set", true, None),
        ] {
            for runs in [true, false] {
                let at = |version: &str| {
                    let mut spec = spec();
                    spec.hosts.truncate(2);
                    spec.kubernetes.version = version.parse().unwrap();
                    testing::session(spec, directory.path())
                };
                let nodes = format!("Node\tn1\tTrue\t{from}\t\t\t\nNode\tn2\tTrue\t{from}\t\t\t\n");
                let mut probed = probed(&at(from), Some(&(nodes + ANSWERED))).await;
                let n2 = probed.facts.get_mut("n2").unwrap();
                n2.files.insert(crate::base::host_layout::UPGRADING.into(), FileFact::default());
                n2.units.insert("kubelet.service".into(), UnitFact { active: runs, ..UnitFact::default() });
                n2.reply(&SANDBOX_FLAG, flag);
                let (session, names) = (at(to), BTreeSet::from(["n2".to_owned()]));
                let how = Drain { force: false, timeout: std::time::Duration::from_mins(1) };
                let turn = if puts_back {
                    session.plan_put_back(&probed, names).await
                } else {
                    session.plan_turn(&probed, names, &how).await
                };
                let tasks = turn.unwrap().plan.changes();
                let of_n2: Vec<_> = tasks.iter().filter(|task| task.host == "n2").collect();
                let is_about = |line: &&String| line.contains("--pod-infra-container-image");
                let changes: Vec<_> =
                    of_n2.iter().flat_map(|task| task.changes.iter().filter(is_about)).collect();
                let wanted: Vec<_> = wanted
                    .iter()
                    .map(|verb| format!("{verb} the kubelet's flag --pod-infra-container-image"))
                    .collect();
                assert_eq!(changes, wanted.iter().collect::<Vec<_>>(), "{from} {to} {flag} {runs}");
                let change = of_n2.iter().position(|task| task.changes.iter().any(|line| is_about(&line)));
                let start = of_n2.iter().position(|task| task.task == "start_kubelet");
                assert!(start.is_some() && change < start, "{of_n2:?}");
            }
        }
    }
}
