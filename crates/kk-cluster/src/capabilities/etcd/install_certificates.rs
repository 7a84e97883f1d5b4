//! Install certificates of etcd: each host gets only its own keys.

use kk_config::{Host, Role};
use kk_engine::{
    Action, HostWork, Task,
    actions::{Directory, File},
};

use crate::{
    base::{
        host_layout::{ETCD_CA, ETCD_CA_KEY, ETCD_CERT, ETCD_CERTS, ETCD_KEY},
        pki::{Pair, Pki},
        slots,
    },
    model::inputs::Inputs,
};

/// Members get their key pair and the key of the CA, so that the cluster does not depend on the machine that created it. Control
/// planes get the client pair of their API server. Nothing restarts: etcd and its clients read certificates for each connection.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("install_certificates", "Install certificates of etcd");
    for (host, _) in inputs.hosts() {
        let mut actions = pairs(&inputs.pki, host);
        if actions.is_empty() {
            continue;
        }
        actions.insert(0, Box::new(Directory::new(ETCD_CERTS)));
        actions.insert(1, Box::new(File::text(ETCD_CA, inputs.pki.ca_cert())));
        if host.has_role(&Role::Etcd) {
            actions.push(Box::new(File::text(ETCD_CA_KEY, inputs.pki.ca_key().expose()).mode(0o600)));
        }
        task = task.on(&host.name, HostWork::new(actions).needs(slots::etcd_certificates_slot()));
    }
    task
}

/// The key pairs of a host: the pair of its member, and the client pair of its API server.
pub(crate) fn pairs(pki: &Pki, host: &Host) -> Vec<Box<dyn Action>> {
    let mut actions: Vec<Box<dyn Action>> = Vec::new();
    let mut pair = |cert: String, key: String, owner: &str, pair: &Pair| {
        actions.push(Box::new(File::text(cert, pair.cert.clone())));
        actions.push(Box::new(File::text(key, pair.key.expose()).mode(0o600).owner(owner)));
    };
    if host.has_role(&Role::Etcd) {
        let name = format!("{ETCD_CERTS}/member-{}", host.name);
        pair(format!("{name}.pem"), format!("{name}-key.pem"), "etcd:etcd", pki.member(&host.name));
    }
    if host.has_role(&Role::ControlPlane) {
        pair(ETCD_CERT.to_owned(), ETCD_KEY.to_owned(), "root:root", pki.client(&host.name));
    }
    actions
}
