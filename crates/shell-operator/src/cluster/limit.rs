//! Wraps every request to the API: a limit, a time to the first byte of the answer, and metrics.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use tokio::sync::Mutex;
use tower::{BoxError, Layer, Service, ServiceExt};

use super::RateLimit;
use crate::limiter::Limiter;
use crate::metrics::ClientMetrics;

/// Time until the API server begins to answer: a watch has no other limit.
const FIRST_BYTE: Duration = Duration::from_mins(1);

/// Makes requests wait for their turn and counts them.
#[derive(Clone)]
pub(super) struct Guard {
    limiter: Option<Arc<Limiter>>,
    metrics: ClientMetrics,
}

impl Guard {
    /// No limit when `limit` is `None` or allows no number of requests.
    pub(super) fn new(limit: Option<RateLimit>, metrics: ClientMetrics) -> Self {
        let limiter = limit.filter(|limit| limit.qps > 0.0).map(|RateLimit { qps, burst }| {
            Arc::new(Limiter::new(Duration::from_secs_f64(1.0 / qps), burst))
        });
        Self { limiter, metrics }
    }

    async fn wait(&self, verb: &str, path: &str, query: Option<&str>) {
        let Some(limiter) = &self.limiter else { return };
        // The pages of a list are one request that is answered in parts.
        if query
            .is_some_and(|query| form_urlencoded::parse(query.as_bytes()).any(|(key, _)| key == "continue"))
        {
            return;
        }
        let asked = Instant::now();
        limiter.wait().await;
        self.metrics.waited(verb, path, asked.elapsed());
    }
}

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Guarded { inner: Arc::new(Mutex::new(inner)), guard: self.clone() }
    }
}

/// A service behind a [`Guard`].
pub(super) struct Guarded<S> {
    /// Shared with the requests that wait; it is held only while a request is handed over, not until its answer.
    inner: Arc<Mutex<S>>,
    guard: Guard,
}

impl<S, B> Service<Request<Body>> for Guarded<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError> + Send,
    B: Send,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // The inner service is polled when it is the request's turn.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (inner, guard) = (self.inner.clone(), self.guard.clone());
        Box::pin(async move {
            let (method, uri) = (request.method().clone(), request.uri().clone());
            guard.wait(method.as_str(), uri.path(), uri.query()).await;
            let sent = Instant::now();
            let answer = async {
                let answer = inner.lock().await.ready().await.map_err(Into::into)?.call(request);
                answer.await.map_err(Into::into)
            };
            let late = || format!("the API server did not begin to answer within {FIRST_BYTE:?}").into();
            let answer = tokio::time::timeout(FIRST_BYTE, answer).await.unwrap_or_else(|_| Err(late()));
            let code = answer.as_ref().ok().map(|response| response.status().as_u16());
            guard.metrics.answered(method.as_str(), uri.path(), code, sent.elapsed());
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::metrics::OperatorMetrics;

    async fn answer(_: Request<Body>) -> Result<Response<()>, Infallible> {
        Ok(Response::new(()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_nothing_is_given_up() {
        let guard = Guard::new(None, OperatorMetrics::new("p_").of_client("https://h:1"));
        let silent = |_: Request<Body>| std::future::pending::<Result<Response<()>, Infallible>>();
        let mut service = guard.layer(tower::service_fn(silent));
        let error = service.call(Request::get("/api").body(Body::empty()).unwrap()).await.unwrap_err();
        assert!(error.to_string().contains("did not begin to answer within 60s"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_for_their_turn_but_pages_of_a_list_do_not() {
        let metrics = OperatorMetrics::new("p_");
        let limit = RateLimit { qps: 2.0, burst: 1 };
        let guard = Guard::new(Some(limit), metrics.of_client("https://h:1"));
        let mut service = guard.layer(tower::service_fn(answer));
        let start = tokio::time::Instant::now();
        let mut times = Vec::new();
        for query in ["limit=1", "limit=1&continue=x", "watch=1", "watch=1"] {
            let uri = format!("/api/v1/namespaces/ns/pods?{query}");
            service.call(Request::get(uri).body(Body::empty()).unwrap()).await.unwrap();
            times.push(start.elapsed().as_millis());
        }
        assert_eq!(times, [0, 0, 500, 1000]);
        let text = metrics.text();
        let count = r#"p_kubernetes_client_request_result_total{code="200",component="main",host="h:1",method="GET"} 4"#;
        assert!(text.contains(count), "{text}");
        let waits = r#"p_kubernetes_client_rate_limiter_latency_seconds_count{url="https://h:1/api/v1/namespaces/{namespace}/pods",verb="GET"} 3"#;
        assert!(text.contains(waits), "{text}");
    }
}
