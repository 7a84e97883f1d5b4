//! An HTTP server with faults, running in the test process.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use axum::serve::Listener;
use futures::{StreamExt as _, stream};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The fault of one `GET`; afterwards the server behaves correctly.
#[derive(Clone)]
pub(crate) enum Fault {
    Status(StatusCode),
    /// This many bytes, then the connection ends.
    CutAfter(usize),
    /// This many bytes, then the connection stays open without further bytes.
    StopAfter(usize),
    /// `Range` is not understood.
    NoRanges,
    /// `206` with these bytes, regardless of the request.
    Range(std::ops::Range<usize>),
    Redirect(String),
    /// `401`, with this challenge.
    Challenge(String),
}

#[derive(Default)]
struct Served {
    files: HashMap<String, (Bytes, String)>,
    faults: VecDeque<Fault>,
    /// Faults of single files; they take precedence.
    faults_at: HashMap<String, VecDeque<Fault>>,
    refuse_head: Option<StatusCode>,
    requests: Vec<Seen>,
}

/// A received request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) range: Option<String>,
    pub(crate) if_range: Option<String>,
    pub(crate) authorization: Option<String>,
}

/// Stops when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// PEM of its certificate, which is its own CA; empty for plain HTTP.
    pub(crate) ca: String,
    served: Arc<Mutex<Served>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn plain() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, served) = (listener.local_addr().unwrap(), Arc::default());
        let task = tokio::spawn(serve(listener, Arc::clone(&served)));
        Self { address, ca: String::new(), served, task }
    }

    pub(crate) async fn tls() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = signing_key.serialize_der().try_into().unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, served) = (tcp.local_addr().unwrap(), Arc::default());
        let listener = TlsListener { tcp, acceptor: TlsAcceptor::from(Arc::new(config)) };
        let task = tokio::spawn(serve(listener, Arc::clone(&served)));
        Self { address, ca: cert.pem(), served, task }
    }

    /// Base address for a mirror.
    pub(crate) fn base(&self) -> String {
        let scheme = if self.ca.is_empty() { "http" } else { "https" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves `bytes` under a path, with a version tag of their own.
    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        let tag = format!("\"{}\"", super::sum_of(bytes));
        self.served.lock().unwrap().files.insert(path.to_owned(), (Bytes::copy_from_slice(bytes), tag));
    }

    /// The faults of the next `GET`s, in this order.
    pub(crate) fn faults(&self, faults: impl IntoIterator<Item = Fault>) {
        self.served.lock().unwrap().faults.extend(faults);
    }

    /// The faults of the next `GET`s of a file, in this order.
    pub(crate) fn faults_at(&self, path: &str, faults: impl IntoIterator<Item = Fault>) {
        self.served.lock().unwrap().faults_at.entry(path.to_owned()).or_default().extend(faults);
    }

    pub(crate) fn refuse_head(&self, code: StatusCode) {
        self.served.lock().unwrap().refuse_head = Some(code);
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.served.lock().unwrap().requests.clone()
    }
}

async fn serve<L: Listener<Addr = SocketAddr>>(listener: L, served: Arc<Mutex<Served>>) {
    let router = Router::new().fallback(answer).with_state(served);
    axum::serve(listener, router).await.unwrap();
}

async fn answer(State(served): State<Arc<Mutex<Served>>>, request: Request) -> Response {
    let mut served = served.lock().unwrap();
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let seen = Seen {
        method: request.method().clone(),
        path: request.uri().path().to_owned(),
        range: header(header::RANGE),
        if_range: header(header::IF_RANGE),
        authorization: header(header::AUTHORIZATION),
    };
    served.requests.push(seen.clone());
    let Some((bytes, tag)) = served.files.get(&seen.path).cloned() else {
        return status(StatusCode::NOT_FOUND);
    };
    if seen.method == Method::HEAD {
        return served.refuse_head.map_or_else(|| whole(&bytes, &tag, Body::empty()), status);
    }
    let own = served.faults_at.get_mut(&seen.path).and_then(VecDeque::pop_front);
    match own.or_else(|| served.faults.pop_front()) {
        Some(Fault::Status(code)) => status(code),
        Some(Fault::Redirect(to)) => {
            Response::builder().status(302).header(header::LOCATION, to).body(Body::empty()).unwrap()
        }
        Some(Fault::Challenge(how)) => {
            Response::builder().status(401).header(header::WWW_AUTHENTICATE, how).body(Body::empty()).unwrap()
        }
        Some(Fault::CutAfter(n)) => {
            let cut = Err(io::Error::other("cut"));
            let body = stream::iter([Ok(bytes.slice(..n)), cut]).then(|item| async {
                // Lets the bytes before the fault be sent.
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                item
            });
            whole(&bytes, &tag, Body::from_stream(body))
        }
        Some(Fault::StopAfter(n)) => {
            let head = stream::iter([Ok::<_, Infallible>(bytes.slice(..n))]);
            whole(&bytes, &tag, Body::from_stream(head.chain(stream::pending())))
        }
        Some(Fault::NoRanges) => whole(&bytes, &tag, Body::from(bytes.clone())),
        Some(Fault::Range(range)) => partial(&bytes, range),
        None => ranged(&bytes, &tag, &seen),
    }
}

fn ranged(bytes: &Bytes, tag: &str, seen: &Seen) -> Response {
    let changed = seen.if_range.as_ref().is_some_and(|wanted| wanted != tag);
    let range = seen.range.as_ref().filter(|_| !changed);
    let Some(range) = range else { return whole(bytes, tag, Body::from(bytes.clone())) };
    let (start, end) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    let start: usize = start.parse().unwrap();
    if start >= bytes.len() {
        return status(StatusCode::RANGE_NOT_SATISFIABLE);
    }
    let end = end.parse().map_or(bytes.len(), |last: usize| last + 1);
    partial(bytes, start..end)
}

fn partial(bytes: &Bytes, range: std::ops::Range<usize>) -> Response {
    let content_range = format!("bytes {}-{}/{}", range.start, range.end - 1, bytes.len());
    Response::builder()
        .status(StatusCode::PARTIAL_CONTENT)
        .header(header::CONTENT_RANGE, content_range)
        .body(Body::from(bytes.slice(range)))
        .unwrap()
}

fn whole(bytes: &Bytes, tag: &str, body: Body) -> Response {
    let mut response = Response::new(body);
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, bytes.len().into());
    headers.insert(header::ETAG, tag.parse().unwrap());
    response
}

fn status(code: StatusCode) -> Response {
    Response::builder().status(code).body(Body::empty()).unwrap()
}

struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, address) = self.tcp.accept().await.unwrap();
            // A client that rejects the certificate closes the connection; the next client may accept it.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}
