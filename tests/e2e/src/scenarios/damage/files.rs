//! The files that a create leaves on hosts. A file that is not in the list is an error, so that each new file gets a damage.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::context::Context;
use crate::host_state::{self, HostState, expect_none};
use crate::site::Site;

/// The treatment of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// A create writes it again, together with all others of this kind.
    Together,
    /// A create writes it again. Further files must be whole meanwhile: kk uses this one to inspect the host.
    Alone,
    /// It is not damaged, for this reason.
    Left(&'static str),
}

use Known::{Alone, Left, Together};

/// Paths, in which `*` stands for any text. The first match counts.
const FILES: &[(&str, Known)] = &[
    ("/etc/modules-load.d/99-kubekey.conf", Together),
    ("/etc/sysctl.d/99-kubekey.conf", Together),
    ("/etc/security/limits.d/99-kubekey.conf", Together),
    ("/etc/crictl.yaml", Together),
    ("/etc/containerd/config.toml", Together),
    ("/etc/containerd/certs.d/*", Together),
    ("/etc/systemd/system/backup-etcd.*", Together),
    ("/etc/systemd/system/containerd.service", Together),
    ("/etc/systemd/system/kubelet.service", Together),
    ("/etc/systemd/system/kubelet.service.d/10-kubeadm.conf", Together),
    ("/usr/local/bin/kube-scripts/etcd-backup.sh", Together),
    ("/opt/cni/bin/*", Together),
    ("/usr/local/bin/*", Alone),
    ("/etc/systemd/system/etcd.service", Alone),
    ("/etc/etcd*", Alone),
    ("/etc/ssl/etcd/ssl/*", Alone),
    ("/etc/cni/net.d/10-flannel.conflist", Alone),
    ("/etc/kubernetes/super-admin.conf", Left("only kubeadm init needs it")),
    ("/etc/kubernetes/*.conf", Alone),
    ("/etc/kubernetes/manifests/*", Alone),
    ("/etc/kubernetes/kubekey/*", Alone),
    ("/etc/kubernetes/pki/apiserver*", Alone),
    ("/etc/kubernetes/pki/front-proxy-client.*", Alone),
    ("/etc/kubernetes/pki/*", Left("nothing can replace a CA and the key of tokens")),
    ("/root/.kube/config", Alone),
    ("/var/lib/kubelet/config.yaml", Alone),
    ("/var/lib/kubelet/instance-config.yaml", Alone),
    ("/var/lib/kubelet/kubeadm-flags.env", Alone),
    ("/var/lib/*", Left("data of running programs")),
    ("/var/backups/kube_etcd/*", Left("backups, which a timer takes")),
    (
        "/etc/kubekey/*",
        Left("the record of what kk has changed: without it, the host belongs to another owner"),
    ),
];

fn matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((before, after)) => {
            path.len() >= before.len() + after.len() && path.starts_with(before) && path.ends_with(after)
        }
    }
}

fn known(path: &str) -> Option<Known> {
    FILES.iter().find(|(pattern, _)| matches(pattern, path)).map(|(_, known)| *known)
}

/// Regular files of a host that did not exist before.
fn new_files(before: &HostState, after: &HostState) -> BTreeSet<String> {
    let new = after.0.iter().filter(|(key, value)| value.starts_with("f ") && !before.0.contains_key(*key));
    new.filter_map(|(key, _)| Some(key.strip_prefix("file ")?.to_owned())).collect()
}

fn unknown<'p>(host: &str, paths: impl IntoIterator<Item = &'p String>) -> Vec<String> {
    let unknown = paths.into_iter().filter(|path| known(path).is_none());
    unknown.map(|path| format!("{host}: {path}")).collect()
}

/// The files of a kind that a create has left, by host. Errors: a file is not in the list.
pub(super) fn left(
    ctx: &Context<'_>,
    site: &Site,
    before: &BTreeMap<String, HostState>,
    kind: Known,
) -> Result<BTreeMap<String, Vec<String>>> {
    let none = HostState::default();
    let (mut all, mut not_listed) = (BTreeMap::new(), Vec::new());
    for (host, state) in host_state::of_all(ctx, &site.hosts)? {
        let paths = new_files(before.get(&host).unwrap_or(&none), &state);
        not_listed.extend(unknown(&host, &paths));
        all.insert(host, paths.into_iter().filter(|path| known(path) == Some(kind)).collect());
    }
    expect_none(ctx, "files of a create that no damage knows", &not_listed)?;
    Ok(all)
}

/// Shell text that deletes files.
pub(super) fn delete(paths: &[String]) -> String {
    let one = |path: &String| format!("rm '{path}'\n");
    paths.iter().map(one).collect()
}

/// Shell text that empties files. A running binary cannot be written, so each gets an empty file in its place.
pub(super) fn empty(paths: &[String]) -> String {
    let one = |path: &String| {
        format!(
            "cp --attributes-only --preserve=all '{path}' '{path}.e2e'; mv '{path}.e2e' '{path}'; test ! -s '{path}'\n"
        )
    };
    paths.iter().map(one).collect()
}

/// Shell text that succeeds if files have content.
pub(super) fn have_content(paths: &[String]) -> String {
    let one =
        |path: &String| format!("test -s '{path}' || {{ echo '{path} is not repaired' >&2; false; }}\n");
    paths.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_match_counts_and_a_file_without_match_is_named() {
        for (path, expected) in [
            ("/etc/crictl.yaml", Some(Together)),
            ("/etc/crictl.yaml.new", None),
            ("/usr/local/bin/kube-scripts/etcd-backup.sh", Some(Together)),
            ("/usr/local/bin/kubelet", Some(Alone)),
            ("/etc/kubernetes/admin.conf", Some(Alone)),
            ("/etc/kubernetes/pki/apiserver.key", Some(Alone)),
            ("/etc/kubernetes/other", None),
            ("/etc/new", None),
        ] {
            assert_eq!(known(path), expected, "{path}");
        }
        assert!(matches!(known("/etc/kubernetes/pki/ca.key"), Some(Left(_))));
        assert!(matches!(known("/var/lib/kubelet/pods/1/etc-hosts"), Some(Left(_))));
        let paths = ["/etc/new", "/etc/etcd.env"].map(str::to_owned);
        assert_eq!(unknown("node1", &paths), ["node1: /etc/new"]);
    }

    #[test]
    fn only_regular_files_that_are_new_count() {
        let state = |entries: &[(&str, &str)]| {
            HostState(entries.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect())
        };
        let before = state(&[("file /etc/hosts", "f 644 root:root ")]);
        let after = state(&[
            ("file /etc/hosts", "f 600 root:root "),
            ("file /etc/new", "f 644 root:root "),
            ("file /etc/dir", "d 755 root:root "),
            ("file /etc/link", "l 777 root:root /etc/new"),
            ("content /etc/new", "f00"),
        ]);
        assert_eq!(new_files(&before, &after), BTreeSet::from(["/etc/new".to_owned()]));
    }

    #[test]
    fn files_are_emptied_and_deleted() {
        let directory = std::env::temp_dir().join(format!("kk-e2e-damaged-files-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("a file");
        std::fs::write(&file, "content").unwrap();
        let paths = [file.display().to_string()];
        let succeeds = |script: String| {
            std::process::Command::new("sh").args(["-euc", &script]).output().unwrap().status.success()
        };
        assert!(succeeds(have_content(&paths)));
        assert!(succeeds(empty(&paths)) && file.exists() && !succeeds(have_content(&paths)));
        assert!(succeeds(delete(&paths)) && !file.exists() && !succeeds(have_content(&paths)));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
