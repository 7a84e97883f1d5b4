//! What the programs that kk's scripts start do to a host, by the text that starts them, and how long they take there.
//!
//! The times are those of the lab's hosts; without them a run would show nothing but the cost of the connections.

use std::time::Duration;

/// Starting or restarting a unit.
pub(super) const UNIT: Duration = Duration::from_millis(300);
/// Looking at a host.
pub(super) const PROBE: Duration = Duration::from_millis(150);
/// The cluster's CA, and every certificate that it would have signed: valid for a hundred years, and its key is nowhere.
pub(super) const CA: &[u8] = include_bytes!("certificate.pem");
/// The administrator's kubeconfig, with the same certificate.
pub(super) const ADMIN: &[u8] = include_bytes!("admin.conf");

/// Base64 of PEM whose content is no key.
const PRIVATE_KEY: &str = "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tClFVSkQKLS0tLS1FTkQgUFJJVkFURSBLRVktLS0tLQo=";
const PUBLIC_KEY: &str = "LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KUVVKRAotLS0tLUVORCBQVUJMSUMgS0VZLS0tLS0K";

/// A program's effect.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) name: &'static str,
    pub(super) takes: Duration,
}

/// Text that starts a program, the effect's name, and milliseconds.
const PROGRAMS: [(&str, &str, u64); 12] = [
    ("kubeadm init --config", "init", 5000),
    ("kubeadm join ", "join", 1200),
    ("crictl --timeout 30m pull", "pull", 2500),
    ("kubectl label ", "label", 300),
    ("kubectl apply --server-side", "apply", 800),
    ("-f objects.yaml", "record", 300),
    ("kubectl wait ", "wait", 4000),
    ("kk_wait ", "poll", 500),
    ("cat /etc/kubernetes/pki/ca.crt", "read-ca", 5),
    ("base64 <\"/etc/kubernetes/pki/", "share", 10),
    (">/etc/kubernetes/kubekey/manifests.sums", "sums", 5),
    ("sleep 1", "sleep", 1000),
];

/// What a control plane prints of the files that the script names: each with its content in Base64. Keys are PEM, and nothing more.
pub(super) fn shared(text: &str) -> String {
    let admin = String::from_utf8_lossy(ADMIN);
    let certificate = admin.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: "));
    let names = text.split_once("for name in ").and_then(|(_, rest)| rest.split_once(';'));
    let mut printed = String::new();
    for name in names.map_or("", |(names, _)| names).split_whitespace() {
        let content = match name.rsplit_once('.') {
            Some((_, "crt")) => certificate.unwrap_or_default(),
            Some((_, "pub")) => PUBLIC_KEY,
            _ => PRIVATE_KEY,
        };
        printed.extend([name, " ", content, "\n"]);
    }
    printed
}

/// The effects of an operation, in the order of the table.
pub(super) fn effects(text: &str) -> impl Iterator<Item = Effect> + '_ {
    let found = PROGRAMS.iter().filter(|(start, _, _)| text.contains(start));
    found.map(|(_, name, milliseconds)| Effect { name, takes: Duration::from_millis(*milliseconds) })
}
