//! [`Registries`]: connects to the registry of an image and classifies its answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use kk_config::{ImageName, Registry, Secret};
use oci_client::client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciEnvelope, OciErrorCode};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference, RegistryOperation};

use super::login::{self, Logins};
use crate::{Error, client};

/// Registries with the settings of a file.
pub(crate) struct Registries {
    settings: Registry,
    logins: Logins,
    read_timeout: Option<Duration>,
    clients: Mutex<BTreeMap<String, Client>>,
}

pub(super) const FIRST_WAIT: Duration = Duration::from_secs(1);

/// A source from which an image may be fetched.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) client: Client,
    pub(super) auth: RegistryAuth,
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
        // The registry client uses the process-wide TLS provider; kk has only one.
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
            let mut reference = reference(image);
            reference.set_mirror_registry(host.to_owned());
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
        let certificates = certificates(&auth)?;
        let certificates = certificates.iter().map(|der| reqwest::Certificate::from_der(der));
        let certificates = certificates.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let client =
            client::without_redirects(certificates, auth.plain_http || self.is_insecure(host, &auth));
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
        let auth = match self.login(host) {
            Some((user, password)) => RegistryAuth::Basic(user.to_owned(), password.expose().to_owned()),
            None => RegistryAuth::Anonymous,
        };
        Ok(Source { client: self.client(host, http)?, auth, reference, host: host.to_owned() })
    }

    fn client(&self, host: &str, http: bool) -> Result<Client, Error> {
        let auth = self.settings.auths.get(host).cloned().unwrap_or_default();
        let http = http || auth.plain_http;
        let key = format!("{http} {host}");
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let refuse = |reason: String| Error::Registry { host: host.to_owned(), reason };
        let certificates = certificates(&auth).map_err(&refuse)?;
        let insecure = self.is_insecure(host, &auth);
        let config = ClientConfig {
            protocol: if http { ClientProtocol::Http } else { ClientProtocol::Https },
            // Without any certificate there is no verifier. Plain HTTP needs none: content is verified by its digest.
            accept_invalid_certificates: insecure || http && certificates.is_empty(),
            tls_certs_only: certificates
                .into_iter()
                .map(|data| Certificate { encoding: CertificateEncoding::Der, data })
                .collect(),
            connect_timeout: Some(client::CONNECT_TIMEOUT),
            read_timeout: self.read_timeout,
            // One request per blob instead of one per piece of it.
            use_monolithic_push: true,
            user_agent: client::USER_AGENT,
            ..ClientConfig::default()
        };
        let client = Client::try_from(config).map_err(|error| refuse(judge(&error).reason))?;
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
    let access = Access::pull(&source);
    let mut failed = 0;
    loop {
        let tags = source.client.list_tags(&source.reference, &source.auth, None, None).await;
        let Err(error) = tags else { return Ok(()) };
        let Refusal { reason, kind } = access.judge(&error, failed == 0).await;
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
    let (registry, path) = (image.registry.clone(), image.path.clone());
    match (&image.digest, &image.tag) {
        (Some(digest), _) => Reference::with_digest(registry, path, digest.clone()),
        (None, tag) => Reference::with_tag(registry, path, tag.clone().unwrap_or_default()),
    }
}

/// The certificates that are trusted for a registry: the roots of this machine, and its own CA.
fn certificates(auth: &kk_config::RegistryAuth) -> Result<Vec<Vec<u8>>, String> {
    let mut certificates = client::native_roots();
    if let Some(dir) = &auth.certs_path {
        certificates.extend(own_ca(Path::new(dir))?);
    }
    Ok(certificates)
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

/// The source of a request, and the operation for which access is needed.
pub(super) struct Access<'a> {
    pub(super) source: &'a Source,
    pub(super) operation: RegistryOperation,
}

/// Repeats a request until it succeeds or a retry cannot help; `note` receives a message for each wait.
pub(super) async fn retry<T>(
    access: &Access<'_>,
    note: &(dyn Fn(String) + Sync),
    request: impl AsyncFn() -> Result<T, OciDistributionError>,
) -> Result<T, Refusal> {
    let mut failed = 0;
    loop {
        let refusal = match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) => access.judge(&error, failed == 0).await,
        };
        failed += 1;
        let Some(time) = wait(refusal.kind, failed, FIRST_WAIT) else { return Err(refusal) };
        note(format!("{}; again in {} s", refusal.reason, time.as_secs()));
        tokio::time::sleep(time).await;
    }
}

impl<'a> Access<'a> {
    pub(super) fn pull(source: &'a Source) -> Self {
        Self { source, operation: RegistryOperation::Pull }
    }

    /// Classifies an error of the client. The client also reports 401 if the token service failed. So the token service is asked,
    /// and a 401 is final only if the registry refuses a token that was just issued.
    pub(super) async fn judge(&self, error: &OciDistributionError, first: bool) -> Refusal {
        let refusal = judge(error);
        if status(error) != Some(401) {
            return refusal;
        }
        let Source { client, reference, auth, .. } = self.source;
        match client.auth(reference, auth, self.operation).await {
            Ok(_) if first => Refusal { kind: RefusalKind::Transient, ..refusal },
            Ok(_) if matches!(auth, RegistryAuth::Anonymous) => refusal,
            Ok(_) => {
                Refusal { reason: "it refuses the user name or the password (401)".to_owned(), ..refusal }
            }
            Err(error) => judge(&error),
        }
    }
}

/// The status of an error response.
fn status(error: &OciDistributionError) -> Option<u16> {
    use OciDistributionError as E;
    match error {
        E::UnauthorizedError { .. } => Some(401),
        E::ServerError { code, .. } => Some(*code),
        E::RequestError(error) => error.status().map(|status| status.as_u16()),
        _ => None,
    }
}

fn judge(error: &OciDistributionError) -> Refusal {
    use OciDistributionError as E;
    let of_status = |code: u16| match code {
        429 => RefusalKind::Busy,
        404 => RefusalKind::NotFound,
        408 | 500.. if code != 501 => RefusalKind::Transient,
        _ => RefusalKind::Lasting,
    };
    let (kind, reason) = match error {
        _ if status(error) == Some(401) => {
            (RefusalKind::Lasting, "it requires a user name and password (401)".to_owned())
        }
        E::RequestError(error) if let Some(status) = error.status() => {
            (of_status(status.as_u16()), format!("it answers {}", status.as_u16()))
        }
        E::RequestError(error) => {
            let reason = client::reason(error);
            let lasting = reason.contains("certificate") || error.is_builder();
            (if lasting { RefusalKind::Lasting } else { RefusalKind::Transient }, reason)
        }
        E::IoError(error) => (RefusalKind::Transient, error.to_string()),
        E::DigestError(error) => (RefusalKind::Transient, error.to_string()),
        E::ServerError { code, message, .. } => {
            (of_status(*code), format!("it answers {code}{}", said(message)))
        }
        // The client provides no status: a wrong password cannot be distinguished from a failed service.
        E::AuthenticationFailure(_) => (
            RefusalKind::Transient,
            "it gives no token: the user name or the password is wrong, or its service has failed".to_owned(),
        ),
        E::ImageManifestNotFoundError(_) => (RefusalKind::NotFound, "it does not have it".to_owned()),
        E::RegistryError { envelope, .. } => {
            let kind = envelope.errors.first().map_or(RefusalKind::Lasting, |error| match error.code {
                OciErrorCode::ManifestUnknown
                | OciErrorCode::NameUnknown
                | OciErrorCode::NotFound
                | OciErrorCode::BlobUnknown => RefusalKind::NotFound,
                OciErrorCode::Toomanyrequests => RefusalKind::Busy,
                _ => RefusalKind::Lasting,
            });
            (kind, format!("it says: {}", words(envelope)))
        }
        other => (RefusalKind::Lasting, other.to_string()),
    };
    Refusal { reason, kind }
}

/// The registry's reason for its refusal, if it has the format of the distribution-spec.
fn said(message: &str) -> String {
    let envelope = serde_json::from_str::<OciEnvelope>(message);
    envelope.map_or_else(|_| String::new(), |envelope| format!(": {}", words(&envelope)))
}

fn words(envelope: &OciEnvelope) -> String {
    let words: Vec<_> = envelope.errors.iter().map(|error| error.message.as_str()).collect();
    words.join("; ").replace(char::is_control, "?")
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
