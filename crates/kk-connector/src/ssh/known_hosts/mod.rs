//! Reads, compares and appends keys in OpenSSH's `known_hosts` (format: sshd(8)).

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::config::{HostKeyPolicy, SshConfig};
use crate::Error;
use crate::learnt::LearntKey;

#[cfg(test)]
mod tests;

/// Key types in OpenSSH's order of preference, with the signature algorithms for each.
const ALGORITHMS: [(&str, &str); 5] = [
    ("ssh-ed25519", "ssh-ed25519"),
    ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256"),
    ("ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384"),
    ("ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521"),
    ("ssh-rsa", "rsa-sha2-512,rsa-sha2-256"),
];

/// How long another process may keep the file locked.
const LOCKED: Duration = Duration::from_secs(10);

/// The known keys of one host.
pub(super) struct KnownHosts<'a> {
    config: &'a SshConfig,
    keys: Vec<KnownKey>,
    /// Keys of the same host on port 22: like OpenSSH, kk trusts such a key on any port.
    on_default_port: Vec<KnownKey>,
}

/// A key of the host.
#[derive(Debug, PartialEq, Eq)]
struct KnownKey {
    /// Line in the file, from 1; 0 for a key from the configuration.
    line: usize,
    trust: Trust,
    blob: Vec<u8>,
}

/// The marker of a line for its key (sshd(8): markers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// The host's key.
    Host,
    /// The key signs certificates of hosts. libssh2 cannot verify these.
    Authority,
    /// The key must never be accepted.
    Revoked,
}

impl<'a> KnownHosts<'a> {
    /// Reads the host's keys from the file, or from the configuration.
    pub(super) fn read(config: &'a SshConfig) -> Result<Self, Error> {
        let mut on_default_port = Vec::new();
        let keys = match &config.host_key {
            Some(pinned) => {
                let blob = pinned.split_whitespace().nth(1).and_then(|key| STANDARD.decode(key).ok());
                let blob = blob.ok_or_else(|| {
                    unusable("hostKey", "it is not a public key such as `ssh-ed25519 AAAA…`")
                })?;
                vec![KnownKey { line: 0, trust: Trust::Host, blob }]
            }
            None if config.host_keys == HostKeyPolicy::Off => Vec::new(),
            None => {
                let text = read(&config.known_hosts)?;
                if config.port != DEFAULT_PORT {
                    on_default_port = look_up(&text, &name(&config.address, DEFAULT_PORT));
                }
                look_up(&text, &name(&config.address, config.port))
            }
        };
        Ok(Self { config, keys, on_default_port })
    }

    /// Signature algorithms to request. The types of known keys are first, so that a host with several keys presents a key that
    /// can be compared.
    pub(super) fn algorithms(&self) -> String {
        let keys = if self.keys.is_empty() { &self.on_default_port } else { &self.keys };
        let known =
            |kind: &str| keys.iter().any(|key| key.trust == Trust::Host && key_type(&key.blob) == kind);
        let (first, then): (Vec<_>, Vec<_>) = ALGORITHMS.iter().partition(|(kind, _)| known(kind));
        first.iter().chain(&then).map(|(_, algorithms)| *algorithms).collect::<Vec<_>>().join(",")
    }

    /// Compares the key that the host presented, and stores a new key if the policy allows it.
    pub(super) fn verify(&self, offered: &[u8]) -> Result<(), Error> {
        self.refuse_revoked(&self.on_default_port, offered)?;
        if let Verdict::Known = self.judge(&self.keys, offered)? {
            return Ok(());
        }
        if self.on_default_port.iter().any(|key| key.trust == Trust::Host && key.blob == offered) {
            return Ok(());
        }
        let address = self.config.place();
        match (self.config.host_keys, self.authority()) {
            (HostKeyPolicy::Off, _) => Ok(()),
            (_, Some(place)) => Err(Error::HostKeyAuthority { address, place }),
            (HostKeyPolicy::Strict, None) => {
                Err(Error::HostKeyUnknown { address, offered: fingerprint(offered) })
            }
            (HostKeyPolicy::AcceptNew, None) => self.learn(offered),
        }
    }

    fn refuse_revoked(&self, keys: &[KnownKey], offered: &[u8]) -> Result<(), Error> {
        match keys.iter().find(|key| key.trust == Trust::Revoked && key.blob == offered) {
            None => Ok(()),
            Some(key) => {
                Err(unusable(&self.line(key), "the host shows a key that is marked as revoked there"))
            }
        }
    }

    fn judge(&self, keys: &[KnownKey], offered: &[u8]) -> Result<Verdict, Error> {
        self.refuse_revoked(keys, offered)?;
        let mut valid = keys.iter().filter(|key| key.trust == Trust::Host);
        if valid.clone().any(|key| key.blob == offered) {
            return Ok(Verdict::Known);
        }
        // A known key of the offered type is the most helpful one to show.
        let same = valid.clone().find(|key| key_type(&key.blob) == key_type(offered));
        let Some(key) = same.or_else(|| valid.next()) else { return Ok(Verdict::New) };
        Err(Error::HostKeyChanged {
            address: self.config.place(),
            known: fingerprint(&key.blob),
            offered: fingerprint(offered),
            place: self.line(key),
        })
    }

    /// File and line of a trusted certificate authority for the host. If there is one, the host's key must not be learnt on the
    /// first connection.
    fn authority(&self) -> Option<String> {
        let mut keys = self.keys.iter().chain(&self.on_default_port);
        keys.find(|key| key.trust == Trust::Authority).map(|key| self.line(key))
    }

    fn line(&self, key: &KnownKey) -> String {
        match key.line {
            0 => "hostKey in the Cluster file".to_owned(),
            line => format!("{}:{line}", self.config.known_hosts.display()),
        }
    }

    /// Appends the key, under a lock and after reading the file again: many hosts are dialled at once, some perhaps twice.
    fn learn(&self, offered: &[u8]) -> Result<(), Error> {
        let path = &self.config.known_hosts;
        let on_default_port = name(&self.config.address, DEFAULT_PORT);
        let name = name(&self.config.address, self.config.port);
        let failed = |error: io::Error| unusable(&path.display().to_string(), &error.to_string());
        let mut file = open_for_append(path).map_err(failed)?;
        lock(&file).map_err(failed)?;
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut text)).map_err(failed)?;
        let text = String::from_utf8_lossy(&text);
        if let Verdict::Known = self.judge(&look_up(&text, &name), offered)? {
            return Ok(());
        }
        self.refuse_revoked(&look_up(&text, &on_default_port), offered)?;
        let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let line = format!("{newline}{name} {} {}\n", key_type(offered), STANDARD.encode(offered));
        file.write_all(line.as_bytes()).map_err(failed)?;
        self.config.learnt.add(LearntKey {
            host: self.config.name.clone(),
            address: self.config.place(),
            kind: key_type(offered).to_owned(),
            fingerprint: fingerprint(offered),
        });
        Ok(())
    }
}

enum Verdict {
    Known,
    New,
}

fn unusable(path: &str, reason: &str) -> Error {
    Error::KnownHosts { path: path.to_owned(), reason: reason.to_owned() }
}

fn read(path: &Path) -> Result<String, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(unusable(&path.display().to_string(), &error.to_string())),
    }
}

fn open_for_append(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        kk_util::create_private_directory(directory)?;
    }
    kk_util::open_private(path)
}

/// Waits for other processes that append.
fn lock(file: &File) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if began.elapsed() < LOCKED => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another program keeps it locked")),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => return Ok(()),
        }
    }
}

const DEFAULT_PORT: u16 = 22;

/// The name of a host as written in the file: with the port only if it is not 22.
fn name(address: &str, port: u16) -> String {
    let address = address.to_ascii_lowercase();
    if port == DEFAULT_PORT { address } else { format!("[{address}]:{port}") }
}

/// The host's keys. Lines that cannot be parsed are skipped, as in OpenSSH.
fn look_up(text: &str, name: &str) -> Vec<KnownKey> {
    let mut keys = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace().peekable();
        let marker = words.next_if(|word| word.starts_with('@'));
        let (Some(patterns), Some(_), Some(key)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if patterns.starts_with('#') || !names(patterns, name) {
            continue;
        }
        let trust = match marker {
            None => Trust::Host,
            Some("@cert-authority") => Trust::Authority,
            Some("@revoked") => Trust::Revoked,
            // A line with an unknown marker proves nothing.
            Some(_) => continue,
        };
        let Ok(blob) = STANDARD.decode(key) else { continue };
        keys.push(KnownKey { line: index + 1, trust, blob });
    }
    keys
}

/// Whether a line's first field matches the host: `|1|salt|hash`, or patterns. A pattern with `!` that matches excludes the host.
fn names(patterns: &str, name: &str) -> bool {
    if let Some(hashed) = patterns.strip_prefix("|1|") {
        return is_hash_of(hashed, name).unwrap_or(false);
    }
    let mut found = false;
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(not) if fits(not.to_ascii_lowercase().as_bytes(), name.as_bytes()) => return false,
            Some(_) => {}
            None => found |= fits(pattern.to_ascii_lowercase().as_bytes(), name.as_bytes()),
        }
    }
    found
}

/// The hash is HMAC-SHA1 of the name with the salt as its key.
fn is_hash_of(hashed: &str, name: &str) -> Option<bool> {
    let (salt, hash) = hashed.split_once('|')?;
    let mut mac = Hmac::<Sha1>::new_from_slice(&STANDARD.decode(salt).ok()?).ok()?;
    mac.update(name.as_bytes());
    Some(mac.verify_slice(&STANDARD.decode(hash).ok()?).is_ok())
}

/// `*` matches any text and `?` any character. After a mismatch only the last `*` takes more text: if the earlier ones did, too, a
/// pattern with many of them would take exponential time.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // The position after the last `*`, and the end of the text that it matches.
    let mut star = None;
    while read < text.len() {
        match (pattern.get(at), star) {
            (Some(b'*'), _) => {
                at += 1;
                star = Some((at, read));
            }
            (Some(&byte), _) if byte == b'?' || byte == text[read] => {
                at += 1;
                read += 1;
            }
            (_, Some((after, taken))) => {
                at = after;
                read = taken + 1;
                star = Some((after, read));
            }
            (_, None) => return false,
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// The type's name is the first string of a public key (RFC 4253, 6.6). A name that a host made up is `unknown`: it must not become
/// a part of `known_hosts`.
fn key_type(blob: &[u8]) -> &'static str {
    let name = blob
        .split_first_chunk::<4>()
        .and_then(|(length, rest)| rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?));
    let known = ALGORITHMS.iter().find(|(kind, _)| name == Some(kind.as_bytes()));
    known.map_or("unknown", |(kind, _)| kind)
}

/// As OpenSSH prints it.
fn fingerprint(blob: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(blob)))
}
