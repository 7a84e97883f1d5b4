//! Directories on hosts: each belongs to one component only. If one is inside another, the mode of the outer directory blocks
//! access to the inner one, and removing the outer directory removes both.

use super::syntax;
use crate::findings::{At, Findings};
use crate::spec::{Kubernetes, Registry};
use crate::v1alpha2::Etcd;
use std::path::Path;

/// Directories that components of a node use in any case.
const TAKEN: [(&str, &str); 7] = [
    ("the kubelet", "/var/lib/kubelet"),
    ("Kubernetes", "/etc/kubernetes"),
    ("the certificates of etcd", "/etc/ssl/etcd"),
    ("containerd's settings", "/etc/containerd"),
    ("CNI", "/etc/cni"),
    ("CNI", "/opt/cni"),
    ("CNI", "/var/lib/cni"),
];

/// Directories that do not keep data, and the reason.
const LOST: [(&str, &str); 7] = [
    ("/tmp", "systemd removes old files there, and a restart of the host can empty it"),
    ("/var/tmp", "systemd removes old files there"),
    ("/run", EMPTIED),
    ("/var/run", EMPTIED),
    ("/dev", EMPTIED),
    ("/proc", OF_KERNEL),
    ("/sys", OF_KERNEL),
];
const EMPTIED: &str = "a restart of the host empties it";
const OF_KERNEL: &str = "only the kernel makes files there";

struct Directory<'a> {
    what: &'static str,
    path: &'a str,
    at: At<'a>,
}

pub(super) fn check(
    (etcd, registry, kubernetes): (&Etcd, &Registry, &Kubernetes),
    has_registry: bool,
    spec: At<'_>,
    out: &mut Findings<'_>,
) {
    let mut all = vec![
        Directory { what: "etcd", path: &etcd.data_dir, at: spec.key("etcd").key("dataDir") },
        Directory { what: "etcd's backups", path: &etcd.backup_dir, at: spec.key("etcd").key("backupDir") },
        Directory {
            what: "containerd",
            path: &registry.containerd_data_dir,
            at: spec.key("registry").key("containerdDataDir"),
        },
    ];
    if has_registry {
        let at = spec.key("registry").key("registryDataDir");
        all.push(Directory { what: "the registry", path: &registry.registry_data_dir, at });
    }
    if let Some(path) = kubernetes.kubelet_args.get("root-dir") {
        let at = spec.key("kubernetes").key("kubeletArgs");
        syntax::check_data_directory(path, "the kubelet's directory", at, out);
        all.push(Directory { what: "the kubelet", path, at });
    }
    // An invalid path was reported already.
    all.retain(|directory| syntax::is_data_directory(directory.path));
    for (i, one) in all.iter().enumerate() {
        for other in all[..i].iter().filter(|other| overlap(one.path, other.path)) {
            let message = format!(
                "the directories of {} (`{}`) and {} (`{}`) overlap",
                one.what, one.path, other.what, other.path
            );
            // The directory in the file is at fault, not a default.
            let at = if one.at.is_value() { one.at } else { other.at };
            out.error(at, message, "give each a directory of its own");
        }
        let taken = TAKEN.iter().filter(|(owner, _)| *owner != one.what);
        for (owner, path) in taken.filter(|(_, path)| overlap(one.path, path)) {
            let message =
                format!("`{}` of {} is in or above `{path}`, which belongs to {owner}", one.path, one.what);
            out.error(one.at, message, "give it a directory of its own");
        }
        if let Some((lost, why)) = LOST.iter().find(|(lost, _)| Path::new(one.path).starts_with(lost)) {
            let message = format!("`{}` of {} is below `{lost}`: {why}", one.path, one.what);
            out.error(one.at, message, "give a directory on a disk");
        }
    }
}

fn overlap(one: &str, two: &str) -> bool {
    let (one, two) = (Path::new(one), Path::new(two));
    one.starts_with(two) || two.starts_with(one)
}
