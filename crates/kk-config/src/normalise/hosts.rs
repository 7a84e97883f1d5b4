//! `spec.hosts`: names, addresses, access, labels and taints.

use super::syntax;
use crate::Secret;
use crate::findings::{At, Findings};
use crate::spec::{Bastion, Host, PrivateKey, Taint, TaintEffect};
use crate::v1alpha2;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// The hosts without their roles, in the order of the file.
pub(super) fn hosts(
    docs: &[v1alpha2::Host],
    bastion: Option<&v1alpha2::Bastion>,
    spec: At<'_>,
    out: &mut Findings<'_>,
) -> Vec<Host> {
    let at = spec.key("hosts");
    if docs.is_empty() {
        out.missing(at, "the cluster has no hosts", "add at least one under `spec.hosts`");
    }
    check_unique(docs, at, out);
    let bastion = bastion.map(|doc| self::bastion(doc, spec.key("bastion"), out));
    docs.iter().enumerate().map(|(i, doc)| host(doc, bastion.as_ref(), at.item(i), out)).collect()
}

/// Checks the names and addresses that distinguish hosts from each other.
fn check_unique(docs: &[v1alpha2::Host], at: At<'_>, out: &mut Findings<'_>) {
    let mut names = HashMap::new();
    let mut addresses = HashMap::new();
    for (i, doc) in docs.iter().enumerate() {
        let host = at.item(i);
        if !doc.name.is_empty()
            && let Some(first) = names.insert(&doc.name, host)
        {
            let message = format!("two hosts are named `{}`", doc.name);
            out.error(host.key("name"), message, format!("the other is{}", first.in_line()));
        }
        // Behind a bastion or NAT several hosts may share an address with different ports.
        let outside = doc.address.as_deref().map(|address| (canonical(address), Some(doc.port)));
        let inside = doc.internal_address.as_deref().or(doc.address.as_deref());
        let inside = inside.into_iter().flat_map(|both| both.split(',')).map(|one| (canonical(one), None));
        let keys = inside.map(|key| (key, "internalAddress")).chain(outside.map(|key| (key, "address")));
        for (key, place) in keys {
            let address = key.0.clone();
            if let Some(first) = addresses.insert(key, host) {
                let place =
                    if doc.internal_address.is_some() { host.key(place) } else { host.key("address") };
                let message = format!("two hosts have the address `{address}`");
                out.error(place, message, format!("the other is{}", first.in_line()));
                break;
            }
        }
    }
}

/// Normalises an address, which has several forms: surrounding blanks, `::1` and `0:0::1`, names in capitals.
fn canonical(address: &str) -> String {
    let address = address.trim();
    address
        .parse::<IpAddr>()
        .map_or_else(|_| address.to_lowercase(), |address| address.to_canonical().to_string())
}

fn host(doc: &v1alpha2::Host, bastion: Option<&Bastion>, at: At<'_>, out: &mut Findings<'_>) -> Host {
    check_name(&doc.name, at, out);
    let (internal_address, internal_address_v6) = internal_address(doc, at, out);
    check_labels(doc, at.key("labels"), out);
    check_password(doc.password.as_ref(), "password", at, out);
    check_password(doc.sudo_password.as_ref(), "sudoPassword", at, out);
    let own_bastion = doc.bastion.as_ref().map(|doc| self::bastion(doc, at.key("bastion"), out));
    Host {
        name: doc.name.clone(),
        address: address(doc, at, out),
        internal_address,
        internal_address_v6,
        local: false,
        port: doc.port,
        user: user(&doc.user, at, out),
        password: doc.password.clone(),
        private_key: private_key(doc.private_key.as_ref(), doc.private_key_path.as_ref(), at, out),
        sudo_password: doc.sudo_password.clone().or_else(|| doc.password.clone()),
        host_key: doc.host_key.as_ref().map(|key| host_key(key, at.key("hostKey"), out)),
        arch: doc.arch,
        labels: doc.labels.clone(),
        taints: taints(&doc.taints, at.key("taints"), out),
        timeout: Duration::from_secs(doc.timeout.into()),
        bastion: own_bastion.or_else(|| bastion.cloned()),
        roles: BTreeSet::new(),
    }
}

/// The name of the control machine in the output of kk.
const CONTROL: &str = "control";
/// Every host resolves names with this first label to itself.
const LOCALHOST: &str = "localhost";
/// The kubelet labels its node with the host's name (`kubernetes.io/hostname`), and this is the maximum length of a label.
const LONGEST_NAME: usize = 63;
/// A host that is not from a file is the control machine, and has its name.
const OR_FILE: &str = "or describe it with another one in a file (`kk create config`) for -f";

fn check_name(name: &str, at: At<'_>, out: &mut Findings<'_>) {
    let lower = name.to_lowercase();
    let hint = if name.is_empty() {
        out.missing(at, "a host has no name", "add `name: …`");
        return;
    } else if !at.is_somewhere() && (lower.split('.').next() == Some(LOCALHOST) || lower == CONTROL) {
        format!("give this machine another name (`hostnamectl set-hostname NAME`), {OR_FILE}")
    } else if !at.is_somewhere() && lower != name && syntax::is_dns_name(&lower) {
        format!("give this machine another name (`hostnamectl set-hostname {lower}`), {OR_FILE}")
    } else if lower == CONTROL || lower.split('.').next() == Some(LOCALHOST) {
        "the name has another meaning; choose a different one".to_owned()
    } else if name.len() > LONGEST_NAME {
        format!("the name of a node has at most {LONGEST_NAME} characters")
    } else if syntax::is_dns_name(name) {
        return;
    } else if syntax::is_dns_name(&lower) {
        format!("write `{lower}`")
    } else if at.is_somewhere() {
        syntax::DNS_NAME.to_owned()
    } else {
        format!("give this machine another name (`hostnamectl set-hostname NAME`), {OR_FILE}")
    };
    out.error(at.key("name"), format!("`{name}` cannot name a host"), hint);
}

/// Checks a password, which is sent as one line. The usual cause of a second line is a YAML block (`|`).
fn check_password(password: Option<&Secret>, key: &str, at: At<'_>, out: &mut Findings<'_>) {
    if password.is_some_and(|text| text.expose().contains(['\n', '\r', '\0'])) {
        out.error(at.name(key), format!("`{key}` has a line break"), "write it in one line, in quotes");
    }
    syntax::check_secret_length(password, key, at, out);
}

/// The address for SSH: `address`, or the first of `internalAddress`.
fn address(doc: &v1alpha2::Host, at: At<'_>, out: &mut Findings<'_>) -> String {
    let inside = || doc.internal_address.as_deref().and_then(|text| text.split(',').next());
    let Some(address) = doc.address.as_deref().or_else(inside).map(str::trim) else {
        let host = if doc.name.is_empty() { "a host".to_owned() } else { format!("host `{}`", doc.name) };
        out.missing(at, format!("{host} has no address"), "add `address: …`");
        return String::new();
    };
    if doc.address.is_some() && !is_address(address) {
        let hint = "give an IP address or a DNS name, and the port as `port`";
        out.error(at.key("address"), format!("`{address}` is not an address"), hint);
    }
    address.to_owned()
}

fn is_address(text: &str) -> bool {
    // A text of digits and dots is meant as an IP address, not as a name.
    let like_ip = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse::<IpAddr>().is_ok() || (!like_ip && syntax::is_dns_name(&text.to_lowercase()))
}

/// The address inside the cluster: `v4` or `v4,v6`.
fn internal_address(
    doc: &v1alpha2::Host,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> (Ipv4Addr, Option<Ipv6Addr>) {
    let (text, place) = match (&doc.internal_address, &doc.address) {
        (Some(text), _) => (text, at.key("internalAddress")),
        (None, Some(text)) => (text, at.key("address")),
        (None, None) => return (Ipv4Addr::UNSPECIFIED, None),
    };
    let mut parts = text.splitn(2, ',').map(str::trim);
    let v4 = parts.next().and_then(|part| part.parse().ok());
    let v6 = parts.next().map(str::parse::<Ipv6Addr>);
    match (v4, v6) {
        (Some(v4), None) if is_host_address(v4) => return (v4, None),
        (Some(v4), Some(Ok(v6))) if is_host_address(v4) => return (v4, Some(v6)),
        (Some(v4), None | Some(Ok(_))) => {
            out.error(
                place,
                format!("{v4} cannot be a host's address in the cluster"),
                "the other hosts must reach it",
            );
        }
        _ if doc.internal_address.is_some() => {
            let hint = "give an IPv4 address, or an IPv4 and an IPv6 address with a comma between";
            out.error(place, format!("`{text}` is not an internal address"), hint);
        }
        _ if is_address(text) => {
            let message = format!("host `{}` has no IPv4 address inside the cluster", doc.name);
            out.error(place, message, "add `internalAddress: …` with an IPv4 address");
        }
        // `address` reports this error.
        _ => {}
    }
    (Ipv4Addr::UNSPECIFIED, None)
}

fn is_host_address(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || address.is_broadcast())
}

fn user(user: &str, at: At<'_>, out: &mut Findings<'_>) -> String {
    if !syntax::is_one_word(user) || user.starts_with('-') {
        out.error(at.key("user"), format!("`{user}` is not a user name"), "give a name without blanks");
    }
    user.to_owned()
}

fn private_key(
    inline: Option<&Secret>,
    path: Option<&String>,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> Option<PrivateKey> {
    if let (Some(_), Some(_)) = (inline, path) {
        let message = "both `privateKey` and `privateKeyPath` are given; `privateKey` is taken";
        out.warning(at.name("privateKeyPath"), message, "remove one of them");
    }
    if let Some(key) = inline
        && !key.expose().trim_start().starts_with("-----BEGIN ")
    {
        let hint = "give the whole key, from `-----BEGIN` to `-----END`; for a file use `privateKeyPath`";
        out.error(at.name("privateKey"), "`privateKey` is not a private key", hint);
    }
    inline.cloned().map(PrivateKey::Inline).or_else(|| path.cloned().map(PrivateKey::Path))
}

/// `type base64`; a comment after it is dropped.
fn host_key(text: &str, at: At<'_>, out: &mut Findings<'_>) -> String {
    let mut words = text.split_whitespace();
    if let (Some(kind), Some(key)) = (words.next(), words.next()) {
        let base64 = key.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
        if base64 && ["ssh-", "ecdsa-", "sk-"].iter().any(|known| kind.starts_with(known)) {
            return format!("{kind} {key}");
        }
    }
    let hint = "give its type and text, as `ssh-keyscan` prints them after the host: `ssh-ed25519 AAAA…`";
    out.error(at, "`hostKey` is not a public key", hint);
    String::new()
}

fn check_labels(doc: &v1alpha2::Host, at: At<'_>, out: &mut Findings<'_>) {
    for (key, value) in &doc.labels {
        if !syntax::is_label_key(key) {
            let hint = "use `name` or `domain/name` with letters, digits, `-`, `_` and `.`";
            out.error(at.name(key), format!("`{key}` cannot be the key of a label"), hint);
        }
        if !syntax::is_label_value(value) {
            let hint = "use at most 63 letters, digits, `-`, `_` and `.`";
            out.error(at.key(key), format!("`{value}` cannot be the value of a label"), hint);
        }
    }
}

fn taints(texts: &[String], at: At<'_>, out: &mut Findings<'_>) -> Vec<Taint> {
    let mut taints = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        match taint(text) {
            Some(taint) if taints.iter().any(|other: &Taint| (&other.key, other.effect) == (&taint.key, taint.effect)) => {
                let message = format!("a node has one taint `{}:{}`", taint.key, taint.effect.as_str());
                out.error(at.item(i), message, "remove one of them");
            }
            Some(taint) => taints.push(taint),
            None => out.error(
                at.item(i),
                format!("`{text}` is not a taint"),
                "write `key=value:Effect` or `key:Effect`; the effect is NoSchedule, PreferNoSchedule or NoExecute",
            ),
        }
    }
    taints
}

fn taint(text: &str) -> Option<Taint> {
    let (key_value, effect) = text.rsplit_once(':')?;
    let (key, value) = key_value.split_once('=').unwrap_or((key_value, ""));
    let effect = TaintEffect::ALL.into_iter().find(|known| known.as_str() == effect)?;
    (syntax::is_label_key(key) && syntax::is_label_value(value)).then(|| Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect,
    })
}

fn bastion(doc: &v1alpha2::Bastion, at: At<'_>, out: &mut Findings<'_>) -> Bastion {
    if doc.address.is_empty() {
        out.missing(at, "the bastion has no address", "add `address: …`");
    } else if !is_address(&doc.address) {
        let hint = "give an IP address or a DNS name, and the port as `port`";
        out.error(at.key("address"), format!("`{}` is not an address", doc.address), hint);
    }
    check_password(doc.password.as_ref(), "password", at, out);
    Bastion {
        address: doc.address.clone(),
        port: doc.port,
        user: user(&doc.user, at, out),
        password: doc.password.clone(),
        private_key: private_key(doc.private_key.as_ref(), doc.private_key_path.as_ref(), at, out),
        host_key: doc.host_key.as_ref().map(|key| host_key(key, at.key("hostKey"), out)),
    }
}
