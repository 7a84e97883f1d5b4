//! Documents of `kubeadm join`.

use kk_config::Host;
use serde_json::json;

use super::{api_port, api_version, node_registration, probes, set_timeouts};
use crate::{
    base::{encoding::base64, token::Token, yaml::documents},
    model::cluster::Cluster,
};

/// The document for `kubeadm join`. `discovery` is the path of a kubeconfig that contains the address and the CA, so that nothing
/// has to be trusted on first use.
pub(crate) fn join_document(cluster: &Cluster, host: &Host, token: &Token, discovery: &str) -> String {
    let mut join = json!({
        "apiVersion": api_version(cluster),
        "kind": "JoinConfiguration",
        "discovery": {
            "file": {"kubeConfigPath": discovery},
            "tlsBootstrapToken": token.text().expose(),
        },
        "nodeRegistration": node_registration(cluster, host),
    });
    set_timeouts(cluster, &mut join);
    if host.has_role(&kk_config::Role::ControlPlane) {
        join["controlPlane"] = json!({
            "localAPIEndpoint": {"advertiseAddress": host.internal_address, "bindPort": api_port()},
        });
        join["patches"] = probes::patches();
    }
    documents(&[join])
}

/// A kubeconfig with the address and the CA of the cluster, and the bootstrap token as its user.
pub(crate) fn discovery_kubeconfig(server: &str, ca: &str, token: &Token) -> String {
    documents(&[json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {
            "server": server,
            "certificate-authority-data": base64(ca.as_bytes()),
        }}],
        "users": [{"name": "bootstrap", "user": {"token": token.text().expose()}}],
        "contexts": [{"name": "bootstrap", "context": {"cluster": "cluster", "user": "bootstrap"}}],
        "current-context": "bootstrap",
    })])
}
