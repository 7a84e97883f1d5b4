//! etcdctl, with the endpoints that it asks and the certificate that it shows.

use kk_config::{Host, Spec};
use kk_connector::quote;

use crate::base::host_layout::{ETCD_CA, ETCD_CERTS};

/// Asks these members. All three are words of the shell; `certificate` is a path without its ending.
fn etcdctl(endpoints: &str, ca: &str, certificate: &str) -> String {
    format!(
        "etcdctl --endpoints {endpoints} --cacert {ca} --cert {certificate}.pem --key {certificate}-key.pem"
    )
}

/// Asks the member of this host, run there.
pub(super) fn ask_member(spec: &Spec, host: &Host) -> String {
    ask_member_with(spec, host, ETCD_CA)
}

/// The same, and trusts this CA only.
pub(super) fn ask_member_with(spec: &Spec, host: &Host, ca: &str) -> String {
    etcdctl(&local_endpoint(spec), ca, &quote(&certificate(host)))
}

/// Where the member of a host listens for that host.
pub(crate) fn local_endpoint(spec: &Spec) -> String {
    format!("https://127.0.0.1:{}", spec.etcd.port)
}

/// The certificate of the member of a host and, beside it, its key; without their endings.
pub(crate) fn certificate(host: &Host) -> String {
    format!("{ETCD_CERTS}/member-{}", host.name)
}

/// The function `ctl` of a script, which asks `$endpoints` with `$certificate` and these options.
pub(crate) fn function(options: &str) -> String {
    let words = etcdctl("\"$endpoints\"", "\"${certificate%/*}/ca.pem\"", "\"$certificate\"");
    format!("ctl() {{\n    {} \"$@\"\n}}\n", format!("{words} {options}").trim_end())
}
