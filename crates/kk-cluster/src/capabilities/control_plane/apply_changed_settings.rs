//! Apply changed settings to control planes that already run.

use kk_config::{Host, Role};
use kk_engine::{Action, Facts, HostWork, SlotKey, Task, actions::Command};

use super::{
    RESTART,
    certificate::{RENEWED, renew},
    manifests::{self, MANIFESTS, Manifests, RECORD, WRITE},
    note::{note, only_members_are_changed, path},
};
use crate::{
    base::{api_server, host_layout::KUBECTL, shell::script, slots},
    model::{inputs::Inputs, kubeadm},
};

/// Each control plane has a note of the settings that were last applied there. A cluster without notes was just created by the
/// previous tasks with these settings. Control planes that the command otherwise leaves as they are still get changed members of
/// etcd.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("apply_changed_settings", "Apply changed settings").concurrency(1);
    for (host, facts) in hosts(inputs) {
        let note = note(inputs, host);
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        let runs = runs(inputs, host);
        if runs && note.check(facts).is_needed() {
            actions.push(Box::new(
                Command::new("apply changed settings of the control plane", apply(host))
                    .files(kubeadm::manifest_files(inputs, host)),
            ));
        } else if runs && manifests::differ(inputs, host) {
            let text = format!("{KUBECTL}{}{RECORD}", restart(host));
            actions.push(Box::new(
                Command::new("write the manifests of the control plane again", text)
                    .files(kubeadm::manifest_files(inputs, host)),
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

/// The slots that a joining node waits for: an API server that restarts in the meantime would interrupt the join.
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

/// Renames the note first: until the new settings work, no file may look like a note of applied settings, not even the previous
/// note. The renamed file still shows that the control plane was initialised. Then renews the certificate, writes the manifests
/// again, and waits until API server, controller manager and scheduler are ready with them. With `concurrency(1)`, the other
/// control planes answer in the meantime.
fn apply(host: &Host) -> String {
    format!(
        "[ ! -e {0} ] || mv -f {0} {0}.replaced\n{KUBECTL}{1}{2}{RENEWED}{RECORD}",
        path(),
        renew(&["apiserver"]),
        restart(host),
    )
}

fn restart(host: &Host) -> String {
    let server = api_server::url(host);
    let variables = [("server", server.as_str()), ("node", &host.name), ("again", ""), ("manifests", WRITE)];
    script(&variables, RESTART)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{RESTART, WRITE};
    use crate::{base::shell::script, testing};

    const OLD_IS_READY: &str = "echo 'true containerd://old'";

    /// Each component has its old container until its manifest is removed. Then the container of the scheduler is what these
    /// commands print.
    const CRICTL: &str = r#"
        cd HERE
        for last; do :; done
        part=${last#io.kubernetes.pod.name=} part=${part%-node1}
        case "$*" in
        logs*) echo 'unknown flag: --x'; exit ;;
        inspectp*) echo "uid-${last#pod-}"; exit ;;
        *rmp*) ls "pods/uid-${last#pod-}" manifests *.forgotten >>removed 2>&1; exit ;;
        stop*) exit ;;
        pods*) echo "pod-$part"; exit ;;
        esac
        if [ ! -e $part.noticed ]; then case "$*" in *exited*) ;; *) echo old ;; esac; exit; fi
        [ -e manifests/$part.yaml ] || exit 0
        SCHEDULER"#;

    /// Runs the script with this runtime and API below a directory that represents the root directory of a host. At first, all
    /// components run in container "old". The scheduler gets another manifest (`manifests`), or must restart with its current
    /// one. Returns whether the script succeeds, its output, and the number of its queries.
    fn restart_with(manifests: bool, crictl: &str, pod: &str, api_pod: &str) -> (bool, String, usize) {
        let host = Host::new(crictl, pod, api_pod);
        let (ok, said) = host.run(manifests);
        (ok, said, host.read("ticks").lines().count())
    }

    struct Host(tempfile::TempDir);

    impl Host {
        fn new(crictl: &str, pod: &str, api_pod: &str) -> Self {
            let host = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(host.path("manifests")).unwrap();
            for part in ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
                fs::write(host.path(&format!("manifests/{part}.yaml")), "old\n").unwrap();
                fs::create_dir_all(host.path(&format!("pods/uid-{part}"))).unwrap();
            }
            host.program(
                "unshare",
                "for word; do staged=$last; last=$word; done; echo new >\"$staged/kube-scheduler.yaml\"",
            );
            host.program("systemctl", "echo \"$*\" >>HERE/units");
            host.program("crictl", &CRICTL.replace("SCHEDULER", crictl));
            host.program(
                "kubectl",
                &format!("case \"$*\" in *scheduler*) {pod} ;; *apiserver*) {api_pod} ;; *manager*) {OLD_IS_READY} ;; esac"),
            );
            // Simulates the kubelet: it notices a removed manifest, removes the directory of the pod a moment later, and then
            // forgets the pod.
            host.program(
                "sleep",
                "cd HERE; for part in kube-apiserver kube-controller-manager kube-scheduler; do
                    [ ! -e manifests/$part.yaml ] || continue
                    [ -e pods/uid-$part ] || touch $part.forgotten
                    [ ! -e $part.noticed ] || rm -rf pods/uid-$part
                    touch $part.noticed
                done",
            );
            host
        }

        fn path(&self, name: &str) -> std::path::PathBuf {
            self.0.path().join(name)
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.path(name)).unwrap_or_default()
        }

        fn program(&self, name: &str, text: &str) {
            testing::program(
                self.0.path(),
                name,
                &text.replace("HERE", &self.path("").display().to_string()),
            );
        }

        fn run(&self, manifests: bool) -> (bool, String) {
            let here = self.0.path().display().to_string();
            let (again, manifests) = if manifests { ("", WRITE) } else { ("kube-scheduler", "") };
            let variables = [
                ("server", "https://192.0.2.1:6443"),
                ("node", "node1"),
                ("again", again),
                ("manifests", manifests),
            ];
            let text = script(&variables, RESTART)
                .replace("/etc/kubernetes/kubekey", &format!("{here}/kubekey"))
                .replace("/etc/kubernetes", &here)
                .replace("/var/lib/kubelet", &here);
            // The clock of the test, which advances one second at each query.
            let library =
                "kk_uptime() { echo . >>ticks; wc -l <ticks; }; kk_fail() { echo \"$*\" >&2; return 1; }";
            let output = testing::run_script(self.0.path(), &format!("{library}\n{text}"));
            (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// The same for a changed manifest.
    fn restart(crictl: &str, pod: &str) -> (bool, String, usize) {
        restart_with(true, crictl, pod, OLD_IS_READY)
    }

    /// The status of the pod lags behind the process: it is "Pending" until the kubelet has reported it.
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

    /// Otherwise, the kubelet starts the new pod late, and continues the back-off of the old pod.
    #[test]
    fn the_manifest_comes_when_the_kubelet_has_forgotten_the_pod_and_its_sandboxes_are_removed() {
        let host = Host::new("echo new", "echo 'true containerd://new'", OLD_IS_READY);
        let (ok, said) = host.run(true);
        assert!(ok, "{said}");
        let there = host.read("removed");
        assert!(there.contains("No such file") && there.contains("kube-apiserver.yaml"), "{there}");
        assert!(there.contains("kube-scheduler.forgotten"), "{there}");
        assert!(!there.contains("kube-scheduler.yaml"), "{there}");
        assert_eq!(host.read("manifests/kube-scheduler.yaml"), "new\n");
        assert_eq!(host.read("units"), "start kubelet.service\n");
        assert!(!host.path("kubekey/manifests").exists() && !host.path("kube-apiserver.noticed").exists());
    }

    #[test]
    fn a_pod_that_the_kubelet_does_not_end_is_an_error_and_its_manifest_is_not_lost() {
        let host = Host::new("echo new", "echo 'true containerd://new'", OLD_IS_READY);
        host.program("sleep", "exit 0");
        let (ok, said) = host.run(true);
        assert!(!ok && said.contains("the kubelet has not ended the pod of kube-scheduler"), "{said}");
        assert_eq!(
            (host.read("manifests/kube-scheduler.yaml").as_str(), host.read("removed").as_str()),
            ("new\n", "")
        );
    }

    /// The kubelet would not end the old pod.
    #[test]
    fn without_the_api_a_part_starts_anew_while_the_kubelet_is_stopped() {
        let host = Host::new("echo new", OLD_IS_READY, "echo 'true containerd://new'");
        host.program(
            "unshare",
            "for word; do staged=$last; last=$word; done; echo new >\"$staged/kube-apiserver.yaml\"",
        );
        host.program(
            "systemctl",
            "cd HERE; echo \"$*\" >>units; case $1 in stop) touch kube-apiserver.noticed ;; esac",
        );
        let pods = "*scheduler*|*manager*) echo 'true containerd://old' ;; *) echo 'true containerd://new'";
        host.program(
            "kubectl",
            &format!("case \"$*\" in *readyz*) [ -e HERE/kube-apiserver.noticed ] ;; {pods} ;; esac"),
        );
        // Nothing else removes the pod.
        host.program("sleep", "exit 0");
        let (ok, said) = host.run(true);
        assert!(ok, "{said}");
        assert_eq!(
            host.read("units"),
            "start kubelet.service\nstop kubelet.service\nstart kubelet.service\n"
        );
        assert!(host.read("removed").contains("uid-kube-apiserver"), "{}", host.read("removed"));
        assert_eq!(host.read("manifests/kube-apiserver.yaml"), "new\n");
    }

    #[test]
    fn without_room_for_a_manifest_the_kubelet_goes_on_with_that_of_before() {
        let host = Host::new("echo new", OLD_IS_READY, OLD_IS_READY);
        host.program(
            "unshare",
            "for word; do staged=$last; last=$word; done; echo new >\"$staged/kube-apiserver.yaml\"",
        );
        host.program("kubectl", "exit 1");
        host.program("cp", "case \"$*\" in */.kube-*) exit 1 ;; *) exec /bin/cp \"$@\" ;; esac");
        let (ok, said) = host.run(true);
        assert!(!ok, "{said}");
        assert_eq!(
            host.read("units"),
            "start kubelet.service\nstop kubelet.service\nstart kubelet.service\n"
        );
        assert_eq!(host.read("manifests/kube-apiserver.yaml"), "old\n");
    }

    #[test]
    fn without_room_for_a_manifest_that_of_before_stays_in_its_place() {
        let host = Host::new("echo new", "echo 'true containerd://new'", OLD_IS_READY);
        host.program("cp", "case \"$*\" in */.kube-*) exit 1 ;; *) exec /bin/cp \"$@\" ;; esac");
        let (ok, said) = host.run(true);
        assert!(!ok, "{said}");
        assert_eq!(host.read("manifests/kube-scheduler.yaml"), "old\n");
        assert!(!host.path("kube-scheduler.noticed").exists(), "its manifest was away");
    }

    /// The host lost power while the manifest was removed.
    #[test]
    fn a_manifest_that_was_away_when_a_run_ended_comes_back() {
        let host = Host::new("echo new", "echo 'true containerd://new'", OLD_IS_READY);
        fs::create_dir_all(host.path("kubekey/manifests")).unwrap();
        fs::rename(
            host.path("manifests/kube-scheduler.yaml"),
            host.path("kubekey/manifests/kube-scheduler.yaml"),
        )
        .unwrap();
        let (ok, said) = host.run(false);
        assert!(ok, "{said}");
        assert_eq!(host.read("manifests/kube-scheduler.yaml"), "old\n");
        fs::remove_file(host.path("manifests/kube-scheduler.yaml")).unwrap();
        let (ok, said) = host.run(false);
        assert!(!ok && said.contains("kube-scheduler.yaml is not there"), "{said}");
    }

    /// The kubelet would start the component only after minutes.
    #[test]
    fn a_part_that_does_not_run_starts_anew_though_it_has_its_manifest() {
        let host = Host::new("echo new", "echo 'true containerd://new'", OLD_IS_READY);
        host.program("unshare", "exit 0");
        let crictl = CRICTL
            .replace("SCHEDULER", "echo new")
            .replace("*exited*) ;;", "*exited*) ;; *running*scheduler*) ;;");
        host.program("crictl", &crictl);
        let (ok, said) = host.run(true);
        assert!(ok && host.path("kube-scheduler.noticed").exists(), "{said}");
    }

    #[test]
    fn a_container_that_is_not_ready_does_not_count() {
        let (ok, said, _) = restart("echo new", "echo 'false containerd://new'");
        assert!(!ok && said.contains("does not become ready"), "{said}");
    }

    /// The kubelet keeps only the last container that ended, so each query finds another container.
    #[test]
    fn a_part_that_keeps_ending_is_given_up_with_its_last_words() {
        let crictl = "case \"$*\" in *running*) ;; *) echo \"ended$(wc -l <ticks)\"; echo old ;; esac";
        let (ok, said, looks) = restart(crictl, "exit 1");
        assert!(!ok && said.contains("these settings: unknown flag: --x"), "{said}");
        assert!(looks < 10, "{looks} looks");
    }
}
