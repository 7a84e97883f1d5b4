//! Apply changed settings to the control planes that run already.

use kk_config::{ControlPlaneEndpoint, Host, Role};
use kk_engine::{Action, Facts, HostWork, SlotKey, Task, actions::Command};

use super::{
    RESTART,
    certificate::{RENEWED, renew},
    manifests::{self, MANIFESTS, Manifests, RECORD},
    note::{note, only_members_are_changed, path},
};
use crate::{host_layout::KUBECTL, inputs::Inputs, kubeadm, shell::script, slots};

/// The notes on each control plane of what was last applied there. A cluster without notes was made just now by the
/// tasks before, with these very settings. Control planes that the command leaves as they are learn of other members of etcd.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("apply_changed_settings", "Apply changed settings").concurrency(1);
    for (host, facts) in hosts(inputs) {
        let note = note(inputs, host);
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        let runs = runs(inputs, host);
        if runs && note.check(facts).is_needed() {
            actions.push(Box::new(
                Command::new("apply changed settings of the control plane", apply(host))
                    .file("config.yaml", kubeadm::phase_documents(inputs, host).into_bytes()),
            ));
        } else if runs && manifests::differ(inputs, host) {
            let text = format!("{KUBECTL}{}{RECORD}", restart(host));
            actions.push(Box::new(
                Command::new("write the manifests of the control plane again", text)
                    .file("config.yaml", kubeadm::phase_documents(inputs, host).into_bytes()),
            ));
        } else if facts.answer(&MANIFESTS).answered() == Some(Manifests::Unrecorded) {
            actions.push(Box::new(Command::new("record the manifests of the control plane", RECORD)));
        }
        actions.push(Box::new(note));
        let mut work = HostWork::new(actions);
        for (member, _) in inputs.etcd_hosts() {
            work = work.needs(slots::etcd_healthy_slot(&member.name));
        }
        if restarts(inputs, host, facts) {
            work = work.provides(slots::settings_applied_slot(&host.name));
        }
        task = task.on(&host.name, work);
    }
    task
}

/// What a node that joins waits for: an API server that restarts meanwhile would refuse it in the middle.
pub(crate) fn before_joins(inputs: &Inputs) -> Vec<SlotKey> {
    let restarting = hosts(inputs).into_iter().filter(|(host, facts)| restarts(inputs, host, facts));
    restarting.map(|(host, _)| slots::settings_applied_slot(&host.name)).collect()
}

fn hosts<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, &'a Facts)> {
    let mut hosts = inputs.control_planes();
    let learns = |(host, _): &(&Host, &Facts)| {
        host.has_role(&Role::ControlPlane)
            && !hosts.iter().any(|(one, _)| one.name == host.name)
            && only_members_are_changed(inputs, host)
    };
    let others: Vec<_> = inputs.answered().into_iter().filter(learns).collect();
    hosts.extend(others);
    hosts
}

fn runs(inputs: &Inputs, host: &Host) -> bool {
    if host.name == inputs.api_host.name { inputs.is_initialised() } else { inputs.has_joined(host) }
}

fn restarts(inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
    runs(inputs, host) && (note(inputs, host).check(facts).is_needed() || manifests::differ(inputs, host))
}

/// Puts the note aside first: until these settings work, no file may pass for the one that was applied, not even that of
/// before. It still shows that the control plane was initialised.
/// Then writes certificate and manifests again, and waits until API server, controller manager and scheduler are ready with
/// them. With `concurrency(1)` the other control planes answer meanwhile.
fn apply(host: &Host) -> String {
    format!(
        "[ ! -e {0} ] || mv -f {0} {0}.replaced\n{KUBECTL}{1}{2}{RENEWED}{RECORD}",
        path(),
        renew(&["apiserver"]),
        restart(host),
    )
}

/// Writes the manifests.
const WRITE: &str = "kubeadm init phase control-plane all --config config.yaml";

fn restart(host: &Host) -> String {
    let server = format!("https://{}:{}", host.internal_address, ControlPlaneEndpoint::API_SERVER_PORT);
    let variables = [("server", server.as_str()), ("node", &host.name), ("again", ""), ("manifests", WRITE)];
    script(&variables, RESTART)
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::RESTART;
    use crate::{shell::script, testing};

    const OLD_IS_READY: &str = "echo 'true containerd://old'";

    /// Runs the script with a runtime and an API of these words below a directory that stands for the host's. Before it,
    /// all parts run in container "old". The scheduler gets another manifest, or is to start again with the one it has.
    /// Whether it succeeds, what it says, and how often it looks.
    fn restart_with(manifests: bool, crictl: &str, pod: &str, api_pod: &str) -> (bool, String, usize) {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().display().to_string();
        let program = |name: &str, text: &str| testing::program(directory.path(), name, text);
        for part in ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
            fs::write(directory.path().join(format!("{part}.yaml")), "old").unwrap();
        }
        let (again, manifests) = if manifests { ("", super::WRITE) } else { ("kube-scheduler", "") };
        program("systemctl", &format!("echo \"$*\" >>{here}/calls; touch {here}/changed"));
        program("kubeadm", &format!("echo new >{here}/kube-scheduler.yaml; touch {here}/changed"));
        program(
            "crictl",
            &format!(
                "for last; do :; done\ncase \"$*\" in *inspect*) echo \"pod-${{last%-again}}\"; exit ;; *stop*) echo \"$*\" >>{here}/calls; touch {here}/changed; exit ;; esac\n[ -e {here}/changed ] || {{ echo old; exit; }}\ncase \"$*\" in *scheduler*) ;; logs*) echo 'unknown flag: --x'; exit ;; *) echo old; exit ;; esac\n{crictl}"
            ),
        );
        program(
            "kubectl",
            &format!(
                "case \"$*\" in *scheduler*) {pod} ;; *apiserver*) {api_pod} ;; *manager*) {OLD_IS_READY} ;; esac"
            ),
        );
        program("sleep", "exit 0");
        let text = script(
            &[
                ("server", "https://192.0.2.1:6443"),
                ("node", "node1"),
                ("again", again),
                ("manifests", manifests),
            ],
            RESTART,
        )
        .replace("/etc/kubernetes/manifests", &here);
        // A clock of the test: a second a look.
        let library =
            "kk_uptime() { echo . >>ticks; wc -l <ticks; }; kk_fail() { echo \"$*\" >&2; return 1; }";
        let output = Command::new("sh")
            .args(["-euc", &format!("{library}\n{text}")])
            .current_dir(directory.path())
            .env("PATH", format!("{here}:/usr/bin:/bin"))
            .output()
            .unwrap();
        let looks = fs::read_to_string(directory.path().join("ticks")).unwrap().lines().count();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned(), looks)
    }

    /// The same for another manifest.
    fn restart(crictl: &str, pod: &str) -> (bool, String, usize) {
        restart_with(true, crictl, pod, OLD_IS_READY)
    }

    /// Its pod in the API lags behind its process: "Pending" until the kubelet has reported it.
    #[test]
    fn an_api_server_that_answers_is_ready_when_its_pod_is() {
        let new = "echo 'true containerd://new'";
        let late = format!("[ \"$(wc -l <ticks)\" -lt 5 ] || {OLD_IS_READY}");
        let (ok, said, looks) = restart_with(true, "echo new", new, &late);
        assert!(ok && looks >= 5, "{said}, {looks} looks");
        for never in ["exit 0", "echo 'false containerd://old'", "echo 'true containerd://before'"] {
            let (ok, said, _) = restart_with(true, "echo new", new, never);
            assert!(!ok && said.contains("kube-apiserver does not become ready"), "{said}");
        }
    }

    #[test]
    fn a_part_that_is_to_start_again_is_stopped_and_waited_for() {
        let (ok, said, _) = restart_with(false, "echo new", "echo 'true containerd://new'", OLD_IS_READY);
        assert!(ok, "{said}");
        let (ok, said, _) = restart_with(false, "echo old", OLD_IS_READY, OLD_IS_READY);
        assert!(!ok && said.contains("kube-scheduler does not become ready"), "{said}");
    }

    #[test]
    fn a_part_whose_new_container_is_ready_is_enough() {
        let (ok, said, _) = restart("echo new", "echo 'true containerd://new'");
        assert!(ok, "{said}");
    }

    #[test]
    fn the_container_of_before_does_not_count() {
        let (ok, said, _) = restart("echo old", "echo 'true containerd://old'");
        assert!(!ok && said.contains("kube-scheduler does not become ready with these settings"), "{said}");
    }

    #[test]
    fn the_pod_of_before_does_not_count_when_its_container_starts_once_more() {
        let (ok, said, _) = restart("echo old-again", "echo 'true containerd://old-again'");
        assert!(!ok && said.contains("kube-scheduler does not become ready"), "{said}");
    }

    #[test]
    fn a_container_that_is_not_ready_does_not_count() {
        let (ok, said, _) = restart("echo new", "echo 'false containerd://new'");
        assert!(!ok && said.contains("does not become ready"), "{said}");
    }

    /// The kubelet keeps only the last container that ended: at each look there is another one.
    #[test]
    fn a_part_that_keeps_ending_is_given_up_with_its_last_words() {
        let crictl = "case \"$*\" in *running*) ;; *) echo \"ended$(wc -l <ticks)\"; echo old ;; esac";
        let (ok, said, looks) = restart(crictl, "exit 1");
        assert!(!ok && said.contains("these settings: unknown flag: --x"), "{said}");
        assert!(looks < 10, "{looks} looks");
    }
}
