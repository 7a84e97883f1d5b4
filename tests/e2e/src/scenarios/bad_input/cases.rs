//! The cases as data: the error, and the message that `kk` has to print.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::site::host_entry;

/// Exit codes of `kk` (docs/cli.md).
const FAILED: i32 = 1;
const CONFIG: i32 = 3;
const CONNECTION: i32 = 4;
const PRECHECK: i32 = 5;

/// One wrong thing.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Puts the error into the cluster file; the path is the site's directory.
    pub(super) edit: fn(&mut Value, &Path) -> Result<()>,
    /// The host that `breaks` and `repairs` run on, as shell text.
    pub(super) host: &'static str,
    pub(super) breaks: &'static str,
    pub(super) repairs: &'static str,
    pub(super) args: &'static [&'static str],
    pub(super) code: i32,
    /// Texts in the messages of `kk`.
    pub(super) says: &'static [&'static str],
    /// It can be known before the first change.
    pub(super) changes_nothing: bool,
    /// Traces of breaking and mending itself.
    pub(super) own_traces: &'static [&'static str],
}

/// A case with nothing wrong yet.
const RIGHT: Case = Case {
    name: "",
    edit: |_, _| Ok(()),
    host: "node2",
    breaks: "",
    repairs: "",
    args: &[],
    code: CONNECTION,
    says: &[],
    changes_nothing: true,
    own_traces: &[],
};

fn set(cluster: &mut Value, host: &str, field: &str, value: Value) {
    host_entry(cluster, host)[field] = value;
}

/// The versions of the lab are pinned for its own architecture only; without them, `kk` selects versions that it knows for both.
fn wrong_arch(cluster: &mut Value) {
    set(cluster, "node3", "arch", json!("arm64"));
    cluster["spec"].as_object_mut().map(|spec| spec.remove("components"));
}

pub(super) const ALL: &[Case] = &[
    Case {
        name: "unknown-key",
        edit: |cluster, _| {
            cluster["spec"]["kubernetes"]["maxPod"] = json!(5);
            Ok(())
        },
        code: CONFIG,
        says: &["maxPod", "maxPods"],
        ..RIGHT
    },
    Case {
        name: "unsupported-version",
        edit: |cluster, _| {
            cluster["spec"]["kubernetes"]["version"] = json!("v1.20.4");
            Ok(())
        },
        code: CONFIG,
        says: &["1.20.4"],
        ..RIGHT
    },
    Case {
        name: "etcd-of-others",
        breaks: "systemd-run --quiet --collect --unit etcd sleep 600",
        repairs: "systemctl stop etcd.service",
        code: PRECHECK,
        says: &["node2", "etcd is already installed, but not by kk"],
        ..RIGHT
    },
    Case {
        name: "connection-refused",
        breaks: "systemctl stop ssh.socket ssh.service 2>/dev/null || systemctl stop ssh.service",
        repairs: "systemctl start ssh.service",
        says: &["node2", "refused"],
        ..RIGHT
    },
    Case {
        name: "no-such-host",
        edit: |cluster, _| {
            set(cluster, "node2", "address", json!("172.30.0.99"));
            set(cluster, "node2", "timeout", json!(3));
            Ok(())
        },
        says: &["node2", "172.30.0.99"],
        ..RIGHT
    },
    Case {
        name: "silent-host",
        edit: |cluster, _| {
            set(cluster, "node2", "timeout", json!(3));
            Ok(())
        },
        breaks: "iptables -I INPUT -p tcp --dport 22 -j DROP",
        repairs: "iptables -D INPUT -p tcp --dport 22 -j DROP",
        says: &["node2", "no answer within 3 s"],
        ..RIGHT
    },
    Case {
        name: "silent-server",
        edit: |cluster, _| {
            set(cluster, "node2", "timeout", json!(3));
            set(cluster, "node2", "port", json!(2222));
            Ok(())
        },
        breaks: "systemd-run --quiet --collect --unit e2e-silent socat TCP-LISTEN:2222,fork,reuseaddr EXEC:'sleep 600'; sleep 0.5",
        repairs: "systemctl stop e2e-silent",
        says: &["node2", "no answer within 3 s"],
        ..RIGHT
    },
    Case {
        name: "wrong-password",
        edit: |cluster, _| {
            let entry = host_entry(cluster, "node2").as_object_mut().context("a host is an object")?;
            entry.remove("privateKeyPath");
            entry.insert("password".into(), json!("wrong"));
            Ok(())
        },
        says: &["node2", "ada", "log in"],
        own_traces: &["/var/lib/sudo", "btmp"],
        ..RIGHT
    },
    Case {
        name: "no-such-key-file",
        edit: |cluster, _| {
            set(cluster, "node2", "privateKeyPath", json!("/nowhere/id_ed25519"));
            Ok(())
        },
        says: &["node2", "/nowhere/id_ed25519"],
        ..RIGHT
    },
    Case {
        name: "wrong-sudo-password",
        edit: |cluster, _| {
            set(cluster, "node2", "password", json!("wrong"));
            Ok(())
        },
        says: &["node2", "sudo"],
        ..RIGHT
    },
    Case {
        name: "no-sudo-right",
        edit: |cluster, _| {
            set(cluster, "node2", "user", json!("bob"));
            Ok(())
        },
        says: &["node2", "bob", "sudo"],
        own_traces: &["/var/lib/sudo"],
        ..RIGHT
    },
    Case {
        name: "changed-host-key",
        breaks: "mkdir /root/keys; mv /etc/ssh/ssh_host_* /root/keys/; ssh-keygen -q -A; systemctl restart ssh",
        repairs: "rm /etc/ssh/ssh_host_*; mv /root/keys/* /etc/ssh/; rmdir /root/keys; systemctl restart ssh",
        says: &["node2", "host key", "changed", "known_hosts"],
        ..RIGHT
    },
    Case {
        name: "unknown-host-key-strict",
        edit: |_, site| {
            fs::write(site.join("home/.ssh/known_hosts"), "")?;
            Ok(())
        },
        args: &["--host-key-checking", "strict"],
        says: &["host key", "not known"],
        ..RIGHT
    },
    Case {
        name: "wrong-arch",
        edit: |cluster, _| {
            wrong_arch(cluster);
            Ok(())
        },
        code: PRECHECK,
        says: &["node3", "arm64", "amd64"],
        ..RIGHT
    },
    Case {
        name: "port-in-use",
        breaks: "systemd-run --quiet --collect --unit e2e-port socat TCP-LISTEN:10250,fork,reuseaddr OPEN:/dev/null; sleep 0.5",
        repairs: "systemctl stop e2e-port",
        code: PRECHECK,
        says: &["node2", "10250", "socat"],
        ..RIGHT
    },
    // The hosts of the lab share one clock, and no namespace has a clock of its own for the time of day. So a wrapper around
    // Debian's `date` adds a minute.
    Case {
        name: "clock-skew",
        breaks: "printf '#!/bin/sh\\nexec /usr/bin/date -d \"+1 minute\" \"$@\"\\n' >/usr/local/bin/date; chmod +x /usr/local/bin/date",
        repairs: "rm /usr/local/bin/date",
        code: PRECHECK,
        says: &["node2", "clock", "ahead of", "chrony"],
        ..RIGHT
    },
    Case {
        name: "missing-tool",
        breaks: "mv /usr/sbin/conntrack /usr/sbin/conntrack.away",
        repairs: "mv /usr/sbin/conntrack.away /usr/sbin/conntrack",
        code: PRECHECK,
        says: &["node2", "conntrack"],
        ..RIGHT
    },
    Case {
        name: "all-problems-at-once",
        edit: |cluster, _| {
            wrong_arch(cluster);
            Ok(())
        },
        breaks: "mv /usr/sbin/conntrack /usr/sbin/conntrack.away
            systemd-run --quiet --collect --unit e2e-port socat TCP-LISTEN:10250,fork,reuseaddr OPEN:/dev/null; sleep 0.5",
        repairs: "systemctl stop e2e-port; mv /usr/sbin/conntrack.away /usr/sbin/conntrack",
        code: PRECHECK,
        says: &["node3", "arm64", "node2", "conntrack", "10250"],
        ..RIGHT
    },
    Case {
        name: "leftover-of-another-cluster",
        breaks: "mkdir -p /etc/kubernetes/pki; echo 'another CA' >/etc/kubernetes/pki/ca.crt; touch /etc/kubernetes/kubelet.conf",
        repairs: "rm -r /etc/kubernetes",
        code: PRECHECK,
        says: &["node2", "has joined a cluster", "has the CA of that cluster"],
        ..RIGHT
    },
    Case {
        name: "etcd-data-of-another-cluster",
        breaks: "mkdir -p /var/lib/etcd/member/snap; touch /var/lib/etcd/member/snap/db",
        repairs: "rm -r /var/lib/etcd/member",
        code: PRECHECK,
        says: &["node2", "/var/lib/etcd", "another etcd"],
        ..RIGHT
    },
    Case {
        name: "full-disk",
        breaks: "mkdir -p /usr/local/bin; mount -t tmpfs -o size=8m tmpfs /usr/local/bin",
        repairs: "umount /usr/local/bin",
        code: PRECHECK,
        says: &["node2", "free", "/usr/local/bin"],
        ..RIGHT
    },
    Case {
        name: "mirror-answers-404",
        edit: |cluster, site| {
            fresh_store(site)?;
            let mirror = cluster["spec"]["download"]["mirror"].as_str().context("the lab has a mirror")?;
            cluster["spec"]["download"]["mirror"] = json!(format!("{mirror}/nowhere"));
            Ok(())
        },
        code: PRECHECK,
        says: &["404", "/nowhere/"],
        ..RIGHT
    },
    Case {
        name: "mirror-is-down",
        edit: |cluster, site| {
            fresh_store(site)?;
            cluster["spec"]["download"]["mirror"] = json!("http://172.30.0.1:8099");
            Ok(())
        },
        code: PRECHECK,
        says: &["172.30.0.1:8099"],
        ..RIGHT
    },
    Case {
        name: "mirror-serves-a-wrong-sum",
        edit: |cluster, site| {
            fresh_store(site)?;
            let path = cluster["spec"]["download"]["catalogue"].as_str().context("the lab has a catalogue")?.to_owned();
            let mut catalogue: Value = serde_saphyr::from_str(&fs::read_to_string(path)?)?;
            for archs in catalogue["kubelet"].as_object_mut().into_iter().flat_map(|archs| archs.values_mut()) {
                for sum in archs.as_object_mut().into_iter().flat_map(|versions| versions.values_mut()) {
                    *sum = json!("0".repeat(64));
                }
            }
            let wrong = site.join("wrong-catalogue.yaml");
            fs::write(&wrong, serde_saphyr::to_string(&catalogue)?)?;
            cluster["spec"]["download"]["catalogue"] = json!(wrong);
            Ok(())
        },
        code: FAILED,
        says: &["kubelet", "sha-256"],
        changes_nothing: false,
        ..RIGHT
    },
    Case {
        name: "registry-lacks-an-image",
        edit: |cluster, _| {
            cluster["spec"]["components"]["coredns"] = json!("v9.9.9");
            Ok(())
        },
        code: FAILED,
        says: &["coredns:v9.9.9", "not found"],
        changes_nothing: false,
        ..RIGHT
    },
];

/// Makes `kk` download again what an earlier run has verified.
fn fresh_store(site: &Path) -> Result<()> {
    for entry in fs::read_dir(site.join("kubekey")).into_iter().flatten().flatten() {
        // Everything but the clusters' own directories (the lab's is called `lab`) is downloaded.
        if entry.file_name() != "lab" && entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
