//! Builds calls of etcdctl with its endpoints and its certificate.

use kk_config::{Host, Spec};
use kk_connector::quote;

use crate::base::host_layout::{ETCD_CA, ETCD_CERTS};

/// A call that queries these members. All three arguments are shell words; `certificate` is a path without its extension.
fn etcdctl(endpoints: &str, ca: &str, certificate: &str) -> String {
    format!(
        "etcdctl --endpoints {endpoints} --cacert {ca} --cert {certificate}.pem --key {certificate}-key.pem"
    )
}

/// A call that queries the member of this host, and runs on this host.
pub(super) fn ask_member(spec: &Spec, host: &Host) -> String {
    ask_member_with(spec, host, ETCD_CA)
}

/// The same, but it trusts only this CA.
pub(super) fn ask_member_with(spec: &Spec, host: &Host, ca: &str) -> String {
    etcdctl(&local_endpoint(spec), ca, &quote(&certificate(host)))
}

/// The endpoint where the member of a host listens for clients on that host.
pub(crate) fn local_endpoint(spec: &Spec) -> String {
    format!("https://127.0.0.1:{}", spec.etcd.port)
}

/// The path of a member's certificate and of its key in the same directory, without extension.
pub(crate) fn certificate(host: &Host) -> String {
    format!("{ETCD_CERTS}/member-{}", host.name)
}

/// The function `ctl` of a script, which queries `$endpoints` with `$certificate` and these options.
pub(crate) fn function(options: &str) -> String {
    let words = etcdctl("\"$endpoints\"", "\"${certificate%/*}/ca.pem\"", "\"$certificate\"");
    format!("ctl() {{\n    {} \"$@\"\n}}\n", format!("{words} {options}").trim_end())
}
