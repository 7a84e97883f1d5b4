//! `/metrics`, `/metrics/hooks`, `/healthz` and `/readyz`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;

use super::Operator;

const ROUTES: [&str; 5] = ["/discovery", "/healthz", "/metrics", "/metrics/hooks", "/readyz"];

/// What the operator answers on its port.
pub(super) fn router(operator: Arc<Operator>) -> Router {
    Router::new()
        .route(
            "/",
            get(async || {
                Html("<html><body><h1>shell-operator</h1><a href=\"/metrics\">metrics</a></body></html>")
            }),
        )
        .route("/discovery", get(async || ROUTES.join("\n")))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/metrics/hooks", get(hook_metrics))
        .with_state(operator)
}

async fn readyz(State(operator): State<Arc<Operator>>) -> impl IntoResponse {
    if operator.is_ready() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the runs at start are not all done\n")
    }
}

async fn metrics(State(operator): State<Arc<Operator>>) -> impl IntoResponse {
    for queue in operator.queues.all() {
        operator.metrics.queue_length(queue.name(), queue.len());
    }
    for monitor in operator.hooks.values().flat_map(|state| &state.monitors) {
        let binding = &monitor.binding;
        operator.metrics.snapshot_objects(&monitor.hook, &binding.name, &binding.queue, monitor.len());
    }
    let mut text = operator.metrics.text();
    if operator.settings.hook_metrics_in_main {
        text.push_str(&operator.hook_metrics.text());
    }
    plain(text)
}

async fn hook_metrics(State(operator): State<Arc<Operator>>) -> impl IntoResponse {
    plain(operator.hook_metrics.text())
}

fn plain(text: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}
