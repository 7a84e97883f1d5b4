//! `spec.system` and `spec.dns`.

use super::syntax;
use crate::findings::{At, Findings};
use crate::v1alpha2;
use std::net::IpAddr;

pub(super) fn check(doc: &v1alpha2::System, at: At<'_>, out: &mut Findings<'_>) {
    for (key, value) in &doc.sysctl {
        let at = at.key("sysctl");
        if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b)) {
            out.error(
                at.name(key),
                format!("`{key}` is not a kernel setting"),
                "write it as in sysctl, such as vm.swappiness",
            );
        }
        if value.is_empty() || value.contains(char::is_control) {
            out.error(
                at.key(key),
                format!("the kernel setting `{key}` has no usable value"),
                "give one line of text",
            );
        }
    }
}

pub(super) fn check_dns(doc: &v1alpha2::Dns, at: At<'_>, out: &mut Findings<'_>) {
    for line in doc.host_lines().filter(|line| !is_hosts_line(line)) {
        let hint = "write an IP address and one or more names";
        out.error(at.key("nodeEtcHosts"), format!("`{line}` cannot be a line of /etc/hosts"), hint);
    }
    for (i, server) in doc.coredns.upstream_dns_servers.iter().enumerate() {
        if !syntax::is_one_word(server) || server.contains(['{', '}', '"']) {
            let place = at.key("coredns").key("upstreamDNSServers").item(i);
            out.error(
                place,
                format!("`{server}` is not a DNS server"),
                "give an address, with a port where it is not 53",
            );
        }
    }
}

fn is_hosts_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let address = words.next().is_some_and(|word| word.parse::<IpAddr>().is_ok());
    address && words.next().is_some_and(|word| !word.starts_with('#')) && !line.contains(char::is_control)
}
