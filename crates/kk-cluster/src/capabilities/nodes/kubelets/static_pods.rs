//! Whether the API shows the static pods of the running kubelet, or still shows the pods of the previous one.

use std::time::Duration;

use kk_config::Host;
use kk_engine::actions::WaitUntil;

use crate::base::{host_layout::KUBECTL, shell::script};

/// Time limit for the restart of all components of a control plane.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);

/// Waits until it does, and until the components of the control plane are ready.
pub(super) fn wait(host: &Host) -> WaitUntil {
    WaitUntil::new("the control plane that this kubelet runs is ready", condition(host))
        .within(PATIENCE)
        .hint("", "see \"crictl ps -a\" and \"journalctl -u kubelet\" on the host")
}

fn condition(host: &Host) -> String {
    format!("{KUBECTL}{}", script(&[("node", &host.name)], include_str!("static_pods.sh")))
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Output};

    use super::*;
    use crate::testing;

    /// Runs the check once on a control plane whose API shows these pods: hash, whether ready, component. The kubelet is this
    /// command.
    fn look(directory: &Path, shown: &[(&str, &str, &str)], kubelet: &str, uptime: u32) -> Output {
        let host = &testing::sample("three-nodes.yaml").hosts[0];
        let line =
            |(hash, ready, part): &(&str, &str, &str)| format!("{hash} {ready} {part}-{}\\n", host.name);
        let lines = shown.iter().map(line).collect::<Vec<_>>().concat();
        let kubectl = format!("case \"$*\" in *proxy*) {kubelet} ;; *) printf '{lines}' ;; esac");
        testing::program(directory, "kubectl", &kubectl);
        std::fs::write(directory.join("uptime"), format!("{uptime}.25 7\n")).unwrap();
        let here = directory.join("uptime").display().to_string();
        testing::run_script(directory, &condition(host).replace("/proc/uptime", &here))
    }

    fn shown<'a>(server: &'a str, ready: &'a str) -> Vec<(&'a str, &'a str, &'a str)> {
        let others = [("h2", "True", "kube-controller-manager"), ("h3", "True", "kube-scheduler")];
        // A pod that is not static has no hash.
        let pod = [("", "False", "coredns")];
        [(server, ready, "kube-apiserver")].into_iter().chain(others).chain(pod).collect()
    }

    /// The answer of a kubelet that wants these pods; other static pods are irrelevant.
    const WANTS: &str = r#"echo '{"items":[{"metadata":{"annotations":{"kubernetes.io/config.hash":"h1"}}},{"annotations":{"kubernetes.io/config.hash": "h2"}},{"kubernetes.io/config.hash":"h3"},{"kubernetes.io/config.hash":"other"}]}'"#;

    #[test]
    fn the_pods_that_the_kubelet_wants_have_to_be_ready_in_the_api() {
        let none = "echo '{\"items\":null}'";
        let (lacks, others) = ("does not show kube-apiserver-", "wants other pods");
        for (pods, kubelet, trouble) in [
            (shown("h1", "True"), WANTS, None),
            (shown("h1", "False"), WANTS, Some(lacks)),
            // A pod of the previous kubelet.
            (shown("h0", "True"), WANTS, Some(others)),
            (shown("", "True"), WANTS, Some(others)),
            (shown("h1", "True")[1..].to_vec(), WANTS, Some(lacks)),
            // A kubelet that has not read any manifest yet.
            (shown("h1", "True"), none, Some("names no static pods yet")),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let output = look(directory.path(), &pods, kubelet, 100);
            let said = String::from_utf8(output.stdout).unwrap();
            assert_eq!(output.status.success(), trouble.is_none(), "{pods:?} {kubelet} {said}");
            assert!(said.contains(trouble.unwrap_or_default()), "{pods:?} {kubelet} {said}");
        }
    }

    #[test]
    fn a_kubelet_that_no_api_server_reaches_is_left_alone_after_a_while() {
        let directory = tempfile::tempdir().unwrap();
        let pods = shown("h0", "True");
        for (uptime, known) in [(100, false), (129, false), (130, true)] {
            let output = look(directory.path(), &pods, "echo 'no route' >&2; exit 1", uptime);
            assert_eq!(output.status.success(), known, "{uptime} {output:?}");
        }
        let output = look(directory.path(), &shown("h0", "False"), "exit 1", 200);
        assert!(!output.status.success());
    }
}
