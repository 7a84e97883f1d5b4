//! Whether the API's status of a node's pods matches the containers that run on the node.

use kk_config::Host;
use kk_engine::{Question, actions::WaitUntil};

use crate::base::{questions::PODS_KNOWN, shell::script};

/// The question for this node.
pub(crate) fn question(host: &Host) -> Question<bool> {
    let text = condition(host, "yes");
    PODS_KNOWN.with_snippet(script(&[("pods_known", &text)], include_str!("after_boot.sh")))
}

/// Waits until the status is correct again.
pub(crate) fn wait(host: &Host) -> WaitUntil {
    WaitUntil::new("the API knows which pods run", condition(host, ""))
        .hint("", "see \"journalctl -u kubelet\" on the host")
}

/// With `all`, it also fails while system pods are not ready.
fn condition(host: &Host, all: &str) -> String {
    script(&[("node", &host.name), ("all", all)], include_str!("pods_known.sh"))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        process::{Command, Output},
    };

    use super::*;
    use crate::testing;

    /// Runs the script on a node that has been up for 2000 s with this output of systemd. The API heard of the kubelet this many
    /// seconds ago and reports these containers as ready; the others actually run.
    fn run(text: &str, systemd: &str, renewed_seconds_ago: u32, ready: &str, running: &str) -> Output {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().display().to_string();
        let program = |name: &str, text: &str| testing::program(directory.path(), name, text);
        fs::write(directory.path().join("uptime"), "2000.5 7\n").unwrap();
        let renewed = format!("date -u -d '-{renewed_seconds_ago} seconds' +%Y-%m-%dT%H:%M:%S.000000Z");
        program("kubectl", &format!("case \"$*\" in *lease*) {renewed} ;; *) printf '{ready}' ;; esac"));
        program("systemctl", systemd);
        program("crictl", &format!("printf '{running}'"));
        let text = text.replace("/proc/uptime", &format!("{here}/uptime"));
        let mut command = Command::new("sh");
        command.args(["-euc", &text]).current_dir(directory.path());
        command.env("PATH", format!("{here}:/usr/bin:/bin")).output().unwrap()
    }

    #[test]
    fn what_the_api_says_is_true_when_all_that_it_takes_for_ready_runs() {
        let host = &testing::sample("three-nodes.yaml").hosts[0];
        let (b, c) = ("true kube-system containerd://b\\n", "true web containerd://c\\n");
        let both = format!("{b}{c}");
        let waits = "false kube-system containerd://a\\n";
        for (all, renewed, containers, running, known) in [
            ("", 1, "", "", true),
            ("", 1, b, "a\\nb\\n", true),
            ("", 1, &both, "a\\nb\\n", false),
            ("", 1, b, "", false),
            ("", 6000, "", "", false),
            ("", 1, waits, "", true),
            ("yes", 1, b, "b\\n", true),
            ("yes", 1, waits, "", false),
            ("yes", 1, "false web containerd://a\\n", "", true),
        ] {
            let systemd = "echo ExecMainStartTimestampMonotonic=1000000000";
            let output = run(&condition(host, all), systemd, renewed, containers, running);
            assert_eq!(output.status.success(), known, "{all} {renewed} {containers} {running}");
        }
    }

    #[test]
    fn only_a_kubelet_that_the_boot_has_started_a_moment_ago_is_asked_about() {
        let host = &testing::sample("three-nodes.yaml").hosts[0];
        let mut probe = kk_engine::ProbeSpec::default();
        probe.ask(&question(host));
        let snippet = &probe.questions["pods_known"].snippet;
        // The state, the start of the kubelet and the end of the boot in seconds, and whether the containers from before the boot
        // are gone.
        for (state, began, booted, gone, known) in [
            ("active", 1990, 1995, true, "no\n"),
            ("active", 1990, 1995, false, "yes\n"),
            ("active", 1990, 0, true, "no\n"),
            ("active", 1990, 1980, true, "yes\n"),
            ("active", 1800, 1995, true, "yes\n"),
            ("inactive", 1990, 1995, true, "yes\n"),
        ] {
            let systemd = format!(
                "case \"$*\" in *ActiveState*) printf 'ActiveState={state}\\nExecMainStartTimestampMonotonic={began}000000\\n' ;; *kubelet*) echo ExecMainStartTimestampMonotonic={began}000000 ;; *) echo FinishTimestampMonotonic={booted}000000 ;; esac"
            );
            let running = if gone { "a\\n" } else { "a\\nb\\n" };
            let output = run(snippet, &systemd, 1, "true kube-system containerd://b\\n", running);
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(printed, known, "{state} {began} {booted} {gone}");
        }
    }
}
