//! Install certificates of etcd: each host gets its own keys and no other's.

use kk_config::Role;
use kk_engine::{
    Action, HostWork, Task,
    actions::{Directory, File},
};

use super::CERTS;
use crate::{Target, kubeadm};

/// Members get their pair; control planes get the client pair of their API server.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("install_certificates", "Install certificates of etcd");
    for host in &target.spec.hosts {
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        let mut pair = |cert: String, key: String, owner: &str, pair: &crate::vault::Pair| {
            actions.push(Box::new(File::text(cert, pair.cert.clone())));
            actions.push(Box::new(File::text(key, pair.key.expose()).mode(0o600).owner(owner)));
        };
        if host.has_role(&Role::Etcd) {
            let name = format!("{CERTS}/member-{}", host.name);
            pair(
                format!("{name}.pem"),
                format!("{name}-key.pem"),
                "etcd:etcd",
                target.vault.member(&host.name),
            );
        }
        if host.has_role(&Role::ControlPlane) {
            let client = target.vault.client(&host.name);
            pair(kubeadm::ETCD_CERT.to_owned(), kubeadm::ETCD_KEY.to_owned(), "root:root", client);
        }
        if actions.is_empty() {
            continue;
        }
        actions.insert(0, Box::new(Directory::new(CERTS)));
        actions.insert(1, Box::new(File::text(kubeadm::ETCD_CA, target.vault.ca_cert())));
        task = task.on(&host.name, HostWork::new(actions).needs(super::save_certificates::saved().key()));
    }
    task
}
