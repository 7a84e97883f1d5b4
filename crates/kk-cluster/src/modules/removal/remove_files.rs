//! Remove files that the cluster's programs wrote.

use std::fmt::Write as _;

use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use super::Removal;

/// Folders whose content is the cluster's alone. The folders themselves go when they were made by this program.
const CONTENT: &[&str] = &[
    "/etc/kubernetes",
    "/var/lib/kubelet",
    "/var/lib/cni",
    "/run/flannel",
    "/var/log/pods",
    "/var/log/containers",
];

/// Never across a file system: a volume that is still mounted keeps its data.
pub(super) fn task(removal: &Removal) -> Task {
    let mut task = Task::new("remove_files", "Remove files");
    for host in removal.hosts() {
        let mut folders: Vec<String> = CONTENT.iter().map(|folder| (*folder).to_owned()).collect();
        let mut script = String::new();
        if removal.all {
            script.push_str("systemctl disable -q --now containerd.service 2>/dev/null || :\n");
            script.push_str(
                "pkill -KILL -f '^/usr/local/bin/containerd-shim-runc-v2 -namespace k8s.io' || :\n",
            );
            script.push_str("awk '{ print $5 }' /proc/self/mountinfo | grep '^/run/containerd/' | sort -r | xargs -r -n 1 umount -l 2>/dev/null || :\n");
            script.push_str(&remove_data(&removal.spec.registry.containerd_data_dir));
            folders.push("/run/containerd".to_owned());
        }
        for folder in folders {
            let _ = writeln!(script, "[ ! -d {0} ] || find {0} -xdev -mindepth 1 -delete", quote(&folder));
        }
        script.push_str("rm -f /etc/cni/net.d/10-flannel.conflist /opt/cni/bin/flannel /run/xtables.lock\n");
        let remove = Command::new("remove files of the cluster", script);
        if host.is_node() {
            task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
        }
    }
    task
}

/// Removes what containerd keeps, and nothing else: the folder is of the user's choosing and may hold more.
fn remove_data(folder: &str) -> String {
    format!(
        "[ ! -d {0} ] || (cd {0} && find . -xdev \\( -path './io.containerd.*' -o -path ./tmpmounts -o -path './tmpmounts/*' \\) -delete)\n",
        quote(folder)
    )
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::remove_data;

    #[test]
    fn of_the_runtimes_folder_only_what_the_runtime_made_goes() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("da ta");
        for made in ["io.containerd.snapshotter.v1.overlayfs/snapshots/1", "tmpmounts/x", "mine/deep"] {
            fs::create_dir_all(data.join(made)).unwrap();
            fs::write(data.join(made).join("file"), "").unwrap();
        }
        let script = remove_data(data.to_str().unwrap());
        assert!(Command::new("sh").args(["-euc", &script]).status().unwrap().success());
        let left: Vec<_> = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["mine"]);
        assert!(data.join("mine/deep/file").exists());
    }
}
