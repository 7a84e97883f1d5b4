//! Take back everything that is recorded on the host: files, folders, units, users, kernel settings, swap.

use kk_connector::quote;
use kk_engine::{HostWork, Kind, Task, actions::Command};

use super::{Removal, removed};

/// Paths of the runtime, which stays unless `--all` is given, beside its data. An extended regular expression.
/// `/etc/cni` is among them: containerd ends when the folder that it watches goes.
const RUNTIME: &str = "containerd|\t/etc/cni|/usr/local/bin/(ctr|runc|crictl)$|/etc/crictl.yaml$";

/// The whole expression. A folder of the user's choosing is taken letter by letter.
fn runtime(data: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-".contains(c);
    let plain: String =
        data.chars().map(|c| if is_plain(c) { c.to_string() } else { format!("[{c}]") }).collect();
    format!("{RUNTIME}|\t{plain}(\t|$)")
}

/// Whether a line of the record belongs to the runtime, whose data is in the folder `data`.
pub(super) fn is_runtime(line: &str, data: &str) -> bool {
    line.contains("containerd")
        || line.split('\t').nth(1) == Some(data)
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
            let data = &removal.spec.registry.containerd_data_dir;
            let keep = if removal.all { String::new() } else { format!(" {}", quote(&runtime(data))) };
            // The file comes back by itself; what the kernel does now does not.
            let enforced = removal.facts[&host.name].owned.has(Kind::Saved, "/etc/selinux/config");
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{is_runtime, runtime};

    #[test]
    fn the_expression_and_the_function_agree() {
        let data = "/srv/a.b";
        for (line, kept) in [
            ("dir\t/srv/a.b", true),
            ("attr\t/srv/a.b\t755\troot:root", true),
            ("dir\t/srv/axb", false),
            ("dir\t/srv/a.b/c", false),
            ("made\t/usr/local/bin/runc", true),
            ("made\t/usr/local/bin/kubelet", false),
            ("dir\t/etc/cni/net.d", true),
        ] {
            let script = r#"printf '%s\n' "$1" | grep -qE -e "$2""#;
            let found = Command::new("sh").args(["-c", script, "sh", line, &runtime(data)]).status().unwrap();
            assert_eq!((found.success(), is_runtime(line, data)), (kept, kept), "{line}");
        }
    }
}
