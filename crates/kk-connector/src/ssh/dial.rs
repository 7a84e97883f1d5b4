//! Opens a session: TCP (or a bastion's channel), handshake, host key, log-in.

use std::{
    net::{TcpStream, ToSocketAddrs},
    os::fd::OwnedFd,
    time::Duration,
};

use rustix::net::{Shutdown, shutdown, sockopt};
use ssh2::{ErrorCode, MethodType, Session};

use super::{auth, bastion, config::SshConfig, known_hosts::KnownHosts};
use crate::Error;

/// Cheap ciphers first: the CPU of both ends is the limit on a fast network.
const CIPHERS: &str = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr";
/// libssh2's `LIBSSH2_ERROR_TIMEOUT` and `LIBSSH2_ERROR_SOCKET_TIMEOUT`.
const TIMED_OUT: [i32; 2] = [-9, -30];
/// A peer that confirms nothing for so long is gone.
const PEER_SILENT: Duration = Duration::from_secs(30);

/// An authenticated session and its socket (for polling).
pub(super) struct Dialled {
    pub(super) session: Session,
    pub(super) socket: OwnedFd,
}

impl Dialled {
    /// Asks the host for a sign of life; libssh2 does so at most every two seconds.
    pub(super) fn keep_alive(&self) -> Result<(), ssh2::Error> {
        // For this moment only: with keep-alives on, libssh2 gives up any other wait after their interval.
        self.session.set_keepalive(true, 1);
        let sent = self.session.keepalive_send();
        self.session.set_keepalive(false, 0);
        sent.map(drop)
    }
}

impl Drop for Dialled {
    /// With a socket that is shut, libssh2 lets go of a session and its channels at once. With an open one it waits
    /// for the host's farewell, or, when it may not wait, does not free them.
    fn drop(&mut self) {
        // It may be shut already.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
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
        .map_err(|error| unreachable(config, &format!("SSH handshake: {}", words(config, &error))))?;
    let (key, _) = session.host_key().ok_or_else(|| unreachable(config, "the host showed no key"))?;
    known.verify(key)?;
    auth::log_in(&session, &socket, config)?;
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
                reason = no_answer(config);
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

/// What went wrong in the library, in words for a person.
pub(super) fn words(config: &SshConfig, error: &ssh2::Error) -> String {
    if is_one_of(error, &TIMED_OUT) { no_answer(config) } else { error.message().to_owned() }
}

/// Whether an error is one of libssh2's with these numbers.
pub(super) fn is_one_of(error: &ssh2::Error, codes: &[i32]) -> bool {
    matches!(error.code(), ErrorCode::Session(code) if codes.contains(&code))
}

fn no_answer(config: &SshConfig) -> String {
    format!("no answer within {} s", config.timeout.as_secs_f32())
}

/// An error of the way to the host.
pub(super) fn unreachable(config: &SshConfig, reason: &str) -> Error {
    Error::Unreachable { address: config.place(), reason: reason.to_owned() }
}
