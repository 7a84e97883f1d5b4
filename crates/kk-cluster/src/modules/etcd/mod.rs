//! etcd, run by systemd: own CA, each member its own keys only, the v3 API only.

mod configure_etcd;
mod install_certificates;
mod save_certificates;
mod start_etcd;

use kk_config::{Host, Spec};
use kk_connector::quote;
use kk_engine::Module;

use crate::{BuildError, Target};

/// Folder of certificates and keys on the hosts; KubeKey's.
pub(crate) const CERTS: &str = "/etc/ssl/etcd/ssl";

/// Brings up all members at once.
pub(crate) fn module(target: &Target) -> Result<Module, BuildError> {
    Ok(Module::new(
        "etcd",
        vec![
            save_certificates::task(target),
            install_certificates::task(target),
            configure_etcd::task(target)?,
            start_etcd::task(target)?,
        ],
    ))
}

/// Succeeds, and prints `healthy`, when the member of this host has a leader and commits.
pub(crate) fn health_command(spec: &Spec, host: &Host) -> String {
    let member = format!("{CERTS}/member-{}", host.name);
    format!(
        "[ -e {key} ] && etcdctl --endpoints https://127.0.0.1:{port} --cacert {CERTS}/ca.pem --cert {cert} --key {key} --command-timeout 2s endpoint health >/dev/null && echo healthy",
        port = spec.etcd.port,
        cert = quote(&format!("{member}.pem")),
        key = quote(&format!("{member}-key.pem")),
    )
}
