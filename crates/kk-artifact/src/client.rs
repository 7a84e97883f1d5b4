//! The HTTP client: TLS, time limits, and the classification of failed requests.

use std::cell::RefCell;
use std::error::Error as _;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, StatusCode, redirect};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::{Address, Error, address};

pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest pause in the middle of a body.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const USER_AGENT: &str = concat!("kk/", env!("CARGO_PKG_VERSION"));

tokio::task_local! {
    /// The server that the running request was redirected to, because the client's errors do not name it. A firewall that permits
    /// github.com may block the server to which github.com redirects.
    static REDIRECTED_TO: RefCell<Option<String>>;
}

/// Why a request or a body failed, and whether a retry can help.
pub(crate) enum Failure {
    /// May pass: no connection, an incomplete body, a busy or broken server. `connecting` is set if no server answered.
    Transient { reason: String, connecting: bool },
    /// The server is not the expected one, or its CA is not trusted here.
    Certificate(String),
    /// A retry does not help.
    Permanent(Error),
}

impl Failure {
    /// Whether every other file of the server will fail in the same way.
    pub(crate) fn is_of_the_host(&self) -> bool {
        matches!(self, Self::Transient { connecting: true, .. } | Self::Certificate(_))
    }

    /// Adds the server that the request was redirected to.
    fn redirected_to(mut self, host: &str) -> Self {
        match &mut self {
            Self::Transient { reason: text, .. }
            | Self::Certificate(text)
            | Self::Permanent(Error::Status { status: text, .. }) => {
                *text = format!("{text}, after a redirect to {host}");
            }
            Self::Permanent(_) => {}
        }
        self
    }
}

/// A client that trusts the root certificates of this machine and those in `ca_file`.
///
/// The TLS configuration is created here and not by reqwest. reqwest's own fails on a machine without any root certificate, even
/// if only plain HTTP or the CA file is used. `*_PROXY` is respected.
pub(crate) fn build(ca_file: Option<&Path>) -> Result<Client, Error> {
    let mut roots = RootCertStore::empty();
    // A root certificate that cannot be parsed is not trusted; the handshake then reports this.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        add_ca_file(&mut roots, path).map_err(|reason| Error::CaFile { path: path.to_owned(), reason })?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // No ALPN, so HTTP/1.1: a separate connection per file is faster than files that share one HTTP/2 window.
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .redirect(never_to_plain_http())
        .build()
        .expect("nothing that can fail is configured");
    Ok(client)
}

fn add_ca_file(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    for certificate in pem_certificates(path)? {
        roots.add(certificate.into()).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// The certificates of a PEM file in DER form; at least one.
pub(crate) fn pem_certificates(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let pem = std::fs::read(path).map_err(|e| e.to_string())?;
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    if certificates.is_empty() {
        return Err("it holds no certificate in PEM form".into());
    }
    Ok(certificates.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// The root certificates of this machine in DER form. A certificate that cannot be used is not trusted.
pub(crate) fn native_roots() -> Vec<Vec<u8>> {
    let usable = |certificate: &CertificateDer<'_>| RootCertStore::empty().add(certificate.clone()).is_ok();
    let found = rustls_native_certs::load_native_certs().certs;
    found.iter().filter(|one| usable(one)).map(|one| one.to_vec()).collect()
}

/// A client for requests with a password, which a redirect must not send to another server.
pub(crate) fn without_redirects(
    certificates: Vec<reqwest::Certificate>,
    insecure: bool,
) -> reqwest::Result<Client> {
    Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(READ_TIMEOUT)
        .redirect(redirect::Policy::none())
        .tls_certs_only(certificates)
        .tls_danger_accept_invalid_certs(insecure)
        .build()
}

/// A client for a registry, whose content may be on another server. reqwest sends passwords and tokens only to the server of the
/// request. `read_timeout` is the longest pause in the middle of an answer.
pub(crate) fn for_registry(
    certificates: Vec<reqwest::Certificate>,
    insecure: bool,
    read_timeout: Option<Duration>,
) -> reqwest::Result<Client> {
    let builder = Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(never_to_plain_http())
        .tls_certs_only(certificates)
        .tls_danger_accept_invalid_certs(insecure);
    match read_timeout {
        Some(time) => builder.read_timeout(time).build(),
        None => builder.build(),
    }
}

/// Follows redirects as browsers do, but not from TLS to plain HTTP: a published checksum would lose its value.
fn never_to_plain_http() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let was_tls = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
        if was_tls && attempt.url().scheme() != "https" {
            attempt.error("it redirects from https to http")
        } else if attempt.previous().len() > 10 {
            attempt.error("it redirects more than 10 times")
        } else {
            // Requests to registries do not use it.
            let _ = REDIRECTED_TO.try_with(|host| host.replace(Some(address::host(attempt.url()))));
            attempt.follow()
        }
    })
}

/// Sends a request, and turns every unsuccessful answer into a [`Failure`], except 416, which the caller handles.
pub(crate) async fn send(request: RequestBuilder, address: &Address) -> Result<Response, Failure> {
    let sent = async {
        let response = request.send().await.map_err(|e| failure(&e, address));
        let answer = response.and_then(|response| accept(response, address));
        answer.map_err(|failure| match REDIRECTED_TO.with(RefCell::take) {
            Some(host) => failure.redirected_to(&host),
            None => failure,
        })
    };
    REDIRECTED_TO.scope(RefCell::default(), sent).await
}

fn accept(response: Response, address: &Address) -> Result<Response, Failure> {
    let status = response.status();
    match status {
        _ if status.is_success() || status == StatusCode::RANGE_NOT_SATISFIABLE => Ok(response),
        StatusCode::NOT_FOUND => Err(Failure::Permanent(Error::NotFound { address: address.clone() })),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Err(busy(status)),
        // 501 means that the server will never support this.
        _ if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => Err(busy(status)),
        _ => Err(Failure::Permanent(Error::Status { address: address.clone(), status: status.to_string() })),
    }
}

fn busy(status: StatusCode) -> Failure {
    Failure::Transient { reason: format!("the server answers {status}"), connecting: false }
}

/// Classifies an error of the client.
pub(crate) fn failure(error: &reqwest::Error, address: &Address) -> Failure {
    let reason = reason(error);
    if bad_certificate(error) {
        Failure::Certificate(reason)
    } else if error.is_redirect() {
        Failure::Permanent(Error::Transfer { address: address.clone(), reason })
    } else {
        Failure::Transient { reason, connecting: error.is_connect() }
    }
}

/// The reason of a failed request, as text.
pub(crate) fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let cause = root_cause(error);
    // rustls reports it in its own terms, with an address of its manual.
    if cause.contains("close_notify") { "the connection ended early".to_owned() } else { cause }
}

/// The innermost cause, which is the informative one.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn bad_certificate(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return matches!(error, rustls::Error::InvalidCertificate(_));
        }
        // An I/O error returns the source of its wrapped error as its own, so the wrapped error would be skipped.
        cause = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}
