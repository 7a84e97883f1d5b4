//! Certificates of the servers and of their clients.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use shell_operator::webhook::certificates::{Bundle, self_signed};

use super::{ALLOW, checks, setup, wait_for_log};
use crate::cluster::control_plane::shared;

/// Whether a client that trusts only `ca` reaches the server; `more` are further arguments of curl.
fn reaches(port: u16, ca: &Path, more: &[&str]) -> bool {
    let url = format!("https://127.0.0.1:{port}/healthz");
    let output = Command::new("curl")
        .args(["-sf", "--max-time", "3", "--cacert"])
        .arg(ca)
        .args(more)
        .arg(url)
        .output();
    output.unwrap().status.success()
}

fn write(dir: &Path, bundle: &Bundle) {
    for (name, text) in [("ca.crt", &bundle.ca), ("tls.crt", &bundle.certificate), ("tls.key", &bundle.key)] {
        fs::write(dir.join(name), text).unwrap();
    }
}

fn bundle(hours: u64) -> Bundle {
    self_signed(&["127.0.0.1".to_owned()], Duration::from_hours(hours)).unwrap()
}

#[test]
fn certificates_are_taken_over_while_the_server_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let (setup, port) = setup("tls-op");
    write(dir.path(), &bundle(100));
    let operator = setup
        .flag(&format!("--validating-webhook-server-cert={}", file("tls.crt").display()))
        .flag(&format!("--validating-webhook-server-key={}", file("tls.key").display()))
        .flag(&format!("--validating-webhook-ca={}", file("ca.crt").display()))
        .hook("h", &checks("tls-op"), ALLOW)
        .start();
    operator.wait_for("the server", |_| reaches(port, &file("ca.crt"), &[]));
    fs::copy(file("ca.crt"), file("old-ca.crt")).unwrap();
    fs::write(file("tls.crt"), "nothing").unwrap();
    wait_for_log(&operator, "new certificates are not used");
    assert!(reaches(port, &file("old-ca.crt"), &[]), "the old certificate stays");
    write(dir.path(), &bundle(100));
    operator.wait_for("the new certificate", |_| reaches(port, &file("ca.crt"), &[]));
    assert!(!reaches(port, &file("old-ca.crt"), &[]));
}

#[test]
fn clients_need_a_certificate_when_a_client_authority_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let client = tempfile::tempdir().unwrap();
    write(dir.path(), &bundle(100));
    write_client_certificate(client.path());
    let (setup, port) = setup("mtls-op");
    let operator = setup
        .flag(&format!("--validating-webhook-server-cert={}", file("tls.crt").display()))
        .flag(&format!("--validating-webhook-server-key={}", file("tls.key").display()))
        .flag(&format!("--validating-webhook-ca={}", file("ca.crt").display()))
        .flag(&format!("--validating-webhook-client-ca={}", client.path().join("ca.crt").display()))
        .hook("h", &checks("mtls-op"), ALLOW)
        .start();
    let (certificate, key) = (client.path().join("tls.crt"), client.path().join("tls.key"));
    let with = ["--cert", certificate.to_str().unwrap(), "--key", key.to_str().unwrap()];
    operator.wait_for("the server", |_| reaches(port, &file("ca.crt"), &with));
    assert!(!reaches(port, &file("ca.crt"), &[]));
}

fn write_client_certificate(dir: &Path) {
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(dir.join("ca.crt"), ca.self_signed(&ca_key).unwrap().pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut client = CertificateParams::new(vec!["client".to_owned()]).unwrap();
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    fs::write(dir.join("tls.crt"), client.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap().pem()).unwrap();
    fs::write(dir.join("tls.key"), key.serialize_pem()).unwrap();
}

#[test]
fn own_certificates_are_renewed_before_their_end() {
    let plane = shared();
    plane.kubectl("create ns renew");
    plane.kubectl("label ns renew of=renew-op");
    let (setup, port) = setup("renew-op");
    let operator = setup.flag("--webhook-self-signed").hook("h", &checks("renew-op"), ALLOW).start();
    let mut count = 0;
    let mut create = || {
        count += 1;
        plane.try_kubectl(&format!("-n renew create cm c{count}"))
    };
    operator.wait_for("a request", |_| create().is_ok());
    let secret = "-n renew-op get secret shell-operator-validating-svc-certificates";
    let stored = || {
        let text = plane.kubectl(&format!(r"{secret} -o 'go-template={{{{index .data `ca.crt`}}}}'"));
        String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
    };
    // A user stores certificates there that soon end; the next check replaces them.
    let ending = bundle(0);
    let patch = serde_json::json!({ "stringData": { "ca.crt": ending.ca, "tls.crt": ending.certificate, "tls.key": ending.key } });
    plane.kubectl(&format!(
        "-n renew-op patch secret shell-operator-validating-svc-certificates -p '{patch}'"
    ));
    wait_for_log(&operator, "has new certificates for the webhooks: its certificate counts until");
    let ca = tempfile::NamedTempFile::new().unwrap();
    let newest = stored().replace(&ending.ca, "");
    assert!(!newest.is_empty() && newest != stored(), "the authority before is trusted for a while");
    fs::write(ca.path(), newest).unwrap();
    operator.wait_for("the new certificate", |_| {
        assert!(create().is_ok(), "no request fails meanwhile");
        reaches(port, ca.path(), &[])
    });
    assert!(create().is_ok());
}
