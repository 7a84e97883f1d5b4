//! HTTPS servers whose certificates may change while they run.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use futures::StreamExt as _;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

/// How often certificate files are checked.
const LOOK: Duration = Duration::from_secs(10);
/// Time for the answers to requests that are open when the server ends.
const GRACE: Duration = Duration::from_secs(5);

/// Time for the head of a request, and for the next one on the same connection.
const HEAD: Duration = Duration::from_secs(10);
/// Time for the body of a request.
const BODY: Duration = Duration::from_secs(30);

const KIB: usize = 1 << 10;

/// Certificate files of a server.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate chain.
    pub certificate: PathBuf,
    /// Key.
    pub key: PathBuf,
    /// Certificate authorities that clients must be signed by; none means that clients need no certificate.
    pub client_ca: Vec<PathBuf>,
}

impl TlsFiles {
    /// All files in order, to see whether one has changed.
    fn contents(&self) -> Vec<Vec<u8>> {
        let files = [&self.certificate, &self.key].into_iter().chain(&self.client_ca);
        files.map(|path| std::fs::read(path).unwrap_or_default()).collect()
    }

    fn load(&self) -> Result<Arc<ServerConfig>, String> {
        let bad = |path: &PathBuf, why: &dyn std::fmt::Display| {
            let hint = "hint: it must be PEM; --webhook-self-signed makes certificates without your doing";
            format!("cannot use {}: {why}\n{hint}", path.display())
        };
        let read = |path: &PathBuf| -> Result<Vec<CertificateDer<'static>>, String> {
            let found = CertificateDer::pem_file_iter(path).map_err(|error| bad(path, &error))?;
            found.collect::<Result<_, _>>().map_err(|error| bad(path, &error))
        };
        let chain = read(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| bad(&self.key, &error))?;
        // Not the default of the process: a certificate that does not fit its key must be refused.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?;
        let builder = if self.client_ca.is_empty() {
            builder.with_no_client_auth()
        } else {
            let mut roots = RootCertStore::empty();
            for path in &self.client_ca {
                for certificate in read(path)? {
                    roots.add(certificate).map_err(|error| bad(path, &error))?;
                }
            }
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| error.to_string())?)
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| bad(&self.certificate, &error))?;
        Ok(Arc::new(config))
    }
}

/// The limits of concurrent requests.
#[derive(Debug)]
pub struct Limits {
    requests: Semaphore,
    largest: usize,
    /// KiB of all bodies.
    space: Semaphore,
}

impl Limits {
    /// Limits for requests at the same time: their number, `largest` bytes for each body and `together` bytes in total.
    pub fn new(requests: usize, largest: usize, together: usize) -> Arc<Self> {
        let space = Semaphore::new(together.div_ceil(KIB));
        Arc::new(Self { requests: Semaphore::new(requests), largest, space })
    }

    /// Reads a body into memory, and reserves the memory until the permit is dropped. Only bytes that have arrived count: a client
    /// that declares a size and sends nothing takes no memory from others.
    async fn read(&self, body: Body) -> Result<(Vec<u8>, SemaphorePermit<'_>), Refusal> {
        const TOO_MUCH: Refusal =
            (StatusCode::TOO_MANY_REQUESTS, "too many large requests at the same time\n");
        const TOO_LARGE: Refusal = (StatusCode::PAYLOAD_TOO_LARGE, "the request is too large or broken\n");
        let mut permit = self.space.try_acquire_many(0).map_err(|_| TOO_MUCH)?;
        let (mut bytes, mut parts) = (Vec::new(), body.into_data_stream());
        while let Some(part) = parts.next().await {
            let part = part.map_err(|_| TOO_LARGE)?;
            let size = bytes.len() + part.len();
            if size > self.largest {
                return Err(TOO_LARGE);
            }
            let more = size.div_ceil(KIB) - permit.num_permits();
            let more = u32::try_from(more).map_err(|_| TOO_LARGE)?;
            permit.merge(self.space.try_acquire_many(more).map_err(|_| TOO_MUCH)?);
            bytes.extend_from_slice(&part);
        }
        Ok((bytes, permit))
    }
}

/// The answer to a request that is refused.
type Refusal = (StatusCode, &'static str);

/// Refuses requests that are too many, too large or too slow before anything else is done about them.
pub async fn limit(State(limits): State<Arc<Limits>>, request: Request, next: Next) -> Response {
    let Ok(_turn) = limits.requests.try_acquire() else {
        return (StatusCode::TOO_MANY_REQUESTS, "too many requests at the same time\n").into_response();
    };
    let (head, body) = request.into_parts();
    match tokio::time::timeout(BODY, limits.read(body)).await {
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the request came too slowly\n").into_response(),
        Ok(Err(refusal)) => refusal.into_response(),
        Ok(Ok((bytes, _permit))) => next.run(Request::from_parts(head, Body::from(bytes))).await,
    }
}

/// Serves `router` until `stop` is cancelled. Idle connections are closed, and connections that are open when the server ends do
/// not hold it up for long.
pub async fn serve_plain(listener: TcpListener, router: Router, stop: &CancellationToken) -> io::Result<()> {
    let (mut server, handle) = (axum_server::from_tcp(listener)?, Handle::new());
    close_idle(server.http_builder());
    until_stopped(server.handle(handle.clone()).serve(router.into_make_service()), &handle, stop).await
}

fn close_idle(builder: &mut Builder<TokioExecutor>) {
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
}

async fn until_stopped(
    serves: impl Future<Output = io::Result<()>>,
    handle: &Handle<SocketAddr>,
    stop: &CancellationToken,
) -> io::Result<()> {
    let mut serves = pin!(serves);
    tokio::select! {
        ended = &mut serves => return ended,
        () = stop.cancelled() => handle.graceful_shutdown(Some(GRACE)),
    }
    serves.await
}

/// Serves `router` on `address` until `stop` is cancelled, and logs when it begins to. Changed certificates are taken over;
/// unusable ones are reported and the old ones stay.
pub async fn serve(
    router: Router,
    address: SocketAddr,
    files: TlsFiles,
    stop: CancellationToken,
    begun: impl FnOnce(),
) -> Result<(), String> {
    let mut known = files.contents();
    let tls = RustlsConfig::from_config(files.load()?);
    let failed = |error: io::Error| format!("cannot serve on {address}: {error}");
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let handle = Handle::new();
    let mut server = axum_server::from_tcp_rustls(listener, tls.clone()).map_err(failed)?;
    close_idle(server.http_builder());
    let server = server.handle(handle.clone()).serve(router.into_make_service());
    begun();
    let watch = async {
        loop {
            tokio::time::sleep(LOOK).await;
            let now = files.contents();
            if now != known {
                known = now;
                match files.load() {
                    Ok(config) => {
                        tls.reload_from_config(config);
                        tracing::info!("the certificates of the webhook server on {address} were reloaded");
                    }
                    Err(error) => tracing::error!(error, "new certificates are not used"),
                }
            }
        }
    };
    tokio::select! {
        () = watch => Ok(()),
        ended = until_stopped(server, &handle, &stop) => ended.map_err(failed),
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::post;
    use futures::stream;
    use tower::ServiceExt;

    use super::*;

    /// Takes one request at a time, with ten bytes.
    fn router() -> Router {
        let limits = axum::middleware::from_fn_with_state(Limits::new(1, 10, KIB), limit);
        Router::new().route("/", post(async |body: String| body)).layer(limits)
    }

    async fn status(router: &Router, body: Body) -> StatusCode {
        router.clone().oneshot(Request::post("/").body(body).unwrap()).await.unwrap().status()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_too_large_too_slow_or_too_much_is_refused() {
        let router = router();
        assert_eq!(status(&router, "0123456789".into()).await, StatusCode::OK);
        assert_eq!(status(&router, "01234567890".into()).await, StatusCode::PAYLOAD_TOO_LARGE);
        let never = Body::from_stream(stream::pending::<io::Result<&str>>());
        let (slow, second) = tokio::join!(status(&router, never), async {
            tokio::task::yield_now().await;
            status(&router, "0".into()).await
        });
        assert_eq!((slow, second), (StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS));
        assert_eq!(status(&router, "0".into()).await, StatusCode::OK, "the turn is free again");
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_have_a_limit_in_total() {
        let limits = axum::middleware::from_fn_with_state(Limits::new(9, 4 * KIB, 6 * KIB), limit);
        let router = Router::new().route("/", post(async |_: String| ())).layer(limits);
        let body = |size| Body::from("0".repeat(size));
        for (sent, others) in
            [(4 * KIB, [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS]), (0, [StatusCode::OK; 2])]
        {
            let first = stream::iter([io::Result::Ok("0".repeat(sent))]);
            let slow = Body::from_stream(first.chain(stream::pending()));
            let (slow, answers) = tokio::join!(status(&router, slow), async {
                tokio::task::yield_now().await;
                [status(&router, body(2 * KIB)).await, status(&router, body(2 * KIB + 1)).await]
            });
            assert_eq!((slow, answers), (StatusCode::REQUEST_TIMEOUT, others), "{sent} bytes were sent");
        }
        assert_eq!(status(&router, body(4 * KIB)).await, StatusCode::OK, "the memory is free again");
        assert_eq!(status(&router, body(4 * KIB + 1)).await, StatusCode::PAYLOAD_TOO_LARGE);
    }
}
