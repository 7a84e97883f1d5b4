//! Opens a session: TCP (or a bastion's channel), handshake, host key, log-in.

use std::{
    net::{TcpStream, ToSocketAddrs},
    os::fd::OwnedFd,
    time::Duration,
};

use rustix::net::sockopt;
use ssh2::{MethodType, Session};

use super::{auth, bastion, config::SshConfig, known_hosts::KnownHosts};
use crate::Error;

/// Cheap ciphers first: the CPU of both ends is the limit on a fast network.
const CIPHERS: &str = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr";
/// A peer that confirms nothing for so long is gone.
const PEER_SILENT: Duration = Duration::from_secs(30);

/// An authenticated session and its socket (for polling).
pub(super) struct Dialled {
    pub(super) session: Session,
    pub(super) socket: OwnedFd,
}

/// Connects and logs in.
pub(super) fn dial(config: &SshConfig) -> Result<Dialled, Error> {
    let mut session = Session::new().map_err(|error| unreachable(config, error.message()))?;
    session.set_timeout(u32::try_from(config.timeout.as_millis()).unwrap_or(u32::MAX));
    let socket = match &config.bastion {
        None => {
            let stream = connect(config)?;
            let socket = stream.try_clone().map_err(|error| unreachable(config, &error.to_string()))?;
            session.set_tcp_stream(stream);
            OwnedFd::from(socket)
        }
        Some(through) => {
            let stream = bastion::tunnel(through, config)?;
            let socket = stream.try_clone().map_err(|error| unreachable(config, &error.to_string()))?;
            session.set_tcp_stream(stream);
            OwnedFd::from(socket)
        }
    };
    let known = KnownHosts::read(config)?;
    for method in [MethodType::CryptCs, MethodType::CryptSc] {
        session.method_pref(method, CIPHERS).map_err(|error| unreachable(config, error.message()))?;
    }
    session
        .method_pref(MethodType::HostKey, &known.algorithms())
        .map_err(|error| unreachable(config, error.message()))?;
    session
        .handshake()
        .map_err(|error| unreachable(config, &format!("SSH handshake: {}", error.message())))?;
    let (key, _) = session.host_key().ok_or_else(|| unreachable(config, "the host showed no key"))?;
    known.verify(key)?;
    auth::log_in(&session, config)?;
    session.set_keepalive(true, 1);
    Ok(Dialled { session, socket })
}

/// Tries each address of the name in turn.
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
                reason = format!("no answer within {} s", config.timeout.as_secs_f32());
            }
            Err(error) => reason = error.to_string(),
        }
    }
    Err(unreachable(config, &reason))
}

/// Small packets leave at once, and a vanished peer is noticed. Without these it works, only later.
fn tune(stream: &TcpStream) {
    let silent = u32::try_from(PEER_SILENT.as_millis()).unwrap_or(u32::MAX);
    if let Err(error) =
        stream.set_nodelay(true).and_then(|()| Ok(sockopt::set_tcp_user_timeout(stream, silent)?))
    {
        tracing::debug!(%error, "cannot set socket options");
    }
}

/// An error of the way to the host.
pub(super) fn unreachable(config: &SshConfig, reason: &str) -> Error {
    Error::Unreachable { address: config.place(), reason: reason.to_owned() }
}
