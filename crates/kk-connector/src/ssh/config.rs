//! The settings to reach one host.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use kk_config::{Bastion, Host, PrivateKey, Secret};

use crate::learnt::LearntKeys;

/// How much a host's key is trusted (OpenSSH's `StrictHostKeyChecking`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostKeyPolicy {
    /// Only hosts whose key is known.
    Strict,
    /// The key of a host that is seen for the first time is stored; a changed key is refused.
    #[default]
    AcceptNew,
    /// Any key; none is stored.
    Off,
}

impl FromStr for HostKeyPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "strict" => Ok(Self::Strict),
            "accept-new" => Ok(Self::AcceptNew),
            "off" => Ok(Self::Off),
            other => Err(format!("`{other}` is none of strict, accept-new, off")),
        }
    }
}

impl fmt::Display for HostKeyPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strict => "strict",
            Self::AcceptNew => "accept-new",
            Self::Off => "off",
        })
    }
}

/// All settings to reach one host. With neither key, password nor `agent`, the agent (if there is one) and the user's default
/// keys are tried.
#[derive(Clone, Debug)]
pub struct SshConfig {
    /// The host's name, for messages.
    pub name: String,
    /// IP address or DNS name.
    pub address: String,
    /// TCP port.
    pub port: u16,
    /// Login name.
    pub user: String,
    /// Tried after the key, by the methods `password` and `keyboard-interactive`.
    pub password: Option<Secret>,
    /// Tried first. ed25519, ecdsa or rsa.
    pub private_key: Option<PrivateKey>,
    /// For an encrypted private key.
    pub passphrase: Option<Secret>,
    /// Try the agent, even if there is a key or a password.
    pub agent: bool,
    /// The agent's socket: `SSH_AUTH_SOCK`, usually.
    pub agent_socket: Option<PathBuf>,
    /// For sudo; the default is `password`.
    pub sudo_password: Option<Secret>,
    /// Time limit for connecting, for each step of logging in, and for opening a session.
    pub timeout: Duration,
    /// How long the host may send nothing, not even an answer to a keep-alive, before the connection is given up. At least 6 s.
    pub silence: Duration,
    /// Sessions that are idle for this long are closed, except the last session.
    pub idle: Duration,
    /// The host to connect through.
    pub bastion: Option<Box<SshConfig>>,
    /// How host keys are checked.
    pub host_keys: HostKeyPolicy,
    /// The only key to accept (`ssh-ed25519 AAAA…`), regardless of the policy and `known_hosts`.
    pub host_key: Option<String>,
    /// The file of known host keys, in OpenSSH's format.
    pub known_hosts: PathBuf,
    /// Receives each key that is learnt; the host and its bastion share it.
    pub learnt: LearntKeys,
}

impl SshConfig {
    /// A host with OpenSSH's defaults: port 22, `~/.ssh/known_hosts`, new keys accepted. The timeout is 30 s, `silence` one
    /// minute.
    pub fn new(name: impl Into<String>, address: impl Into<String>, user: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            address: address.into(),
            port: 22,
            user: user.into(),
            password: None,
            private_key: None,
            passphrase: None,
            agent: false,
            agent_socket: std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from),
            sudo_password: None,
            timeout: Duration::from_secs(30),
            silence: Duration::from_mins(1),
            idle: Duration::from_secs(30),
            bastion: None,
            host_keys: HostKeyPolicy::default(),
            host_key: None,
            known_hosts: home().join(".ssh/known_hosts"),
            learnt: LearntKeys::default(),
        }
    }

    /// The host as the Cluster file describes it.
    pub fn from_host(host: &Host, host_keys: HostKeyPolicy) -> Self {
        let learnt = LearntKeys::default();
        Self {
            port: host.port,
            password: host.password.clone(),
            private_key: host.private_key.clone(),
            sudo_password: host.sudo_password.clone(),
            timeout: host.timeout,
            bastion: host.bastion.as_ref().map(|bastion| {
                Box::new(Self {
                    timeout: host.timeout,
                    learnt: learnt.clone(),
                    ..Self::from_bastion(bastion, &host.name, host_keys)
                })
            }),
            host_keys,
            host_key: host.host_key.clone(),
            learnt,
            ..Self::new(&host.name, &host.address, &host.user)
        }
    }

    fn from_bastion(bastion: &Bastion, host: &str, host_keys: HostKeyPolicy) -> Self {
        Self {
            port: bastion.port,
            password: bastion.password.clone(),
            private_key: bastion.private_key.clone(),
            host_keys,
            host_key: bastion.host_key.clone(),
            ..Self::new(format!("bastion of {host}"), &bastion.address, &bastion.user)
        }
    }

    /// `address:port`, for messages.
    pub(super) fn place(&self) -> String {
        if self.address.contains(':') {
            format!("[{}]:{}", self.address, self.port)
        } else {
            format!("{}:{}", self.address, self.port)
        }
    }
}

/// The user's home directory; the root directory for a user without one.
pub(super) fn home() -> PathBuf {
    std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"))
}
