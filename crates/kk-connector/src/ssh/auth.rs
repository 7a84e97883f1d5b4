//! Logging in: key, password, keyboard-interactive, agent, default keys, in this order.

use kk_config::{PrivateKey, Secret};
use ssh2::{ErrorCode, KeyboardInteractivePrompt, Prompt, Session};

use super::{
    config::{SshConfig, home},
    dial::unreachable,
    key,
};
use crate::Error;

/// libssh2's `LIBSSH2_ERROR_AUTHENTICATION_FAILED` and `LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED`: the host said no.
const REFUSED: [i32; 2] = [-18, -19];
/// libssh2's errors of the socket: `SOCKET_SEND`, `TIMEOUT`, `SOCKET_DISCONNECT`, `SOCKET_TIMEOUT`, `SOCKET_RECV`.
const BROKEN: [i32; 5] = [-7, -9, -13, -30, -43];

/// OpenSSH's default keys, in its order without the rare ones.
const DEFAULT_KEYS: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];

/// Tries what the configuration has until the host is content.
pub(super) fn log_in(session: &Session, config: &SshConfig) -> Result<(), Error> {
    let offered = match session.auth_methods(&config.user) {
        Ok(offered) => offered.to_owned(),
        // The host asks for nothing.
        Err(_) if session.authenticated() => return Ok(()),
        Err(error) => return Err(unreachable(config, error.message())),
    };
    let mut attempt = Attempt { session, config, offered: &offered, tried: Vec::new() };
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
    config: &'a SshConfig,
    /// The methods that the host takes, separated by commas.
    offered: &'a str,
    /// What was tried and what became of it.
    tried: Vec<String>,
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

    /// As `password`, and as an answer to the questions of `keyboard-interactive`.
    fn password(&mut self, password: &Secret) -> Result<bool, Error> {
        let (plain, keyboard) = (self.offers("password"), self.offers("keyboard-interactive"));
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
        self.judge("keyboard-interactive", result)
    }

    fn agent(&mut self) -> Result<bool, Error> {
        let Some(socket) = &self.config.agent_socket else {
            self.tried.push("agent: SSH_AUTH_SOCK is not set".into());
            return Ok(false);
        };
        if !self.offers("publickey") {
            return Ok(self.not_allowed("agent"));
        }
        let identities = self.session.agent().and_then(|mut agent| {
            agent.set_identity_path(socket)?;
            agent.connect()?;
            agent.list_identities()?;
            let identities = agent.identities()?;
            Ok((agent, identities))
        });
        let (agent, identities) = match identities {
            Ok(found) => found,
            Err(error) => {
                self.tried.push(format!("agent: {}", error.message()));
                return Ok(false);
            }
        };
        if identities.is_empty() {
            self.tried.push("agent: it has no keys".into());
        }
        for identity in identities {
            let result = agent.userauth(&self.config.user, &identity);
            if self.judge(&format!("agent key {}", identity.comment()), result)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A default key that cannot be used is passed over: nobody asked for it.
    fn default_keys(&mut self) -> Result<bool, Error> {
        for name in DEFAULT_KEYS {
            let path = home().join(".ssh").join(name);
            if !path.exists() {
                continue;
            }
            match self.key(&PrivateKey::Path(path.display().to_string())) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(Error::Key { path, reason }) => self.tried.push(format!("key {path}: {reason}")),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn judge(&mut self, what: &str, result: Result<(), ssh2::Error>) -> Result<bool, Error> {
        match result {
            Ok(()) => Ok(self.session.authenticated()),
            Err(error) if is_one_of(&error, &BROKEN) => Err(unreachable(self.config, error.message())),
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

    fn failed(self) -> Error {
        let reason = if self.tried.is_empty() {
            format!("there is no key and no password to try (the host allows {})", self.offered)
        } else {
            self.tried.join("; ")
        };
        Error::Login { address: self.config.place(), user: self.config.user.clone(), reason }
    }
}

/// Whether an error of a key log-in is the host's or the network's, as opposed to one of the key.
fn expected(error: &ssh2::Error) -> bool {
    is_one_of(error, &REFUSED) || is_one_of(error, &BROKEN)
}

fn is_one_of(error: &ssh2::Error, codes: &[i32]) -> bool {
    matches!(error.code(), ErrorCode::Session(code) if codes.contains(&code))
}

/// Types the password at every question whose answer is not shown.
struct Typist<'a>(&'a Secret);

impl KeyboardInteractivePrompt for Typist<'_> {
    fn prompt(&mut self, _user: &str, _instructions: &str, prompts: &[Prompt<'_>]) -> Vec<String> {
        prompts
            .iter()
            .map(|prompt| if prompt.echo { String::new() } else { self.0.expose().to_owned() })
            .collect()
    }
}
