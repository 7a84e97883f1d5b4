//! `spec.etcd`.

use super::{flags, syntax};
use crate::findings::{At, Findings};
use crate::spec::ControlPlaneEndpoint;
use crate::v1alpha2::{Etcd, EtcdType};

/// Ports of Kubernetes components on the same hosts.
const TAKEN_PORTS: [(u16, &str); 7] = [
    (ControlPlaneEndpoint::API_SERVER_PORT, "the API server"),
    (10_248, "kubelet"),
    (10_249, "kube-proxy"),
    (10_250, "kubelet"),
    (10_256, "kube-proxy"),
    (10_257, "kube-controller-manager"),
    (10_259, "kube-scheduler"),
];

pub(super) fn check(doc: &Etcd, at: At<'_>, out: &mut Findings<'_>) {
    let refused = match doc.kind {
        EtcdType::Kubekey => None,
        EtcdType::Kubeadm => Some("kubeadm"),
        EtcdType::External => Some("external"),
    };
    if let Some(kind) = refused {
        let hint = "use `kubekey`: members run by systemd on the hosts of `roleGroups.etcd`";
        out.error(at.key("type"), format!("etcd of type `{kind}` is not supported yet"), hint);
    }
    check_ports(doc, at, out);
    flags::check_etcd(&doc.extra_args, at.key("extraArgs"), out);
    syntax::check_data_directory(&doc.data_dir, "etcd's data directory", at.key("dataDir"), out);
    syntax::check_data_directory(
        &doc.backup_dir,
        "the directory of etcd's backups",
        at.key("backupDir"),
        out,
    );
    if !syntax::is_absolute_path(&doc.backup_script) || !syntax::is_one_word(&doc.backup_script) {
        let message = format!("`{}` cannot be the directory of the backup script", doc.backup_script);
        out.error(at.key("backupScript"), message, syntax::ABSOLUTE_PATH);
    }
    if doc.election_timeout < doc.heartbeat_interval.saturating_mul(5) {
        // etcd itself refuses to start with less than five heartbeats.
        let message = format!("electionTimeout {} ms is less than five heartbeats", doc.election_timeout);
        let hint = format!(
            "with a heartbeatInterval of {0} use at least {1}",
            doc.heartbeat_interval,
            doc.heartbeat_interval.saturating_mul(5)
        );
        out.error(at.key("electionTimeout"), message, hint);
    }
    for (i, line) in doc.extra_args.iter().enumerate().filter(|(_, line)| !is_environment_line(line)) {
        let hint = "write NAME=value, such as ETCD_MAX_TXN_OPS=1024";
        out.error(
            at.key("extraArgs").item(i),
            format!("`{line}` cannot be a line of etcd's environment"),
            hint,
        );
    }
}

fn check_ports(doc: &Etcd, at: At<'_>, out: &mut Findings<'_>) {
    if doc.port == doc.peer_port {
        let message = format!("etcd cannot use port {} for clients and for members", doc.port);
        out.error(at.key("peerPort"), message, "give `port` and `peerPort` different numbers");
    }
    for (key, port) in [("port", doc.port), ("peerPort", doc.peer_port)] {
        if let Some((_, owner)) = TAKEN_PORTS.iter().find(|(taken, _)| *taken == port) {
            out.error(at.key(key), format!("port {port} belongs to {owner}"), "choose another");
        }
    }
}

fn is_environment_line(line: &str) -> bool {
    let name = line.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && !line.contains(char::is_control)
}
