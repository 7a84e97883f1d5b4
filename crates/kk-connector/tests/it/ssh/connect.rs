//! Logging in with keys, passwords and the agent, and the errors if it fails.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use kk_config::{PrivateKey, Secret};
use kk_connector::{Connection, Error, SshConfig, SshConnection};

use crate::ssh::{
    script,
    sshd::{Sshd, keygen},
};

pub(crate) async fn try_it(config: SshConfig) -> Result<String, Error> {
    SshConnection::new(config).run(script("echo in")).await.map(|out| out.stdout)
}

#[tokio::test]
async fn every_kind_of_key_logs_in() {
    for kind in ["ed25519", "ecdsa", "rsa"] {
        for phrase in ["", "s3cret"] {
            println!("case kind {kind:?}, phrase {phrase:?}");
            let sshd = Sshd::start("");
            let path = sshd.path("key");
            keygen(&path, kind, phrase);
            fs::copy(sshd.path("key.pub"), sshd.path("authorized_keys")).unwrap();
            let passphrase = (!phrase.is_empty()).then(|| Secret::new(phrase));
            let text = fs::read_to_string(&path).unwrap();
            for key in [PrivateKey::Path(path.display().to_string()), PrivateKey::Inline(text.into())] {
                let config =
                    SshConfig { private_key: Some(key), passphrase: passphrase.clone(), ..sshd.config() };
                assert_eq!(try_it(config).await.unwrap(), "in\n", "kind {kind:?}, phrase {phrase:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_used_is_named() {
    for (case, text, phrase, why) in [
        ("missing", "", None, "No such file"),
        ("garbage", "hello", None, "not a private key"),
        ("public", "ssh-ed25519 AAAA me", None, "public key"),
        (
            "broken",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
            None,
            "",
        ),
        ("encrypted", "keygen", None, "no passphrase is given"),
        ("wrong_passphrase", "keygen", Some("wrong"), ""),
    ] {
        println!("case {case}");
        let sshd = Sshd::start("");
        let path = sshd.path("key");
        match text {
            "" => {}
            "keygen" => keygen(&path, "ed25519", "right"),
            text => fs::write(&path, text).unwrap(),
        }
        let error = try_it(SshConfig {
            private_key: Some(PrivateKey::Path(path.display().to_string())),
            passphrase: phrase.map(Secret::new),
            ..sshd.config()
        });
        let error = error.await.unwrap_err();
        assert!(matches!(&error, Error::Key { .. }), "{case}: {error}");
        assert!(error.to_string().contains(why) && error.to_string().contains("key"), "{case}: {error}");
    }
}

/// The path relative to the home directory.
fn below_home(path: &Path) -> String {
    let home = std::env::home_dir().unwrap().canonicalize().unwrap();
    let up = "../".repeat(home.components().count() - 1);
    format!("~/{up}{}", path.strip_prefix("/").unwrap().display())
}

#[tokio::test]
async fn a_key_that_other_users_can_read_or_change_is_refused_until_the_hint_is_followed() {
    let sshd = Sshd::start("");
    let path = sshd.path("id_ed25519");
    for name in [path.display().to_string(), below_home(&path)] {
        let config = || SshConfig { private_key: Some(PrivateKey::Path(name.clone())), ..sshd.config() };
        for (mode, why) in [(0o600, None), (0o400, None), (0o640, Some("0640")), (0o604, Some("0604"))] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let result = try_it(config()).await;
            assert_eq!(result.is_ok(), why.is_none(), "{name} {mode:o}: {result:?}");
            let (Err(error), Some(why)) = (result, why) else { continue };
            let Error::Key { reason, .. } = &error else { panic!("{error:?}") };
            let (found, repair) = reason.split_once("; run: ").unwrap();
            assert!(found.contains(why), "{reason}");
            assert!(Command::new("sh").args(["-c", repair]).status().unwrap().success(), "{repair}");
            assert_eq!(try_it(config()).await.unwrap(), "in\n", "{repair}");
        }
    }
}

#[tokio::test]
async fn broken_algorithms_are_not_agreed_on() {
    for weak in [
        "KexAlgorithms diffie-hellman-group14-sha1",
        "KexAlgorithms diffie-hellman-group1-sha1",
        "Ciphers aes128-ctr\nMACs hmac-sha1",
        "Ciphers aes128-ctr\nMACs hmac-md5",
    ] {
        let error = try_it(Sshd::start(weak).config()).await.unwrap_err();
        assert!(error.to_string().contains("SSH handshake"), "{weak}: {error}");
    }
    for strong in ["KexAlgorithms diffie-hellman-group14-sha256", "Ciphers aes128-ctr\nMACs hmac-sha2-256"] {
        assert_eq!(try_it(Sshd::start(strong).config()).await.unwrap(), "in\n", "{strong}");
    }
}

#[tokio::test]
async fn a_refused_log_in_says_what_was_tried() {
    let sshd = Sshd::start("");
    let path = sshd.path("other");
    keygen(&path, "ed25519", "");
    let config = SshConfig {
        private_key: Some(PrivateKey::Path(path.display().to_string())),
        password: Some(Secret::new("sentinel-password")),
        ..sshd.config()
    };
    let error = try_it(config).await.unwrap_err();
    let Error::Login { reason, .. } = &error else { panic!("{error}") };
    assert!(reason.contains("other: refused") && reason.contains("password: refused"), "{reason}");
    assert!(!format!("{error} {error:?} {:?}", error.hint()).contains("sentinel"));
}

#[tokio::test]
async fn a_password_where_only_keys_are_allowed_is_explained() {
    let sshd = Sshd::start("PasswordAuthentication no\nKbdInteractiveAuthentication no");
    let config = SshConfig { private_key: None, password: Some(Secret::new("x")), ..sshd.config() };
    let error = try_it(config).await.unwrap_err();
    assert!(error.to_string().contains("password: the host does not allow it, only publickey"), "{error}");
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = try_it(SshConfig { port, ..SshConfig::new("n", "127.0.0.1", "root") }).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }) && error.is_transient(), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_port_that_says_nothing_times_out() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let begin = Instant::now();
    let timeout = Duration::from_millis(500);
    let error =
        try_it(SshConfig { port, timeout, ..SshConfig::new("n", "127.0.0.1", "root") }).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_unreachable() {
    let error = try_it(SshConfig::new("n", "no such name", "root")).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn an_account_without_a_shell_is_told_from_a_lost_connection() {
    let sshd = Sshd::start("ForceCommand echo 'This account is not available.'; exit 1");
    let error = try_it(sshd.config()).await.unwrap_err();
    assert!(error.to_string().contains("This account is not available."), "{error}");
}

#[tokio::test]
async fn the_agent_s_keys_log_in() {
    let sshd = Sshd::start("");
    let agent = Agent::start(&sshd);
    let config = SshConfig { private_key: None, agent_socket: Some(sshd.path("agent")), ..sshd.config() };
    let error =
        try_it(SshConfig { agent_socket: Some(sshd.path("nobody")), ..config.clone() }).await.unwrap_err();
    assert!(error.to_string().contains("agent: "), "{error}");
    assert_eq!(try_it(config).await.unwrap(), "in\n");
    drop(agent);
}

#[tokio::test]
async fn an_agent_with_more_keys_than_the_host_wants_to_try_is_explained() {
    let sshd = Sshd::start("MaxAuthTries 3");
    let agent = Agent::empty(&sshd);
    for name in ["k1", "k2", "k3", "k4", "k5"] {
        keygen(&sshd.path(name), "ed25519", "");
        agent.add(&sshd.path(name));
    }
    agent.add(&sshd.path("id_ed25519"));
    let config = SshConfig { private_key: None, agent_socket: Some(sshd.path("agent")), ..sshd.config() };
    let error = try_it(config.clone()).await.unwrap_err();
    let Error::Login { reason, .. } = &error else { panic!("{error:?}") };
    assert!(reason.contains("MaxAuthTries") && reason.matches(": refused").count() >= 2, "{reason}");
    assert!(error.hint().unwrap().contains("privateKeyPath"), "{error}");
    drop(agent);
}

#[tokio::test]
async fn an_agent_that_dies_is_told_from_a_host_that_does() {
    let sshd = Sshd::start("");
    let socket = sshd.path("agent");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || drop(listener.accept()));
    let config = SshConfig { private_key: None, agent_socket: Some(socket), ..sshd.config() };
    let error = try_it(config).await.unwrap_err();
    assert!(matches!(&error, Error::Login { reason, .. } if reason.contains("agent: ")), "{error:?}");
}

struct Agent {
    child: Child,
    socket: PathBuf,
}

impl Agent {
    /// An agent with the key that the daemon accepts.
    fn start(sshd: &Sshd) -> Self {
        let agent = Self::empty(sshd);
        agent.add(&sshd.path("id_ed25519"));
        agent
    }

    fn empty(sshd: &Sshd) -> Self {
        let socket = sshd.path("agent");
        let agent =
            Command::new("ssh-agent").args(["-D", "-a"]).arg(&socket).stdout(Stdio::null()).spawn().unwrap();
        let agent = Self { child: agent, socket };
        while !agent.socket.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        agent
    }

    fn add(&self, key: &Path) {
        let added = Command::new("ssh-add").arg(key).env("SSH_AUTH_SOCK", &self.socket).output().unwrap();
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
