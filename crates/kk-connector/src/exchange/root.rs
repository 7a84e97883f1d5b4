//! Finds out once per host how the login user becomes root.

use kk_config::Secret;

use super::{Failure, Peer, last_lines};
use crate::{Error, nonce};

/// How a host's user becomes root.
#[derive(Clone, Debug)]
pub(crate) enum Root {
    /// The user is root.
    Already,
    /// By sudo; without a password if none is set.
    Sudo {
        password: Option<Secret>,
        /// sudo is set to `requiretty`.
        pty: bool,
    },
}

/// Output of a command that was run without the bootstrap.
pub(crate) struct Plain {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Runs a command line with the given standard input.
type Exec<'a> = dyn FnMut(&str, &[u8]) -> Result<Plain, Failure> + 'a;

/// Probes the host.
pub(crate) fn find_root(
    exec: &mut Exec<'_>,
    peer: &Peer,
    password: Option<&Secret>,
) -> Result<Root, Failure> {
    let mark = format!("kk-{}", nonce());
    let asked = exec(
        &format!("exec sh -c 'echo {mark}; id -u; LC_ALL=C sudo -k -n sh -c : 2>&1; echo {mark} $?'"),
        b"",
    )?;
    let text = String::from_utf8_lossy(&asked.stdout).into_owned();
    let mut parts = text.split(mark.as_str()).skip(1);
    let (Some(answer), Some(status)) = (parts.next(), parts.next()) else {
        let words = last_lines(&[asked.stdout, asked.stderr].concat());
        return Err(refused(peer, format!("the login shell runs no commands: {words}")));
    };
    let (uid, complaint) = answer.trim().split_once('\n').unwrap_or((answer.trim(), ""));
    let complaint = last_lines(complaint.as_bytes());
    let pty = complaint.contains("must have a tty");
    match (uid.trim(), status.trim(), password) {
        ("0", _, _) => Ok(Root::Already),
        (_, "0", _) => Ok(Root::Sudo { password: None, pty: false }),
        (_, "127", _) => Err(refused(peer, "sudo is not installed".into())),
        // A wrong password shows only at the first call: sudo then asks a second time on the terminal.
        (_, _, password) if pty => Ok(Root::Sudo { password: password.cloned(), pty }),
        (_, _, None) => Err(refused(peer, format!("{complaint}; no password is given"))),
        (_, _, Some(password)) => try_password(exec, peer, password),
    }
}

/// Tries the password on its own, so that a wrong password costs one attempt and sudo cannot read other input as a second one.
fn try_password(exec: &mut Exec<'_>, peer: &Peer, password: &Secret) -> Result<Root, Failure> {
    let mark = format!("kk-{}", nonce());
    let line = format!("{}\n", password.expose());
    let tried =
        exec(&format!("exec env LC_ALL=C sudo -k -S -p \"\" sh -c \"echo {mark}\""), line.as_bytes())?;
    if String::from_utf8_lossy(&tried.stdout).contains(&mark) {
        return Ok(Root::Sudo { password: Some(password.clone()), pty: false });
    }
    Err(refused(peer, last_lines(&tried.stderr)))
}

fn refused(peer: &Peer, reason: String) -> Failure {
    Failure::Final(Error::Sudo { host: peer.host.clone(), user: peer.user.clone(), reason })
}
