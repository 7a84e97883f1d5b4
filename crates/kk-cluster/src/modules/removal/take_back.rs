//! Take back everything that is recorded on the host: files, folders, units, users, kernel settings, swap.

use kk_engine::{HostWork, Task, actions::Command};

use super::{Removal, removed};

/// Paths of the runtime, which stays unless `--all` is given. An extended regular expression.
/// `/etc/cni` is among them: containerd ends when the folder that it watches goes.
const RUNTIME: &str = "containerd|\t/etc/cni|/usr/local/bin/(ctr|runc|crictl)$|/etc/crictl.yaml$";

/// Whether a line of the record belongs to the runtime.
pub(super) fn is_runtime(line: &str) -> bool {
    line.contains("containerd")
        || line.contains("\t/etc/cni")
        || ["/usr/local/bin/ctr", "/usr/local/bin/runc", "/usr/local/bin/crictl", "/etc/crictl.yaml"]
            .iter()
            .any(|path| line.ends_with(path))
}

/// The last thing on each host.
pub(super) fn task(removal: &Removal) -> Task {
    let mut task = Task::new("take_back", "Restore the host");
    for host in &removal.spec.hosts {
        let mut work = HostWork::default().provides(removed(&host.name).key());
        if removal.is_needed(host) {
            let keep = if removal.all { String::new() } else { format!(" '{RUNTIME}'") };
            // The file comes back by itself; what the kernel does now does not.
            let enforced =
                removal.facts[&host.name].owned.iter().any(|line| line == "saved\t/etc/selinux/config");
            let enforce = if enforced { "setenforce 1 || :\n" } else { "" };
            let script = format!(
                "kk_disown_all{keep}\n{enforce}systemctl reset-failed etcd.service kubelet.service containerd.service 2>/dev/null || :\n[ ! -s /etc/hostname ] || [ \"$(cat /etc/hostname)\" = \"$(hostname)\" ] || hostname \"$(cat /etc/hostname)\"\n"
            );
            work.actions
                .push(Box::new(Command::new("restore what was replaced, remove what was made", script)));
        }
        task = task.on(&host.name, work);
    }
    task
}
