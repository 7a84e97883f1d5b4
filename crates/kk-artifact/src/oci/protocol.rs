//! [`Client`]: the API of a registry (distribution-spec) and its token service (distribution, "Token Authentication
//! Specification").
//!
//! A registry is not trusted: every answer has a maximum size. A password is sent only to the registry and to a token service in
//! its domain, over TLS unless the registry itself is used over plain HTTP.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use http_auth::parser::ChallengeParser;
use kk_config::Secret;
use reqwest::header::{self, HeaderValue};
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::document::{ACCEPTED, LARGEST};
use super::login;
use crate::Sha256Sum;

/// The maximum size of an answer of a token service, and of the text of an error.
const LARGEST_ANSWER: u64 = 64 << 10;
/// How long a token is valid if its service does not state it, in seconds.
const TOKEN_VALID: u64 = 60;
/// The maximum time for which a token is kept, in seconds.
const TOKEN_KEPT: u64 = 60 * 60;
const CONTENT_DIGEST: &str = "docker-content-digest";
/// Second-level domains of countries, in which each name has its own owner (`example.co.uk`).
const SECOND_LEVEL: [&str; 9] = ["ac", "co", "com", "edu", "gov", "ne", "net", "or", "org"];

/// An image in a registry.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    pub(super) repository: String,
    /// Its tag or its digest.
    pub(super) name: String,
    /// The registry in the name of the image, if the client's registry is a mirror.
    pub(super) namespace: Option<String>,
}

impl Reference {
    /// Another document of the same repository.
    pub(super) fn with_digest(&self, digest: &str) -> Self {
        Self { name: digest.to_owned(), ..self.clone() }
    }
}

/// The access that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Pull,
    Push,
}

/// Why a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no complete answer.
    Request(reqwest::Error),
    /// A file cannot be read, or an answer takes too long.
    Io(io::Error),
    /// The registry returns an unexpected status, with this text.
    Status { code: u16, text: String },
    /// The token service returns an unexpected status.
    Token { code: u16 },
    /// The answer cannot be used.
    Unusable(String),
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        Self::Request(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// How clients of a registry have to identify themselves.
enum Challenge {
    Nothing,
    Basic,
    Bearer { realm: Url, service: Option<String> },
}

/// A token of the registry's token service.
struct Issued {
    authorization: HeaderValue,
    until: Instant,
}

/// The client for one registry.
pub(super) struct Client {
    /// For the registry. It follows redirects; other servers get neither password nor token.
    registry: reqwest::Client,
    /// For the token service. It follows no redirect.
    service: reqwest::Client,
    /// Scheme, name and port.
    base: Url,
    login: Option<(String, Secret)>,
    challenge: OnceCell<Challenge>,
    issued: Mutex<BTreeMap<(String, Operation), Issued>>,
}

impl Client {
    pub(super) fn new(
        base: Url,
        login: Option<(String, Secret)>,
        registry: reqwest::Client,
        service: reqwest::Client,
    ) -> Self {
        Self { registry, service, base, login, challenge: OnceCell::new(), issued: Mutex::default() }
    }

    pub(super) fn has_login(&self) -> bool {
        self.login.is_some()
    }

    /// Forgets the tokens for a repository, which the registry has refused. Returns whether the next request gets a new one.
    pub(super) fn forget(&self, repository: &str) -> bool {
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        issued.retain(|(known, _), _| known != repository);
        matches!(self.challenge.get(), Some(Challenge::Bearer { .. }))
    }

    /// The index or the manifest of an image.
    pub(super) async fn manifest(&self, image: &Reference) -> Result<Vec<u8>, Failure> {
        let response = self.ask_for_manifest(Method::GET, image).await?;
        read(expect(response, StatusCode::OK).await?, LARGEST).await
    }

    /// The digest of that document.
    pub(super) async fn digest(&self, image: &Reference) -> Result<String, Failure> {
        let response = self.ask_for_manifest(Method::HEAD, image).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Err(Failure::Status { code: 404, text: String::new() });
        }
        let digest = response.headers().get(CONTENT_DIGEST).and_then(|digest| digest.to_str().ok());
        match digest {
            Some(digest) if response.status() == StatusCode::OK => Ok(digest.to_owned()),
            // The text of an error, or a registry that does not return the digest.
            _ => Ok(format!("sha256:{}", Sha256Sum::of_bytes(&self.manifest(image).await?))),
        }
    }

    async fn ask_for_manifest(&self, method: Method, image: &Reference) -> Result<Response, Failure> {
        let url = self.url(image, "manifests", &image.name);
        let request = self.registry.request(method, url).header(header::ACCEPT, ACCEPTED.join(", "));
        self.send(image, Operation::Pull, request).await
    }

    /// The tags of a repository.
    pub(super) async fn tags(&self, image: &Reference) -> Result<Vec<String>, Failure> {
        #[derive(Deserialize)]
        struct Tags {
            tags: Option<Vec<String>>,
        }
        let request = self.registry.get(self.url(image, "tags", "list"));
        let response = self.send(image, Operation::Pull, request).await?;
        let text = read(expect(response, StatusCode::OK).await?, LARGEST).await?;
        let tags: Tags = serde_json::from_slice(&text)
            .map_err(|_| Failure::Unusable("its list of tags cannot be read".to_owned()))?;
        Ok(tags.tags.unwrap_or_default())
    }

    /// The content of a blob from this byte on, with status 206, or the whole blob, with status 200.
    pub(super) async fn blob(&self, image: &Reference, digest: &str, from: u64) -> Result<Response, Failure> {
        let mut request = self.registry.get(self.url(image, "blobs", digest));
        if from > 0 {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        let response = self.send(image, Operation::Pull, request).await?;
        if response.status() == StatusCode::PARTIAL_CONTENT {
            return Ok(response);
        }
        expect(response, StatusCode::OK).await
    }

    pub(super) async fn has_blob(&self, image: &Reference, digest: &str) -> Result<bool, Failure> {
        let request = self.registry.head(self.url(image, "blobs", digest));
        let response = self.send(image, Operation::Pull, request).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(false);
        }
        expect(response, StatusCode::OK).await.map(|_| true)
    }

    /// Copies a blob from another repository of the registry.
    pub(super) async fn mount(&self, image: &Reference, from: &str, digest: &str) -> Result<(), Failure> {
        let mut url = self.url(image, "blobs", "uploads/");
        url.query_pairs_mut().append_pair("mount", digest).append_pair("from", from);
        let request = self.registry.post(url).header(header::CONTENT_LENGTH, 0);
        let response = self.send(image, Operation::Push, request).await?;
        expect(response, StatusCode::CREATED).await.map(drop)
    }

    /// Sends a blob of this size. The registry verifies the digest.
    pub(super) async fn upload(
        &self,
        image: &Reference,
        digest: &str,
        size: u64,
        body: Body,
    ) -> Result<(), Failure> {
        let request =
            self.registry.post(self.url(image, "blobs", "uploads/")).header(header::CONTENT_LENGTH, 0);
        let response = self.send(image, Operation::Push, request).await?;
        let response = expect(response, StatusCode::ACCEPTED).await?;
        let location = response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
        let mut url = location
            .and_then(|location| response.url().join(location).ok())
            .ok_or_else(|| Failure::Unusable("it does not return where to send content".to_owned()))?;
        if self.base.scheme() == "https" && url.scheme() != "https" {
            return Err(Failure::Unusable("it requests content without TLS".to_owned()));
        }
        url.query_pairs_mut().append_pair("digest", digest);
        let request = self
            .registry
            .put(url.clone())
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .header(header::CONTENT_LENGTH, size)
            .body(body);
        let response = if url.origin() == self.base.origin() {
            self.send(image, Operation::Push, request).await?
        } else {
            request.send().await?
        };
        expect(response, StatusCode::CREATED).await.map(drop)
    }

    /// Stores a document under a name.
    pub(super) async fn put_manifest(
        &self,
        image: &Reference,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<(), Failure> {
        let url = self.url(image, "manifests", &image.name);
        let request = self.registry.put(url).header(header::CONTENT_TYPE, media_type).body(bytes);
        let response = self.send(image, Operation::Push, request).await?;
        expect(response, StatusCode::CREATED).await.map(drop)
    }

    fn url(&self, image: &Reference, kind: &str, name: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("/v2/{}/{kind}/{name}", image.repository));
        if let Some(namespace) = &image.namespace {
            url.query_pairs_mut().append_pair("ns", namespace);
        }
        url
    }

    async fn send(
        &self,
        image: &Reference,
        operation: Operation,
        request: RequestBuilder,
    ) -> Result<Response, Failure> {
        let request = match self.authorization(&image.repository, operation).await? {
            Some(authorization) => request.header(header::AUTHORIZATION, authorization),
            None => request,
        };
        Ok(request.send().await?)
    }

    async fn authorization(
        &self,
        repository: &str,
        operation: Operation,
    ) -> Result<Option<HeaderValue>, Failure> {
        let key = (repository.to_owned(), operation);
        let known = {
            let issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
            issued.get(&key).filter(|token| token.until > Instant::now()).map(|it| it.authorization.clone())
        };
        if known.is_some() {
            return Ok(known);
        }
        match self.challenge.get_or_try_init(|| self.ask_for_challenge()).await? {
            Challenge::Nothing => Ok(None),
            Challenge::Basic => {
                let login = self.login.as_ref();
                login
                    .map(|(user, password)| sensitive("Basic", login::basic(user, password).expose()))
                    .transpose()
            }
            Challenge::Bearer { realm, service } => {
                let token = self.token(realm, service.as_deref(), repository, operation).await?;
                let authorization = token.authorization.clone();
                self.issued.lock().unwrap_or_else(PoisonError::into_inner).insert(key, token);
                Ok(Some(authorization))
            }
        }
    }

    async fn ask_for_challenge(&self) -> Result<Challenge, Failure> {
        let mut url = self.base.clone();
        url.set_path("/v2/");
        let response = self.registry.get(url).send().await?;
        let status = response.status();
        if status.is_server_error()
            || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status)
        {
            return Err(Failure::Status { code: status.as_u16(), text: String::new() });
        }
        let mut challenge = Challenge::Nothing;
        for value in response.headers().get_all(header::WWW_AUTHENTICATE) {
            // A part that cannot be parsed is ignored, as in browsers.
            for part in ChallengeParser::new(value.to_str().unwrap_or_default()).flatten() {
                let parameter = |name: &str| {
                    let known = part.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                    known.map(|(_, value)| value.to_unescaped())
                };
                if part.scheme.eq_ignore_ascii_case("Basic") {
                    challenge = Challenge::Basic;
                } else if part.scheme.eq_ignore_ascii_case("Bearer")
                    && let Some(realm) = parameter("realm")
                {
                    let realm =
                        realm_of(&realm, &self.base, self.login.is_some()).map_err(Failure::Unusable)?;
                    return Ok(Challenge::Bearer { realm, service: parameter("service") });
                }
            }
        }
        Ok(challenge)
    }

    async fn token(
        &self,
        realm: &Url,
        service: Option<&str>,
        repository: &str,
        operation: Operation,
    ) -> Result<Issued, Failure> {
        #[derive(Deserialize)]
        struct Answer {
            token: Option<String>,
            access_token: Option<String>,
            #[serde(default)]
            expires_in: serde_json::Value,
        }
        let actions = match operation {
            Operation::Pull => "pull",
            Operation::Push => "pull,push",
        };
        let mut url = realm.clone();
        url.query_pairs_mut().append_pair("scope", &format!("repository:{repository}:{actions}"));
        if let Some(service) = service {
            url.query_pairs_mut().append_pair("service", service);
        }
        let request = self.service.get(url);
        let request = match &self.login {
            Some((user, password)) => request.basic_auth(user, Some(password.expose())),
            None => request,
        };
        let asked = Instant::now();
        let response = request.send().await?;
        if response.status() != StatusCode::OK {
            return Err(Failure::Token { code: response.status().as_u16() });
        }
        let unusable = || Failure::Unusable("its token service returns no token".to_owned());
        let answer = read(response, LARGEST_ANSWER).await?;
        let answer: Answer = serde_json::from_slice(&answer).map_err(|_| unusable())?;
        let text = answer.token.or(answer.access_token).ok_or_else(unusable)?;
        let seconds = answer.expires_in.as_u64().unwrap_or(TOKEN_VALID).min(TOKEN_KEPT);
        // A request takes time, too.
        let until = asked + Duration::from_secs(seconds * 9 / 10);
        Ok(Issued { authorization: sensitive("Bearer", &text)?, until })
    }
}

fn sensitive(scheme: &str, text: &str) -> Result<HeaderValue, Failure> {
    let value = HeaderValue::from_str(&format!("{scheme} {text}"));
    let mut value = value.map_err(|_| {
        Failure::Unusable("its token service returns a token with control characters".to_owned())
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The address of a registry's token service. The registry specifies it, so it is refused if a password or a request could get to
/// a server that has nothing to do with the registry.
fn realm_of(text: &str, registry: &Url, has_login: bool) -> Result<Url, String> {
    let realm = Url::parse(text).map_err(|_| "the address of its token service cannot be used".to_owned())?;
    let (own, theirs) = (registry.host_str().unwrap_or_default(), realm.host_str().unwrap_or_default());
    let refuse = |why: &str| Err(format!("its token service {theirs} {why}"));
    if !realm.username().is_empty() || realm.password().is_some() {
        return refuse("has a user name in its address");
    }
    let is_related = own == theirs || domain(own).is_some_and(|own| domain(theirs) == Some(own));
    match realm.scheme() {
        "https" => {}
        "http" if registry.scheme() == "http" && is_related => {}
        _ => return refuse("does not use TLS"),
    }
    if own == theirs {
        return Ok(realm);
    }
    let is_local = theirs == "localhost" || theirs.ends_with(".localhost");
    if is_local || realm.domain().is_none() {
        return refuse("is an address, but not the registry's");
    }
    if has_login && !is_related {
        return refuse("is in another domain, and kk does not send the password there");
    }
    Ok(realm)
}

/// The part of a name that its owner has registered: `example.com` in `registry.example.com`. Approximate, because that depends on
/// rules of each country. `None` for an address and for a name without a dot.
fn domain(name: &str) -> Option<&str> {
    if name.starts_with('[') || name.parse::<std::net::IpAddr>().is_ok() {
        return None;
    }
    let name = name.trim_end_matches('.');
    let mut starts = name.rmatch_indices('.').map(|(dot, _)| dot + 1);
    let top = starts.next()?;
    let second = starts.next().unwrap_or(0);
    let is_shared = name.len() - top == 2 && SECOND_LEVEL.contains(&&name[second..top - 1]);
    if !is_shared {
        return Some(&name[second..]);
    }
    // A name such as `co.uk` has no owner.
    (second > 0).then(|| &name[starts.next().unwrap_or(0)..])
}

/// The response, if it has this status.
async fn expect(response: Response, wanted: StatusCode) -> Result<Response, Failure> {
    if response.status() == wanted {
        return Ok(response);
    }
    let code = response.status().as_u16();
    // Without its text an error still has its status.
    let text = read(response, LARGEST_ANSWER).await.unwrap_or_default();
    Err(Failure::Status { code, text: String::from_utf8_lossy(&text).into_owned() })
}

/// The body of an answer.
async fn read(response: Response, largest: u64) -> Result<Vec<u8>, Failure> {
    let (mut bytes, mut body) = (Vec::new(), response.bytes_stream());
    while let Some(more) = body.next().await {
        bytes.extend(more?);
        if bytes.len() as u64 > largest {
            return Err(Failure::Unusable(format!("its answer is larger than {} KiB", largest >> 10)));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_goes_only_to_the_registry_and_to_its_domain() {
        const TLS: &str = "does not use TLS";
        const ADDRESS: &str = "is an address";
        const DOMAIN: &str = "is in another domain";
        for (registry, realm, anonymous, with_login) in [
            ("https://index.docker.io", "https://auth.docker.io/token", "", ""),
            ("https://ghcr.io", "https://ghcr.io/token", "", ""),
            ("https://quay.io", "https://quay.io/v2/auth", "", ""),
            ("https://registry.gitlab.com", "https://gitlab.com/jwt/auth", "", ""),
            ("https://hub.example.com:5000", "https://hub.example.com:5001/auth", "", ""),
            ("https://hub.example.co.uk", "https://auth.example.co.uk/", "", ""),
            ("https://hub.co.uk", "https://evil.co.uk/", "", DOMAIN),
            ("https://co.uk", "https://evil.co.uk/", "", DOMAIN),
            ("https://hub.example.com", "https://ghcr.io/token", "", DOMAIN),
            ("https://hub.example.com", "https://example.com.evil.org/", "", DOMAIN),
            ("https://hub.example.com", "https://notexample.com/", "", DOMAIN),
            ("https://hub", "https://auth/", "", DOMAIN),
            ("https://hub.example.com", "http://hub.example.com/token", TLS, TLS),
            ("https://hub.example.com", "http://169.254.169.254/latest", TLS, TLS),
            ("https://hub.example.com", "https://169.254.169.254/latest", ADDRESS, ADDRESS),
            ("https://hub.example.com", "https://[fe80::1]/", ADDRESS, ADDRESS),
            ("https://hub.example.com", "https://localhost/", ADDRESS, ADDRESS),
            ("https://hub.example.com", "file:///etc/passwd", TLS, TLS),
            ("https://hub.example.com", "https://a:b@hub.example.com/", "has a user name", "has a user name"),
            ("https://hub.example.com", "token", "cannot be used", "cannot be used"),
            ("https://192.0.2.1", "https://192.0.2.1:5001/", "", ""),
            ("https://192.0.2.1", "https://192.0.2.2/", ADDRESS, ADDRESS),
            ("http://192.0.2.1:5000", "http://192.0.2.1:5001/", "", ""),
            ("http://hub.example.com", "http://auth.example.com/", "", ""),
            ("http://hub.example.com", "http://evil.org/", TLS, TLS),
        ] {
            for (has_login, expected) in [(false, anonymous), (true, with_login)] {
                let result = realm_of(realm, &Url::parse(registry).unwrap(), has_login);
                let said = result.map_or_else(|reason| reason, |_| String::new());
                assert!(
                    said.contains(expected) && said.is_empty() == expected.is_empty(),
                    "{registry} {realm}: {said}"
                );
            }
        }
    }
}
