//! Errors between the control machine and a host.

use std::time::Duration;

/// An error of the connection, as opposed to an error of the script that ran.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host could not be reached: name look-up failed, connection refused, no route, or no answer in time.
    #[error("cannot reach {address}: {reason}")]
    Unreachable {
        /// `name:port` as dialled.
        address: String,
        /// The system's message.
        reason: String,
    },
    /// The host's key differs from the key that is known for this address.
    #[error("the host key of {address} has changed: known {known}, offered {offered}")]
    HostKeyChanged {
        /// `name:port` as dialled.
        address: String,
        /// Fingerprint in `known_hosts`, `SHA256:…`.
        known: String,
        /// Fingerprint that the host showed.
        offered: String,
        /// File and line of the known key.
        place: String,
    },
    /// The host is unknown and host keys are checked strictly.
    #[error("the host key of {address} is not known: {offered}")]
    HostKeyUnknown {
        /// `name:port` as dialled.
        address: String,
        /// Fingerprint that the host showed.
        offered: String,
    },
    /// The host is known only through a certificate authority, and certificates of hosts cannot be verified.
    #[error(
        "cannot verify {address}: {place} trusts it by a certificate authority, and kk cannot verify host certificates"
    )]
    HostKeyAuthority {
        /// `name:port` as dialled.
        address: String,
        /// File and line of the `@cert-authority`.
        place: String,
    },
    /// No login method was accepted.
    #[error("{user} cannot log in to {address}: {reason}")]
    Login {
        /// `name:port` as dialled.
        address: String,
        /// The user name tried.
        user: String,
        /// The methods that were tried, and the host's answers.
        reason: String,
        /// The host hung up because too many keys were offered (sshd's `MaxAuthTries`).
        too_many_tries: bool,
    },
    /// A key file on the control machine is unreadable or not a key.
    #[error("cannot use the private key {path}: {reason}")]
    Key {
        /// The file, or `inline`.
        path: String,
        /// Why it cannot be used.
        reason: String,
        /// It is encrypted, and there is no passphrase for it.
        encrypted: bool,
    },
    /// The user may not become root.
    #[error("{user} has no root rights on {host}: {reason}")]
    Sudo {
        /// Host name.
        host: String,
        /// The user who logged in.
        user: String,
        /// sudo's message.
        reason: String,
    },
    /// A binary that every script needs is not installed.
    #[error("{program} is not installed on {host}")]
    MissingProgram {
        /// Host name.
        host: String,
        /// Name of the binary.
        program: String,
    },
    /// The connection broke in the middle.
    #[error("the connection to {host} was lost: {reason}")]
    Lost {
        /// Host name.
        host: String,
        /// The library's message.
        reason: String,
    },
    /// The attempt exceeded its time limit; the remote process was ended.
    #[error("no end after {} on {host}", humantime(.after))]
    Timeout {
        /// Host name.
        host: String,
        /// The time limit.
        after: Duration,
    },
    /// The script printed more than its caller accepts.
    #[error("the output of {host} exceeds {most} bytes")]
    TooLong {
        /// Host name.
        host: String,
        /// The limit in bytes.
        most: u64,
    },
    /// The run was cancelled.
    #[error("cancelled on {host}")]
    Cancelled {
        /// Host name.
        host: String,
    },
    /// A file on a host, or on the control machine, cannot be read.
    #[error("cannot read {path} on {host}: {reason}")]
    Read {
        /// Host name, or `this machine`.
        host: String,
        /// The path there.
        path: String,
        /// Why it cannot be read.
        reason: String,
    },
    /// The list of known host keys cannot be used.
    #[error("cannot use the known host keys in {path}: {reason}")]
    KnownHosts {
        /// The file, with the line if the error concerns one.
        path: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// A file did not arrive, or could not be stored at its path.
    #[error("cannot write {path} on {host}: {reason}")]
    Transfer {
        /// Host name.
        host: String,
        /// The path on the host.
        path: String,
        /// Why it cannot be written.
        reason: String,
    },
}

/// The kinds of [`Error`]. Callers map them to remedies: a caller knows its own flags and files, this crate does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// [`Error::Unreachable`].
    Unreachable,
    /// [`Error::HostKeyChanged`].
    HostKeyChanged,
    /// [`Error::HostKeyUnknown`].
    HostKeyUnknown,
    /// [`Error::HostKeyAuthority`].
    HostKeyAuthority,
    /// [`Error::KnownHosts`].
    KnownHosts,
    /// [`Error::Login`].
    Login,
    /// [`Error::Login`] after too many keys.
    TooManyKeys,
    /// [`Error::Key`].
    Key,
    /// [`Error::Key`] that is encrypted and has no passphrase.
    EncryptedKey,
    /// [`Error::Sudo`].
    Sudo,
    /// [`Error::MissingProgram`].
    MissingProgram,
    /// [`Error::Lost`].
    Lost,
    /// [`Error::Timeout`].
    Timeout,
    /// [`Error::TooLong`].
    TooLong,
    /// [`Error::Cancelled`].
    Cancelled,
    /// [`Error::Read`].
    Read,
    /// [`Error::Transfer`].
    Transfer,
}

impl Error {
    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreachable { .. } => ErrorKind::Unreachable,
            Self::HostKeyChanged { .. } => ErrorKind::HostKeyChanged,
            Self::HostKeyUnknown { .. } => ErrorKind::HostKeyUnknown,
            Self::HostKeyAuthority { .. } => ErrorKind::HostKeyAuthority,
            Self::KnownHosts { .. } => ErrorKind::KnownHosts,
            Self::Login { too_many_tries: false, .. } => ErrorKind::Login,
            Self::Login { too_many_tries: true, .. } => ErrorKind::TooManyKeys,
            Self::Key { encrypted: false, .. } => ErrorKind::Key,
            Self::Key { encrypted: true, .. } => ErrorKind::EncryptedKey,
            Self::Sudo { .. } => ErrorKind::Sudo,
            Self::MissingProgram { .. } => ErrorKind::MissingProgram,
            Self::Lost { .. } => ErrorKind::Lost,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::TooLong { .. } => ErrorKind::TooLong,
            Self::Cancelled { .. } => ErrorKind::Cancelled,
            Self::Read { .. } => ErrorKind::Read,
            Self::Transfer { .. } => ErrorKind::Transfer,
        }
    }

    /// Whether the network or the host's sshd is to blame. The same call may be repeated: the connection first ends any process
    /// that the lost call left running on the host.
    pub fn is_connection(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Lost { .. })
    }

    /// Whether another attempt can help: broken and slow connections, never wrong input.
    pub fn is_transient(&self) -> bool {
        self.is_connection() || matches!(self, Self::Timeout { .. })
    }

    /// The operator's remedy, if one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::HostKeyChanged { place, .. } => Some(format!(
                "if the host was reinstalled, remove its line at {place} and run again; if not, the connection may be intercepted"
            )),
            Self::HostKeyUnknown { .. } => Some(
                "add the key to known_hosts, or allow new ones with --host-key-checking accept-new".into(),
            ),
            Self::HostKeyAuthority { .. } => Some(
                "add the host's own key to known_hosts (ssh-keyscan), or set it as hostKey in the \
                 file".into(),
            ),
            Self::MissingProgram { program, .. } => Some(format!("install {program} on the host")),
            Self::Login { too_many_tries: true, .. } => {
                Some("set privateKeyPath of this host in the file to a key that the host accepts".into())
            }
            Self::Login { .. } => {
                Some("check user, password and privateKeyPath of this host in the file".into())
            }
            Self::Key { encrypted: true, .. } => {
                Some("add the key to an agent (ssh-add), and remove privateKeyPath from the file".into())
            }
            Self::KnownHosts { .. } => Some(
                "allow this user to read and write the file; --host-key-checking off does not need it, but \
                 gives no protection"
                    .into(),
            ),
            Self::Unreachable { .. } => Some(
                "check that the host is up, that address and port in the file are right, and that no firewall is in \
                 between"
                    .into(),
            ),
            Self::Lost { .. } => Some(
                "check the network to the host, and whether it is up; then run again: completed work is \
                 kept".into(),
            ),
            Self::Timeout { .. } => {
                Some("check the load of the host; then run again: completed work is kept".into())
            }
            Self::TooLong { .. } => {
                Some("check the host: a defective or compromised host prints more than kk asks for".into())
            }
            Self::Sudo { .. } => Some(
                "log in as root, or allow the user to run everything with sudo (its password is in the file)"
                    .into(),
            ),
            _ => None,
        }
    }
}

/// Seconds with one decimal: precise enough for a person.
fn humantime(d: &Duration) -> String {
    format!("{:.1} s", d.as_secs_f64())
}
