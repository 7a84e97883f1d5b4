//! Credentials that `docker login` has stored on this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kk_config::Secret;
use serde::Deserialize;

use crate::address;

/// User name and password by host.
pub(super) type Logins = BTreeMap<String, (String, Secret)>;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    /// `user:password` in Base64. Empty if a credential helper stores it.
    #[serde(default)]
    auth: String,
}

/// Passwords that `docker login` has stored on this machine, and the credentials with these passwords in Base64. No message may
/// show them.
pub fn stored_logins() -> Vec<Secret> {
    let logins = logins().values();
    logins.flat_map(|(user, password)| [basic(user, password), password.clone()]).collect()
}

/// User name and password in the form of HTTP's Basic authentication.
pub(super) fn basic(user: &str, password: &Secret) -> Secret {
    Secret::new(STANDARD.encode(format!("{user}:{}", password.expose())))
}

/// The credentials in `$DOCKER_CONFIG/config.json`, or in `~/.docker/config.json` if the variable is not set. A missing or
/// unreadable file counts as empty: most registries need no credentials, and the others report that they do. The file is read
/// once: kk masks exactly the credentials that it uses.
pub(super) fn logins() -> &'static Logins {
    static LOGINS: OnceLock<Logins> = OnceLock::new();
    LOGINS.get_or_init(|| {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let dir = set("DOCKER_CONFIG").or_else(|| Some(set("HOME")?.join(".docker")));
        dir.map(|dir| read(&dir.join("config.json"))).unwrap_or_default()
    })
}

fn read(path: &Path) -> Logins {
    let file = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<File>(&bytes).ok());
    let entries = file.map(|file| file.auths).unwrap_or_default().into_iter();
    entries.filter_map(|(host, entry)| Some((host_of(&host), pair(&entry.auth)?))).collect()
}

/// Keys are hosts, or URLs with a path (`https://index.docker.io/v1/`).
fn host_of(key: &str) -> String {
    let host = match reqwest::Url::parse(key) {
        Ok(url) if url.has_host() => address::host(&url),
        _ => key.split('/').next().unwrap_or_default().to_owned(),
    };
    if host == "index.docker.io" { "docker.io".to_owned() } else { host }
}

fn pair(auth: &str) -> Option<(String, Secret)> {
    let text = String::from_utf8(STANDARD.decode(auth.trim()).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), Secret::new(password.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_docker_login_has_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        assert!(read(&path).is_empty());
        std::fs::write(
            &path,
            r#"{"auths": {"https://index.docker.io/v1/": {"auth": "dTpwOnc="}, "hub.local:5000": {"auth": "YTpi"},
                "helper.local": {}, "broken.local": {"auth": "%"}}, "credsStore": "x"}"#,
        )
        .unwrap();
        let logins = read(&path);
        let shown =
            |host: &str| logins.get(host).map(|(user, word)| (user.as_str(), word.expose().to_owned()));
        assert_eq!(shown("docker.io"), Some(("u", "p:w".to_owned())));
        assert_eq!(shown("hub.local:5000"), Some(("a", "b".to_owned())));
        assert_eq!(logins.len(), 2);
    }
}
