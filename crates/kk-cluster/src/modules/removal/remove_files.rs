//! Remove files that the cluster's programs wrote.

use std::fmt::Write as _;

use kk_connector::quote;
use kk_engine::{HostWork, Kind, Task, actions::Command};

use super::Removal;

/// Folders whose content is the cluster's alone. The folders themselves go when they were made by this program.
const CONTENT: &[&str] = &["/var/lib/kubelet", "/run/flannel", "/var/log/pods", "/var/log/containers"];

/// What kubeadm (`cmd/kubeadm/app/constants`) and this program write below `/etc/kubernetes`. Files that people put
/// beside it are theirs.
const KUBERNETES: &str = "
(
    cd /etc/kubernetes 2>/dev/null || exit 0
    rm -f admin.conf super-admin.conf kubelet.conf bootstrap-kubelet.conf controller-manager.conf scheduler.conf
    for name in apiserver controller-manager scheduler; do rm -f manifests/kube-$name.yaml; done
    for name in ca apiserver apiserver-kubelet-client front-proxy-ca front-proxy-client; do
        rm -f pki/$name.crt pki/$name.key
    done
    rm -f pki/sa.key pki/sa.pub
    rm -rf tmp kubekey
    rmdir manifests pki/etcd pki 2>/dev/null || :
)
";

/// `empty FOLDER`: never across a mount. What is mounted from the same file system looks like a part of the folder to
/// `find`, so a volume that is still there stops it.
const EMPTY: &str = r#"
empty() {
    [ -d "$1" ] || return 0
    real=$(readlink -f "$1") || return
    if KK_D=$real/ awk 'index($5, ENVIRON["KK_D"]) == 1 { any = 1 } END { exit !any }' /proc/self/mountinfo; then
        kk_fail "something is still mounted below $1: unmount it, and run again"
        return 1
    fi
    find "$real" -xdev -mindepth 1 -delete
}
"#;

/// Of a folder that was there before, only what the cluster's network keeps in it: other programs use CNI, too.
const CNI_STATE: &str =
    "rm -rf /var/lib/cni/flannel /var/lib/cni/networks/cbr0 /var/lib/cni/results/cbr0-*\n";

/// Never across a file system: a volume that is still mounted keeps its data.
pub(super) fn task(removal: &Removal) -> Task {
    let mut task = Task::new("remove_files", "Remove files");
    for host in removal.hosts().into_iter().filter(|host| host.is_node()) {
        let mut folders = CONTENT.to_vec();
        let mut script = EMPTY.to_owned();
        if removal.all {
            script.push_str("systemctl disable -q --now containerd.service 2>/dev/null || :\n");
            script.push_str(
                "pkill -KILL -f '^/usr/local/bin/containerd-shim-runc-v2 -namespace k8s.io' || :\n",
            );
            script.push_str("awk '{ print $5 }' /proc/self/mountinfo | grep '^/run/containerd/' | sort -r | xargs -r -n 1 umount -l 2>/dev/null || :\n");
            script.push_str(&remove_data(&removal.spec.registry.containerd_data_dir));
            folders.push("/run/containerd");
        }
        if removal.facts[&host.name].owned.has(Kind::Dir, "/var/lib/cni") {
            folders.push("/var/lib/cni");
        } else {
            script.push_str(CNI_STATE);
        }
        for folder in folders {
            let _ = writeln!(script, "empty {folder}");
        }
        script.push_str(KUBERNETES);
        script.push_str("rm -f /etc/cni/net.d/10-flannel.conflist /opt/cni/bin/flannel /run/xtables.lock\n");
        let remove = Command::new("remove files of the cluster", script);
        task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
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

    use super::{EMPTY, remove_data};

    #[test]
    fn a_folder_with_a_mount_below_it_is_not_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let data = fs::canonicalize(&folder).unwrap().join("kubelet");
        let mounts = folder.path().join("mounts");
        for (mounted, emptied) in
            [("kubelet/pods/1/volumes/mine", false), ("kubelet-2/x", true), ("kubelet", true)]
        {
            fs::create_dir_all(data.join("pods/1/volumes/mine")).unwrap();
            let point = data.with_file_name(mounted);
            fs::write(&mounts, format!("36 35 98:0 / {} rw - ext4 /dev/sda1 rw\n", point.display())).unwrap();
            let empty = EMPTY.replace("/proc/self/mountinfo", mounts.to_str().unwrap());
            let script = format!("kk_fail() {{ return 1; }}\n{empty}\nempty {}", data.display());
            let done = Command::new("sh").args(["-euc", &script]).status().unwrap();
            assert_eq!(done.success(), emptied, "{mounted}");
            assert_eq!(data.join("pods").exists(), !emptied, "{mounted}");
        }
    }

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
