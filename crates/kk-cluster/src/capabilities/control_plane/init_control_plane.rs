//! Initialise the control plane.

use std::time::Duration;

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{
    Action, HostWork, Task,
    actions::{Command, Unit, WaitUntil},
};

use super::{
    certificate::{RENEWED, renew},
    manifests, note,
};
use crate::{
    base::{
        api_server,
        host_layout::{DROP_COPIES, KUBECTL},
        shell::script,
        slots,
    },
    model::{inputs::Inputs, kubeadm},
};

const REPLACE: &str = include_str!("replace_manifests.sh");

/// Runs `kubeadm init` without its add-ons, which are installed when the nodes have joined. Among images and binaries, the task
/// waits only for its own.
///
/// After a failure, nothing is reset: the phases of kubeadm continue with what exists, and the data of etcd must not be touched.
/// A control plane that was initialised once is never initialised again, even if its API is down.
pub(super) fn task(inputs: &Inputs) -> Task {
    let host = inputs.api_host;
    let is_down = inputs.is_initialised() && !inputs.state.answered;
    let actions: Vec<Box<dyn Action>> = if is_down {
        bring_back(inputs, host)
    } else if inputs.is_initialised() {
        Vec::new()
    } else {
        vec![Box::new(init(inputs, host))]
    };
    let mut work = HostWork::new(actions)
        .needs(slots::runtime_slot(&host.name))
        .needs(slots::kube_programs_slot(&host.name))
        .provides(slots::initialised_slot())
        .provides(slots::joined_slot(&host.name));
    if is_down {
        work = work.needs(slots::node_tools_slot(&host.name));
    }
    if !inputs.options.skip_pull_images {
        work = work.needs(slots::control_plane_images_slot(&host.name));
    }
    for (member, _) in inputs.etcd_hosts() {
        work = work.needs(slots::etcd_healthy_slot(&member.name));
    }
    Task::new("init_control_plane", "Initialise the control plane")
        .timeout(Duration::from_mins(10))
        .on(&host.name, work)
}

/// kubeadm keeps an existing certificate, whatever names it contains. Therefore the certificate of the API server is removed
/// first: the file may have changed since a killed run.
fn init(inputs: &Inputs, host: &Host) -> Command {
    let script = format!(
        "mkdir -p -m 755 /etc/kubernetes\nrm -f /etc/kubernetes/pki/apiserver.crt /etc/kubernetes/pki/apiserver.key\n\
         kk_do kubeadm init --config init.yaml --skip-phases=addon --ignore-preflight-errors={}\n{DROP_COPIES}",
        quote(&kubeadm::ignored_checks(inputs, host))
    );
    Command::new("initialise the control plane (kubeadm init)", script)
        .file("init.yaml", kubeadm::init_documents(inputs, host, &inputs.token).into_bytes())
        .files(kubeadm::probe_patches())
        .hint("port", "another program listens there: stop it and run again")
        .hint("ErrImageNeverPull", "an image is missing on the host: run again")
        .hint(
            "",
            "see \"journalctl -u kubelet\" and \"crictl ps -a\" on the host; run again when it is repaired",
        )
}

/// Restores a control plane whose API is down: its kubelet starts, and settings with which the last run could not start it are
/// replaced by the settings of the file. Nothing is uploaded before the API answers. An API server that is merely too slow for
/// the probe gets the settings later, like an API server that has answered.
fn bring_back(inputs: &Inputs, host: &Host) -> Vec<Box<dyn Action>> {
    let mut actions: Vec<Box<dyn Action>> = vec![Box::new(Unit::started("kubelet.service"))];
    let replace = || script(&[("node", host.name.as_str())], REPLACE);
    let text = if note::is_changed(inputs, host) {
        Some(format!("{}{}{RENEWED}", renew(&["apiserver"]), replace()))
    } else {
        manifests::differ(inputs, host).then(replace)
    };
    if let Some(text) = text {
        actions.push(Box::new(
            Command::new("write the manifests of the control plane", unless_it_answers(host, &text))
                .files(kubeadm::manifest_files(inputs, host)),
        ));
    }
    let answers = format!("{KUBECTL}kubectl --request-timeout 5s get --raw /readyz >/dev/null");
    actions.push(Box::new(WaitUntil::new("the API answers", answers).within(Duration::from_mins(4)).hint(
        "",
        "the control plane was initialised before, so it is not initialised again: see \"crictl ps -a\" and \"journalctl -u kubelet\" on the host",
    )));
    actions.push(Box::new(
        Command::new(
            "make sure that administrators have their rights",
            format!("{KUBECTL}{}", include_str!("restore_rights.sh")),
        )
        .file("config.yaml", kubeadm::phase_documents(inputs, host).into_bytes()),
    ));
    actions
}

/// Runs the text if the API server of this control plane does not answer.
fn unless_it_answers(host: &Host, text: &str) -> String {
    let server = api_server::url(host);
    let asks = script(&[("server", &server)], include_str!("is_alive.sh"));
    format!("{KUBECTL}{asks}if ! is_alive; then\n{text}\nfi\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{REPLACE, unless_it_answers};
    use crate::{base::shell::script, testing};

    /// The probe of a large cluster queries more, and may not get the answer in time.
    #[test]
    fn an_api_server_that_answers_slowly_is_not_taken_down() {
        for (kubectl, runs_on) in [
            ("exit 0", true),
            // The first answer is too late.
            ("[ -e asked ] || { : >asked; exit 124; }", true),
            ("echo refused >&2; exit 1", false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            testing::program(directory.path(), "kubectl", &format!("echo \"$*\" >>words; {kubectl}"));
            let host = testing::sample("three-nodes.yaml").hosts[0].clone();
            let output = testing::run_script(directory.path(), &unless_it_answers(&host, ": >replaced\n:"));
            assert!(output.status.success(), "{output:?}");
            assert_eq!(!directory.path().join("replaced").exists(), runs_on, "{kubectl}");
            let words = fs::read_to_string(directory.path().join("words")).unwrap();
            let server = format!("--server https://{}:6443 ", host.internal_address);
            assert!(words.lines().all(|line| line.contains(&server) && line.ends_with(" /livez")), "{words}");
        }
    }

    /// Runs the script with commands that record their arguments, one of which fails. Returns whether the script succeeds, and
    /// the record.
    fn replace(fails: &str) -> (bool, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let done = directory.path().join("done");
        for (name, prints) in
            [("systemctl", ""), ("kubeadm", ""), ("crictl", "pods*) echo \"pod-${last#*=}\" ;;")]
        {
            let text = format!(
                "for last; do :; done; echo \"{name} $*\" >>{}; case \"{name} $*\" in {fails}) exit 1 ;; esac; case \"$*\" in {prints} *) ;; esac",
                done.display()
            );
            testing::program(directory.path(), name, &text);
        }
        let output = testing::run_script(directory.path(), &script(&[("node", "node1")], REPLACE));
        let lines = fs::read_to_string(done).unwrap().lines().map(str::to_owned).collect();
        (output.status.success(), lines)
    }

    #[test]
    fn pods_go_and_manifests_come_while_the_kubelet_is_stopped() {
        let (ok, done) = replace("nothing");
        assert!(ok, "{done:?}");
        let asked = |line: &String| line.starts_with("crictl pods ");
        let wanted = [
            "systemctl stop kubelet.service",
            "crictl --timeout 60s rmp -f pod-kube-apiserver-node1",
            "crictl --timeout 60s rmp -f pod-kube-controller-manager-node1",
            "crictl --timeout 60s rmp -f pod-kube-scheduler-node1",
            "kubeadm init phase control-plane all --config config.yaml",
            "systemctl start kubelet.service",
        ];
        assert_eq!(done.into_iter().filter(|line| !asked(line)).collect::<Vec<_>>(), wanted);
    }

    /// Shows which rights administrators of a cluster without rights get, and with which account they are granted.
    #[test]
    fn administrators_without_rights_get_the_role_and_its_binding() {
        let directory = tempfile::tempdir().unwrap();
        for (can, made) in [("exit 0", false), ("exit 1", true)] {
            let text = format!(
                "case $* in *can-i*) {can} ;; *) echo \"$*\" >>done; for last; do :; done; cat \"$last\" >>done ;; esac"
            );
            testing::program(directory.path(), "kubectl", &text);
            testing::program(directory.path(), "kubeadm", "echo \"kubeadm $*\" >>done");
            let output = testing::run_script(directory.path(), include_str!("restore_rights.sh"));
            assert!(output.status.success(), "{output:?}");
            assert_eq!(directory.path().join("done").exists(), made);
        }
        let done = fs::read_to_string(directory.path().join("done")).unwrap();
        for words in [
            "kubeadm init phase kubeconfig super-admin",
            "--kubeconfig rights/super-admin.conf apply --server-side",
            "kind: ClusterRole\nmetadata:\n  name: cluster-admin\n",
            "kubernetes.io/bootstrapping: rbac-defaults",
            "kind: ClusterRoleBinding\nmetadata: {name: \"kubeadm:cluster-admins\"}",
        ] {
            assert!(done.contains(words), "{words} is not in {done}");
        }
    }

    /// An old pod that remains may occupy the port of the API server.
    #[test]
    fn what_fails_is_an_error_and_the_kubelet_goes_on() {
        for fails in ["*rmp*", "'crictl pods'*", "kubeadm*"] {
            let (ok, done) = replace(fails);
            assert!(!ok, "{fails}: {done:?}");
            assert_eq!(done.last().unwrap(), "systemctl start kubelet.service", "{fails}");
        }
    }
}
