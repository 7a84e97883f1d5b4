//! [`Registries`]: connects to the registry of an image and classifies its answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use kk_config::{ImageName, Registry, Secret};
use reqwest::Url;
use serde::Deserialize;

use super::login::{self, Logins};
use super::protocol::{Client, Failure, Reference};
use crate::{Error, client};

/// Registries with the settings of a file.
pub(crate) struct Registries {
    settings: Registry,
    logins: &'static Logins,
    read_timeout: Option<Duration>,
    clients: Mutex<BTreeMap<String, Arc<Client>>>,
}

pub(super) const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The host with the content of images whose name begins with `docker.io`.
const DOCKER_HUB: &str = "index.docker.io";
/// The number of characters of a registry's explanation that are shown.
const LONGEST_EXPLANATION: usize = 300;

/// A source from which an image may be fetched.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) client: Arc<Client>,
    pub(super) reference: Reference,
    /// Name and port, for messages.
    pub(super) host: String,
}

/// The client for the web API of a registry's server.
pub(super) struct Web {
    pub(super) client: reqwest::Client,
    /// Scheme, name and port.
    pub(super) base: String,
    pub(super) login: Option<(String, Secret)>,
}

/// The meaning of a failed request.
pub(super) struct Refusal {
    pub(super) reason: String,
    pub(super) kind: RefusalKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalKind {
    /// May pass.
    Transient,
    /// The registry limits requests and asks to wait (429).
    Busy,
    /// The registry does not have the requested content.
    NotFound,
    /// A retry does not help.
    Lasting,
}

impl Registries {
    pub(crate) fn new(settings: Registry) -> Self {
        // The clients for registries use the process-wide TLS provider; kk has only one.
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // An error means that a provider is installed already.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let read_timeout = Some(client::READ_TIMEOUT);
        Self { settings, logins: login::logins(), read_timeout, clients: Mutex::default() }
    }

    /// The same for pushing. The client's limit for answers starts with the request, however long its body takes, so pushes set
    /// their own limits.
    pub(super) fn for_push(settings: Registry) -> Self {
        Self { read_timeout: None, ..Self::new(settings) }
    }

    /// The target of a pushed image.
    pub(super) fn target(&self, image: &ImageName) -> Result<Source, Error> {
        self.source(&image.registry, false, reference(image))
    }

    /// The sources of an image: mirrors in the order of the file, then the registry of its name.
    pub(super) fn sources(&self, image: &ImageName) -> Result<Vec<Source>, Error> {
        let mirrors = self.settings.remote_mirrors.get(&image.registry);
        let mut mirrors = mirrors.map(|mirror| mirror.endpoint.clone()).unwrap_or_default();
        if image.registry == "docker.io" {
            mirrors.extend(self.settings.registry_mirrors.iter().cloned());
        }
        let mut sources = Vec::new();
        for url in mirrors {
            let (scheme, rest) = url.split_once("://").unwrap_or(("https", &url));
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            if !path.is_empty() {
                return Err(Error::Registry {
                    host: host.to_owned(),
                    reason: format!("the mirror {url} has a path, which an export cannot use yet"),
                });
            }
            let reference = Reference { namespace: Some(image.registry.clone()), ..reference(image) };
            sources.push(self.source(host, scheme == "http", reference)?);
        }
        sources.push(self.source(&image.registry, false, reference(image))?);
        Ok(sources)
    }

    /// Whether the file declares its registry to be a Harbor.
    pub(super) fn is_harbor(&self) -> bool {
        self.settings.is_harbor()
    }

    /// The client for the web API of a registry's server. Errors: a certificate that cannot be used.
    pub(super) fn web(&self, host: &str) -> Result<Web, String> {
        let auth = self.settings.auths.get(host).cloned().unwrap_or_default();
        let insecure = auth.plain_http || self.is_insecure(host, &auth);
        let client = client::without_redirects(certificates(&auth)?, insecure);
        let scheme = if auth.plain_http { "http" } else { "https" };
        Ok(Web {
            client: client.map_err(|error| client::reason(&error))?,
            base: format!("{scheme}://{host}"),
            login: self.login(host).map(|(user, password)| (user.to_owned(), password.clone())),
        })
    }

    fn login(&self, host: &str) -> Option<(&str, &Secret)> {
        let known = self.settings.auths.get(host).and_then(kk_config::RegistryAuth::credentials);
        let login = known.map(|pair| (pair.username, pair.password));
        login.or_else(|| self.logins.get(host).map(|(user, password)| (user.as_str(), password)))
    }

    fn is_insecure(&self, host: &str, auth: &kk_config::RegistryAuth) -> bool {
        auth.skip_tls_verify || self.settings.insecure_registries.iter().any(|one| one == host)
    }

    fn source(&self, host: &str, http: bool, reference: Reference) -> Result<Source, Error> {
        Ok(Source { client: self.client(host, http)?, reference, host: host.to_owned() })
    }

    fn client(&self, host: &str, http: bool) -> Result<Arc<Client>, Error> {
        let auth = self.settings.auths.get(host).cloned().unwrap_or_default();
        let http = http || auth.plain_http;
        let key = format!("{http} {host}");
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let refuse = |reason: String| Error::Registry { host: host.to_owned(), reason };
        let certificates = certificates(&auth).map_err(&refuse)?;
        // Without any certificate there is no verifier. Plain HTTP needs none: content is verified by its digest.
        let insecure = self.is_insecure(host, &auth) || http && certificates.is_empty();
        let registry = client::for_registry(certificates.clone(), insecure, self.read_timeout);
        let service = client::without_redirects(certificates, insecure);
        let wrong = |error: reqwest::Error| refuse(client::reason(&error));
        let (registry, service) = (registry.map_err(wrong)?, service.map_err(wrong)?);
        let name = if host == "docker.io" { DOCKER_HUB } else { host };
        let scheme = if http { "http" } else { "https" };
        let base = Url::parse(&format!("{scheme}://{name}")).map_err(|error| refuse(error.to_string()))?;
        let login = self.login(host).map(|(user, password)| (user.to_owned(), password.clone()));
        let client = Arc::new(Client::new(base, login, registry, service));
        clients.insert(key, client.clone());
        Ok(client)
    }
}

/// Checks that a registry, given by its `host[:port]`, answers and accepts the certificate and the login of these settings. It
/// requests the tags of an image that does not exist. Transient errors are retried for half a minute.
///
/// # Errors
/// The check fails.
pub async fn ask_registry(settings: &Registry, host: &str) -> Result<(), Error> {
    let (registry, path, tag) = (host.to_owned(), "kk/verify".to_owned(), Some("none".to_owned()));
    let image = ImageName { registry, path, tag, digest: None };
    let source = Registries::new(settings.clone()).target(&image)?;
    let (mut failed, mut refused) = (0, false);
    loop {
        let Err(failure) = source.client.tags(&source.reference).await else { return Ok(()) };
        let Refusal { reason, kind } = judge(&source, &failure, &mut refused);
        if kind == RefusalKind::NotFound {
            return Ok(());
        }
        failed += 1;
        let Some(time) = wait(kind, failed, FIRST_WAIT) else {
            return Err(Error::Registry { host: host.to_owned(), reason });
        };
        tokio::time::sleep(time).await;
    }
}

fn reference(image: &ImageName) -> Reference {
    let name = image.digest.clone().or_else(|| image.tag.clone()).unwrap_or_default();
    Reference { repository: image.path.clone(), name, namespace: None }
}

/// The certificates that are trusted for a registry: the roots of this machine, and its own CA.
fn certificates(auth: &kk_config::RegistryAuth) -> Result<Vec<reqwest::Certificate>, String> {
    let mut certificates = client::native_roots();
    if let Some(dir) = &auth.certs_path {
        certificates.extend(own_ca(Path::new(dir))?);
    }
    let certificates = certificates.iter().map(|der| reqwest::Certificate::from_der(der));
    certificates.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// Docker's convention for such a directory: `*.crt` is the CA, `*.cert` and `*.key` belong to the client.
fn own_ca(dir: &Path) -> Result<Vec<Vec<u8>>, String> {
    let mut found = Vec::new();
    let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", dir.display());
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("crt") => found.extend(client::pem_certificates(&path)?),
            Some("cert" | "key") => {
                return Err(format!(
                    "{}: client certificates cannot be used by an export yet",
                    path.display()
                ));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Repeats a request until it succeeds or a retry cannot help; `note` receives a message for each wait.
pub(super) async fn retry<T>(
    source: &Source,
    note: &(dyn Fn(String) + Sync),
    request: impl AsyncFn() -> Result<T, Failure>,
) -> Result<T, Refusal> {
    let (mut failed, mut refused) = (0, false);
    loop {
        let refusal = match request().await {
            Ok(answer) => return Ok(answer),
            Err(failure) => judge(source, &failure, &mut refused),
        };
        failed += 1;
        let Some(time) = wait(refusal.kind, failed, FIRST_WAIT) else { return Err(refusal) };
        note(format!("{}; again in {} s", refusal.reason, time.as_secs()));
        tokio::time::sleep(time).await;
    }
}

/// Classifies a failure. A registry that refuses a token gets a new one: `refused` is set, and the next refusal is final.
pub(super) fn judge(source: &Source, failure: &Failure, refused: &mut bool) -> Refusal {
    let login = |code: u16| {
        let what = if source.client.has_login() {
            "refuses the user name or the"
        } else {
            "requires a user name and"
        };
        format!("it {what} password ({code})")
    };
    let (kind, reason) = match failure {
        Failure::Status { code: 401, .. } => {
            let has_tokens = source.client.forget(&source.reference.repository);
            let is_first = !std::mem::replace(refused, true);
            (if has_tokens && is_first { RefusalKind::Transient } else { RefusalKind::Lasting }, login(401))
        }
        Failure::Status { code, text } => of_text(*code, text),
        Failure::Token { code: code @ (401 | 403) } => (RefusalKind::Lasting, login(*code)),
        Failure::Token { code } => {
            let kind = Some(of_status(*code)).filter(|kind| *kind != RefusalKind::NotFound);
            (kind.unwrap_or(RefusalKind::Lasting), format!("its token service answers {code}"))
        }
        Failure::Request(error) => {
            let reason = client::reason(error);
            let lasting = reason.contains("certificate") || error.is_builder() || error.is_redirect();
            (if lasting { RefusalKind::Lasting } else { RefusalKind::Transient }, reason)
        }
        Failure::Io(error) => (RefusalKind::Transient, error.to_string()),
        Failure::Unusable(reason) => (RefusalKind::Lasting, reason.clone()),
    };
    Refusal { reason, kind }
}

fn of_status(code: u16) -> RefusalKind {
    match code {
        429 => RefusalKind::Busy,
        404 => RefusalKind::NotFound,
        408 | 500.. if code != 501 => RefusalKind::Transient,
        _ => RefusalKind::Lasting,
    }
}

/// The registry's reason for its refusal, if its text has the format of the distribution-spec ("Error Codes").
fn of_text(code: u16, text: &str) -> (RefusalKind, String) {
    #[derive(Deserialize)]
    struct Envelope {
        errors: Vec<Reason>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Reason {
        code: String,
        message: String,
    }
    let reasons = serde_json::from_str::<Envelope>(text).map(|told| told.errors).unwrap_or_default();
    let kind = match reasons.first().map(|reason| reason.code.as_str()) {
        _ if code >= 500 => of_status(code),
        Some("MANIFEST_UNKNOWN" | "NAME_UNKNOWN" | "NOT_FOUND" | "BLOB_UNKNOWN") => RefusalKind::NotFound,
        Some("TOOMANYREQUESTS") => RefusalKind::Busy,
        _ => of_status(code),
    };
    let words: Vec<_> =
        reasons.into_iter().map(|reason| reason.message).filter(|it| !it.is_empty()).collect();
    let words = words.join("; ").replace(char::is_control, "?");
    let words: String = words.chars().take(LONGEST_EXPLANATION).collect();
    let separator = if words.is_empty() { "" } else { ": " };
    (kind, format!("it answers {code}{separator}{words}"))
}

/// The wait before the next attempt, or `None` after the last: transient errors are retried for half a minute, a registry that
/// limits requests for some minutes.
pub(super) fn wait(kind: RefusalKind, failed: u32, first: Duration) -> Option<Duration> {
    let (tries, longest) = match kind {
        RefusalKind::Transient => (5, 15),
        RefusalKind::Busy => (12, 60),
        RefusalKind::NotFound | RefusalKind::Lasting => return None,
    };
    let wait = first * 2_u32.saturating_pow(failed - 1);
    (failed < tries).then(|| wait.min(first * longest))
}
