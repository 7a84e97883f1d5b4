//! Logs in with a key, a password, keyboard-interactive, the agent or a default key, in this order.

use std::{
    os::fd::OwnedFd,
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use kk_config::{PrivateKey, Secret};
use rustix::event::{PollFd, PollFlags};
use ssh2::{KeyboardInteractivePrompt, Prompt, Session};

use super::{
    config::{SshConfig, home},
    errors::{is_one_of, unreachable, words},
    key,
    session::SshSession,
};
use crate::{Error, poll::poll_all};

/// libssh2's `LIBSSH2_ERROR_AUTHENTICATION_FAILED` and `LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED`: the host refused.
const REFUSED: [i32; 2] = [-18, -19];
/// libssh2's errors of the socket: `SOCKET_SEND`, `TIMEOUT`, `SOCKET_DISCONNECT`, `SOCKET_TIMEOUT`, `SOCKET_RECV`.
const BROKEN: [i32; 5] = [-7, -9, -13, -30, -43];

/// The code among [`BROKEN`] by which libssh2 reports that the host ended the connection.
const DISCONNECTED: [i32; 1] = [-13];
/// The code among [`REFUSED`] by which libssh2 also reports that the host ended the connection.
const UNVERIFIED: [i32; 1] = [-19];
/// The method with which servers ask for a password by a prompt of their own.
const KEYBOARD: &str = "keyboard-interactive";
/// How much of a host's list of methods is shown, in characters.
const METHODS: usize = 200;
/// How long a host takes to close the connection after it announced this.
const HANGING_UP: Duration = Duration::from_secs(1);
/// How long the agent may take: it may ask its owner for consent.
const AGENT: Duration = Duration::from_mins(1);

/// OpenSSH's default keys, in its order without the rare ones.
const DEFAULT_KEYS: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];

/// Tries the configured credentials until the host accepts one of them.
pub(super) fn log_in(session: &SshSession, config: &SshConfig) -> Result<(), Error> {
    let (session, socket) = (&session.session, session.socket());
    let offered = match session.auth_methods(&config.user) {
        Ok(offered) => offered.chars().take(METHODS).collect::<String>(),
        // The host asks for nothing.
        Err(_) if session.authenticated() => return Ok(()),
        Err(error) => return Err(unreachable(config, &words(config, &error))),
    };
    let mut attempt =
        Attempt { session, socket, config, offered: &offered, tried: Vec::new(), hung_up: false };
    let given = config.private_key.is_some() || config.password.is_some();
    let done = match &config.private_key {
        Some(private) => attempt.key(private)?,
        None => false,
    } || match &config.password {
        Some(password) => attempt.password(password)?,
        None => false,
    } || ((config.agent || !given) && attempt.agent()?)
        || (!given && attempt.default_keys()?);
    if done { Ok(()) } else { Err(attempt.failed()) }
}

struct Attempt<'a> {
    session: &'a Session,
    socket: Arc<OwnedFd>,
    config: &'a SshConfig,
    /// The methods that the host accepts, separated by commas.
    offered: &'a str,
    /// The attempts and their results.
    tried: Vec<String>,
    /// The host ended the connection after an attempt.
    hung_up: bool,
}

impl Attempt<'_> {
    fn offers(&self, method: &str) -> bool {
        self.offered.split(',').any(|offered| offered == method)
    }

    fn not_allowed(&mut self, what: &str) -> bool {
        self.tried.push(format!("{what}: the host does not allow it, only {}", self.offered));
        false
    }

    fn key(&mut self, private: &PrivateKey) -> Result<bool, Error> {
        let key = key::load(private, self.config.passphrase.as_ref())?;
        let what = format!("key {}", key.name);
        if !self.offers("publickey") {
            return Ok(self.not_allowed(&what));
        }
        let passphrase = self.config.passphrase.as_ref().map(Secret::expose);
        let result =
            self.session.userauth_pubkey_memory(&self.config.user, None, key.text.expose(), passphrase);
        match result {
            Err(error) if !expected(&error) => Err(key.unusable(error.message())),
            result => self.judge(&what, result),
        }
    }

    /// Tries the password by the method `password`, and as an answer to the questions of `keyboard-interactive`.
    fn password(&mut self, password: &Secret) -> Result<bool, Error> {
        let (plain, keyboard) = (self.offers("password"), self.offers(KEYBOARD));
        if !plain && !keyboard {
            return Ok(self.not_allowed("password"));
        }
        if plain {
            let result = self.session.userauth_password(&self.config.user, password.expose());
            if self.judge("password", result)? {
                return Ok(true);
            }
        }
        if !keyboard {
            return Ok(false);
        }
        let mut typist = Typist(password);
        let result = self.session.userauth_keyboard_interactive(&self.config.user, &mut typist);
        self.judge(KEYBOARD, result)
    }

    fn agent(&mut self) -> Result<bool, Error> {
        let Some(path) = self.config.agent_socket.clone() else {
            self.tried.push("agent: SSH_AUTH_SOCK is not set".into());
            return Ok(false);
        };
        if !self.offers("publickey") {
            return Ok(self.not_allowed("agent"));
        }
        // On a separate thread, because the library waits for an agent without a limit.
        let (session, user) = (self.session.clone(), self.config.user.clone());
        let (sender, answer) = mpsc::channel();
        let socket = Arc::clone(&self.socket);
        let asked = thread::Builder::new().name("agent".into()).spawn(move || {
            // The receiver is gone if the agent took too long.
            drop(sender.send(ask_agent(&session, &socket, &user, &path)));
        });
        if let Err(error) = asked {
            self.tried.push(format!("agent: {error}"));
            return Ok(false);
        }
        let Ok(answer) = answer.recv_timeout(AGENT) else {
            self.tried.push(format!("agent: no answer within {} s", AGENT.as_secs()));
            // The thread holds the session, so no other method can be tried.
            return Err(self.failed());
        };
        match answer {
            Err(error) => self.tried.push(format!("agent: {}", error.message())),
            Ok(mut keys) => match keys.pop() {
                None => self.tried.push("agent: it has no keys".into()),
                Some((name, last)) => {
                    self.tried.extend(keys.iter().map(|(name, _)| format!("agent key {name}: refused")));
                    return self.judge(&format!("agent key {name}"), last);
                }
            },
        }
        Ok(false)
    }

    /// A default key that cannot be used is skipped: the user did not ask for it.
    fn default_keys(&mut self) -> Result<bool, Error> {
        for name in DEFAULT_KEYS {
            let path = home().join(".ssh").join(name);
            if !path.exists() {
                continue;
            }
            match self.key(&PrivateKey::Path(path.display().to_string())) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(Error::Key { path, reason, .. }) => self.tried.push(format!("key {path}: {reason}")),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn judge(&mut self, what: &str, result: Result<(), ssh2::Error>) -> Result<bool, Error> {
        let sent_password = ["password", KEYBOARD].contains(&what);
        match result {
            Ok(()) => Ok(self.session.authenticated()),
            Err(error)
                if sent_password && is_one_of(&error, &DISCONNECTED) || hung_up(&error, &self.socket) =>
            {
                self.hung_up = true;
                self.tried.push(format!(
                    "{what}: the host closed the connection, as after too many attempts \
                                         (MaxAuthTries)"
                ));
                Err(self.failed())
            }
            // A password is not tried again on another connection: accounts are locked after a few failed attempts.
            Err(error) if sent_password && is_one_of(&error, &BROKEN) => {
                self.tried.push(format!("{what}: {}", words(self.config, &error)));
                Err(self.failed())
            }
            Err(error) if is_one_of(&error, &BROKEN) => {
                Err(unreachable(self.config, &words(self.config, &error)))
            }
            Err(error) if is_one_of(&error, &REFUSED) => {
                self.tried.push(format!("{what}: refused"));
                Ok(false)
            }
            Err(error) => {
                self.tried.push(format!("{what}: {}", error.message()));
                Ok(false)
            }
        }
    }

    fn failed(&self) -> Error {
        let reason = if self.tried.is_empty() {
            format!("there is no key and no password to try (the host allows {})", self.offered)
        } else {
            self.tried.join("; ")
        };
        let user = self.config.user.clone();
        Error::Login { address: self.config.place(), user, reason, too_many_tries: self.hung_up }
    }
}

/// Whether an error of a log-in with a key is the host's or the network's, as opposed to an error of the key.
fn expected(error: &ssh2::Error) -> bool {
    is_one_of(error, &REFUSED) || is_one_of(error, &BROKEN)
}

/// Offers the agent's keys until the host accepts one or the connection ends. Returns the name of each offered key, with its
/// result.
fn ask_agent(
    session: &Session,
    socket: &OwnedFd,
    user: &str,
    agent_socket: &Path,
) -> Result<Vec<(String, AskedKey)>, ssh2::Error> {
    let mut agent = session.agent()?;
    agent.set_identity_path(agent_socket)?;
    agent.connect()?;
    agent.list_identities()?;
    let mut keys = Vec::new();
    for identity in agent.identities()? {
        let result = agent.userauth(user, &identity);
        let over = match &result {
            Ok(()) => true,
            Err(error) => is_one_of(error, &BROKEN) || hung_up(error, socket),
        };
        keys.push((identity.comment().to_owned(), result));
        if over {
            break;
        }
    }
    Ok(keys)
}

/// Whether an error means that the host ended the connection in the middle of the log-in.
fn hung_up(error: &ssh2::Error, socket: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::RDHUP)];
    is_one_of(error, &UNVERIFIED) && poll_all(&mut fds, HANGING_UP).unwrap_or(false)
}

/// The result of offering a key.
type AskedKey = Result<(), ssh2::Error>;

/// Answers each question whose answer is not echoed with the password.
struct Typist<'a>(&'a Secret);

impl KeyboardInteractivePrompt for Typist<'_> {
    fn prompt(&mut self, _user: &str, _instructions: &str, prompts: &[Prompt<'_>]) -> Vec<String> {
        prompts
            .iter()
            .map(|prompt| if prompt.echo { String::new() } else { self.0.expose().to_owned() })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use ssh2::ErrorCode;

    use super::*;

    /// The error and the recorded attempt for this code of libssh2 after this attempt.
    fn judged(what: &str, code: i32) -> (Error, String) {
        let (near, _far) = UnixStream::pair().unwrap();
        let (session, config) = (Session::new().unwrap(), SshConfig::new("n1", "192.0.2.1", "root"));
        let socket = Arc::new(near.into());
        let mut attempt = Attempt {
            session: &session,
            socket,
            config: &config,
            offered: "password",
            tried: Vec::new(),
            hung_up: false,
        };
        let error = attempt.judge(what, Err(ssh2::Error::from_errno(ErrorCode::Session(code)))).unwrap_err();
        let said = error.to_string();
        (error, said)
    }

    #[test]
    fn a_password_whose_connection_breaks_is_no_sign_of_too_many_tries_and_not_sent_again() {
        for what in ["password", KEYBOARD] {
            for code in BROKEN {
                let (error, said) = judged(what, code);
                let hung_up = code == DISCONNECTED[0];
                assert!(
                    matches!(error, Error::Login { too_many_tries, .. } if too_many_tries == hung_up),
                    "{code} {said}"
                );
                assert_eq!(said.contains("MaxAuthTries"), hung_up, "{code} {said}");
            }
        }
        // A key may be offered on another connection.
        assert!(!matches!(judged("key id_rsa", BROKEN[1]).0, Error::Login { .. }));
    }
}
