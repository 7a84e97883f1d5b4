//! Host keys: known, new, changed, pinned; and connections through a bastion.

use std::{fs, process::Command};

use kk_connector::{
    Connection, Error, ErrorKind, HostKeyPolicy, LearntKey, LearntKeys, SshConfig, SshConnection,
};

use crate::ssh::{connect::try_it, script, sshd::Sshd};

/// The fingerprint as OpenSSH prints it.
fn fingerprint(sshd: &Sshd, kind: &str) -> String {
    let said =
        Command::new("ssh-keygen").arg("-lf").arg(sshd.path(&format!("host_{kind}.pub"))).output().unwrap();
    String::from_utf8(said.stdout).unwrap().split_whitespace().nth(1).unwrap().to_owned()
}

/// A line of `known_hosts` for the daemon.
fn known(sshd: &Sshd, kind: &str) -> String {
    let key = fs::read_to_string(sshd.path(&format!("host_{kind}.pub"))).unwrap();
    format!("[127.0.0.1]:{} {key}", sshd.port)
}

fn with_policy(sshd: &Sshd, host_keys: HostKeyPolicy) -> SshConfig {
    SshConfig { host_keys, ..sshd.config() }
}

#[tokio::test]
async fn a_new_key_is_kept_once_however_many_dial() {
    let sshd = Sshd::start("");
    fs::write(sshd.path("known_hosts"), "# no newline at the end").unwrap();
    let dials = (0..8).map(|_| try_it(with_policy(&sshd, HostKeyPolicy::AcceptNew)));
    for result in futures::future::join_all(dials).await {
        result.unwrap();
    }
    let text = fs::read_to_string(sshd.path("known_hosts")).unwrap();
    let mut key = known(&sshd, "ed25519");
    key.truncate(key.rfind(' ').unwrap());
    assert_eq!(text, format!("# no newline at the end\n{key}\n"));
    try_it(with_policy(&sshd, HostKeyPolicy::Strict)).await.unwrap();
}

#[tokio::test]
async fn strict_refuses_an_unknown_host_and_shows_its_fingerprint() {
    let sshd = Sshd::start("");
    let error = try_it(with_policy(&sshd, HostKeyPolicy::Strict)).await.unwrap_err();
    assert!(
        matches!(&error, Error::HostKeyUnknown { offered, .. } if *offered == fingerprint(&sshd, "ed25519")),
        "{error}"
    );
    assert!(!sshd.path("known_hosts").exists());
    try_it(with_policy(&sshd, HostKeyPolicy::Off)).await.unwrap();
    assert!(!sshd.path("known_hosts").exists());
}

#[tokio::test]
async fn a_host_of_a_certificate_authority_is_not_trusted_on_first_sight() {
    let sshd = Sshd::start("");
    let line =
        format!("@cert-authority *,[127.0.0.1]:* {}", &known(&sshd, "ecdsa").split_once(' ').unwrap().1);
    fs::write(sshd.path("known_hosts"), format!("# ours\n{line}")).unwrap();
    for policy in [HostKeyPolicy::AcceptNew, HostKeyPolicy::Strict] {
        let error = try_it(with_policy(&sshd, policy)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HostKeyAuthority, "{error}");
        assert!(error.to_string().contains("known_hosts:2"), "{error}");
        assert!(!error.is_transient());
    }
    let key = known(&sshd, "ed25519");
    fs::write(sshd.path("known_hosts"), format!("{line}{key}")).unwrap();
    try_it(with_policy(&sshd, HostKeyPolicy::Strict)).await.unwrap();
}

#[tokio::test]
async fn a_changed_key_is_refused_with_its_place() {
    let (sshd, other) = (Sshd::start(""), Sshd::start(""));
    let wrong = known(&other, "ed25519").replace(&other.port.to_string(), &sshd.port.to_string());
    fs::write(sshd.path("known_hosts"), format!("# a comment\n{wrong}")).unwrap();
    for policy in [HostKeyPolicy::AcceptNew, HostKeyPolicy::Strict] {
        let error = try_it(with_policy(&sshd, policy)).await.unwrap_err();
        let Error::HostKeyChanged { known, offered, place, .. } = &error else { panic!("{error}") };
        assert_eq!(*known, fingerprint(&other, "ed25519"));
        assert_eq!(*offered, fingerprint(&sshd, "ed25519"));
        assert_eq!(*place, format!("{}:2", sshd.path("known_hosts").display()));
        assert!(!error.is_transient() && error.hint().is_some());
    }
    try_it(with_policy(&sshd, HostKeyPolicy::Off)).await.unwrap();
}

#[tokio::test]
async fn a_host_with_several_keys_is_asked_for_the_known_one() {
    let sshd = Sshd::start("");
    fs::write(sshd.path("known_hosts"), known(&sshd, "ecdsa")).unwrap();
    try_it(with_policy(&sshd, HostKeyPolicy::Strict)).await.unwrap();
}

#[tokio::test]
async fn hashed_names_are_understood() {
    let sshd = Sshd::start("");
    fs::write(sshd.path("known_hosts"), known(&sshd, "ed25519")).unwrap();
    let hashed = Command::new("ssh-keygen").arg("-Hf").arg(sshd.path("known_hosts")).output().unwrap();
    assert!(hashed.status.success());
    assert!(fs::read_to_string(sshd.path("known_hosts")).unwrap().starts_with("|1|"));
    try_it(with_policy(&sshd, HostKeyPolicy::Strict)).await.unwrap();
}

#[tokio::test]
async fn a_key_that_is_known_without_a_port_is_known_on_every_port() {
    let (sshd, other) = (Sshd::start(""), Sshd::start(""));
    let without_port =
        |sshd: &Sshd| known(sshd, "ed25519").replace(&format!("[127.0.0.1]:{}", sshd.port), "127.0.0.1");
    fs::write(sshd.path("known_hosts"), without_port(&sshd)).unwrap();
    try_it(with_policy(&sshd, HostKeyPolicy::Strict)).await.unwrap();
    // The key of another host at this address is no evidence for this port.
    fs::write(sshd.path("known_hosts"), without_port(&other)).unwrap();
    let error = try_it(with_policy(&sshd, HostKeyPolicy::Strict)).await.unwrap_err();
    assert!(matches!(error, Error::HostKeyUnknown { .. }), "{error}");
    try_it(with_policy(&sshd, HostKeyPolicy::AcceptNew)).await.unwrap();
}

#[tokio::test]
async fn a_link_to_the_known_hosts_stays_one() {
    let sshd = Sshd::start("");
    std::os::unix::fs::symlink("elsewhere", sshd.path("known_hosts")).unwrap();
    try_it(sshd.config()).await.unwrap();
    assert!(fs::symlink_metadata(sshd.path("known_hosts")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(sshd.path("elsewhere")).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn a_pinned_key_is_the_only_one() {
    let (sshd, other) = (Sshd::start(""), Sshd::start(""));
    let pinned = |sshd: &Sshd| fs::read_to_string(sshd.path("host_ecdsa.pub")).ok();
    try_it(SshConfig { host_key: pinned(&sshd), ..with_policy(&sshd, HostKeyPolicy::Strict) }).await.unwrap();
    for policy in [HostKeyPolicy::AcceptNew, HostKeyPolicy::Off] {
        let error =
            try_it(SshConfig { host_key: pinned(&other), ..with_policy(&sshd, policy) }).await.unwrap_err();
        assert!(matches!(error, Error::HostKeyChanged { .. }), "{error}");
    }
    let error = try_it(SshConfig { host_key: Some("nonsense".into()), ..sshd.config() }).await.unwrap_err();
    assert!(matches!(error, Error::KnownHosts { .. }), "{error}");
}

#[tokio::test]
async fn a_revoked_key_and_an_unwritable_file_are_refused() {
    let sshd = Sshd::start("");
    fs::write(sshd.path("known_hosts"), format!("@revoked {}", known(&sshd, "ed25519"))).unwrap();
    let error = try_it(sshd.config()).await.unwrap_err();
    assert!(error.to_string().contains("revoked"), "{error}");
    let error =
        try_it(SshConfig { known_hosts: "/proc/kk/known_hosts".into(), ..sshd.config() }).await.unwrap_err();
    assert!(matches!(error, Error::KnownHosts { .. }), "{error}");
}

#[tokio::test]
async fn a_bastion_leads_to_the_host_and_both_keys_are_checked() {
    let (sshd, bastion) = (Sshd::start(""), Sshd::start(""));
    let through = SshConfig { known_hosts: sshd.path("known_hosts"), ..bastion.config() };
    let config = SshConfig { bastion: Some(Box::new(through)), ..sshd.config() };
    let host = SshConnection::new(config.clone());
    assert_eq!(
        host.run(script("echo $SSH_CONNECTION >/dev/null; seq 500000")).await.unwrap().stdout.len(),
        3_388_895
    );
    let names: Vec<String> = fs::read_to_string(sshd.path("known_hosts"))
        .unwrap()
        .lines()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(names, [bastion.port, sshd.port].map(|port| format!("[127.0.0.1]:{port}")));

    bastion.cut();
    assert_eq!(host.run(script("echo again")).await.unwrap().stdout, "again\n");

    fs::write(
        sshd.path("known_hosts"),
        known(&bastion, "ed25519").replace(&bastion.port.to_string(), &sshd.port.to_string()),
    )
    .unwrap();
    assert!(matches!(try_it(config).await, Err(Error::HostKeyChanged { .. })));
}

#[tokio::test]
async fn a_bastion_is_not_overrun_by_many_hosts() {
    let (sshd, bastion) = (Sshd::start(""), Sshd::start("MaxStartups 8:100:8"));
    let tries =
        (0..16).map(|_| try_it(SshConfig { bastion: Some(Box::new(bastion.config())), ..sshd.config() }));
    for result in futures::future::join_all(tries).await {
        assert_eq!(result.unwrap(), "in\n");
    }
}

#[tokio::test]
async fn a_bastion_that_does_not_forward_says_so() {
    let (sshd, bastion) = (Sshd::start(""), Sshd::start("AllowTcpForwarding no"));
    let error =
        try_it(SshConfig { bastion: Some(Box::new(bastion.config())), ..sshd.config() }).await.unwrap_err();
    assert!(
        matches!(&error, Error::Unreachable { reason, .. } if reason.contains("through 127.0.0.1:")),
        "{error}"
    );
}

#[tokio::test]
async fn a_learnt_key_is_reported_once_with_its_fingerprint() {
    let (sshd, bastion) = (Sshd::start(""), Sshd::start(""));
    let config = || {
        let learnt = LearntKeys::default();
        let way = SshConfig { learnt: learnt.clone(), ..bastion.config() };
        let way = SshConfig { name: "bastion of node1".into(), ..way };
        SshConfig { learnt, bastion: Some(Box::new(way)), ..sshd.config() }
    };
    let key = |host: &str, sshd: &Sshd| LearntKey {
        host: host.into(),
        address: format!("127.0.0.1:{}", sshd.port),
        kind: "ssh-ed25519".into(),
        fingerprint: fingerprint(sshd, "ed25519"),
    };
    let host = SshConnection::new(config());
    host.run(script("true")).await.unwrap();
    assert_eq!(host.learnt(), [key("bastion of node1", &bastion), key("node1", &sshd)]);
    host.run(script("true")).await.unwrap();
    assert_eq!(host.learnt(), []);
    let again = SshConnection::new(config());
    again.run(script("true")).await.unwrap();
    assert_eq!(again.learnt(), [], "both are known");
}

#[tokio::test]
async fn the_key_of_a_bastion_can_be_pinned() {
    let (sshd, bastion) = (Sshd::start(""), Sshd::start(""));
    for (pinned, is_known) in [(&bastion, true), (&sshd, false)] {
        let host_key = fs::read_to_string(pinned.path("host_ed25519.pub")).unwrap();
        let way = SshConfig { host_key: Some(host_key), ..bastion.config() };
        let result = try_it(SshConfig { bastion: Some(Box::new(way)), ..sshd.config() }).await;
        assert_eq!(result.is_ok(), is_known, "{result:?}");
        assert!(is_known || matches!(result, Err(Error::HostKeyChanged { .. })));
        assert!(!bastion.path("known_hosts").exists(), "a pinned key is not learnt");
    }
}
