//! Opens a session: TCP (or a bastion's channel), handshake, host key, log-in.

use std::{
    net::{TcpStream, ToSocketAddrs},
    os::fd::OwnedFd,
    time::Duration,
};

use rustix::net::sockopt;
use ssh2::{MethodType, Session};

use super::{
    auth, bastion,
    config::SshConfig,
    errors::{no_answer, unreachable, words},
    known_hosts::KnownHosts,
    logins::{TO_BASTIONS, TO_HOSTS},
    session::SshSession,
};
use crate::Error;

/// Cheap ciphers first: on a fast network, the CPU of both ends is the limit.
const CIPHERS: &str = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr";
/// Key exchanges without SHA-1: libssh2 would accept group1 from a host that offers nothing else. libssh2 adds the marker for a
/// strict key exchange.
const KEY_EXCHANGES: &str = "mlkem768x25519-sha256,curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,\
    ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,\
    diffie-hellman-group-exchange-sha256,diffie-hellman-group14-sha256";
/// Message authentication without SHA-1, MD5 and RIPEMD, for ciphers without their own authentication.
const MACS: &str = "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha2-256,hmac-sha2-512";
/// A peer that acknowledges nothing for this long is gone.
const PEER_SILENT: Duration = Duration::from_secs(30);

/// Connects and logs in, through a bastion if one is set.
pub(super) fn dial(config: &SshConfig) -> Result<SshSession, Error> {
    match &config.bastion {
        None => log_in(config, connect(config)?),
        Some(through) => {
            let login = TO_BASTIONS.begin();
            let way = dial(through)?;
            drop(login);
            log_in(config, bastion::tunnel(way, through, config)?)
        }
    }
}

/// Handshake, host key and log-in on a stream to the host. The permit is taken only now, so an unreachable host holds none.
fn log_in(config: &SshConfig, stream: impl Into<OwnedFd>) -> Result<SshSession, Error> {
    let _login = TO_HOSTS.begin();
    let session = Session::new().map_err(|error| unreachable(config, error.message()))?;
    session.set_timeout(u32::try_from(config.timeout.as_millis()).unwrap_or(u32::MAX));
    let mut session = SshSession::new(session, stream);
    let known = KnownHosts::read(config)?;
    let ssh2 = &session.session;
    for (method, names) in [
        (MethodType::Kex, KEY_EXCHANGES),
        (MethodType::CryptCs, CIPHERS),
        (MethodType::CryptSc, CIPHERS),
        (MethodType::MacCs, MACS),
        (MethodType::MacSc, MACS),
        (MethodType::HostKey, &known.algorithms()),
    ] {
        ssh2.method_pref(method, names).map_err(|error| unreachable(config, error.message()))?;
    }
    session
        .session
        .handshake()
        .map_err(|error| unreachable(config, &format!("SSH handshake: {}", words(config, &error))))?;
    let (key, _) = session.session.host_key().ok_or_else(|| unreachable(config, "the host showed no key"))?;
    known.verify(key)?;
    auth::log_in(&session, config)?;
    Ok(session)
}

/// Tries each address of the host name in turn.
fn connect(config: &SshConfig) -> Result<TcpStream, Error> {
    let addresses = (config.address.as_str(), config.port)
        .to_socket_addrs()
        .map_err(|error| unreachable(config, &error.to_string()))?;
    let mut reason = "the name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, config.timeout) {
            Ok(stream) => {
                tune(&stream);
                return Ok(stream);
            }
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                reason = no_answer(config);
            }
            Err(error) => reason = error.to_string(),
        }
    }
    Err(unreachable(config, &reason))
}

/// Sends small packets at once, and detects a vanished peer.
fn tune(stream: &TcpStream) {
    let silent = u32::try_from(PEER_SILENT.as_millis()).unwrap_or(u32::MAX);
    // The connection also works without these options, only more slowly.
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_tcp_user_timeout(stream, silent);
}
