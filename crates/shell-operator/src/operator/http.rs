//! `/metrics`, `/metrics/hooks`, `/healthz` and `/readyz`.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;

use super::core::Core;
use crate::metrics::OperatorMetrics;

/// The state that the port shows: only the process's own state until there is an operator.
pub(super) struct Shown {
    pub(super) metrics: OperatorMetrics,
    pub(super) operator: OnceLock<Arc<Core>>,
}

const ROUTES: [&str; 5] = ["/discovery", "/healthz", "/metrics", "/metrics/hooks", "/readyz"];

/// The routes of the operator's port.
pub(super) fn router(shown: Arc<Shown>) -> Router {
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
        .with_state(shown)
}

async fn readyz(State(shown): State<Arc<Shown>>) -> impl IntoResponse {
    if shown.operator.get().is_some_and(|operator| operator.is_ready()) {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the runs at start are not all done\n")
    }
}

async fn metrics(State(shown): State<Arc<Shown>>) -> impl IntoResponse {
    let Some(operator) = shown.operator.get() else { return plain(shown.metrics.text()) };
    for queue in operator.queues.all() {
        let busy_for = queue.busy_for().unwrap_or_default();
        operator.metrics.queue_state(queue.name(), queue.len(), queue.contexts(), busy_for);
    }
    for monitor in operator.hooks.get().values().flat_map(|state| &state.monitors) {
        let binding = &monitor.binding;
        operator.metrics.snapshot_objects(&monitor.hook, &binding.name, &binding.queue, monitor.len());
    }
    let mut text = operator.metrics.text();
    if operator.settings.hook_metrics_in_main {
        text.push_str(&operator.runner.hook_metrics.text());
    }
    plain(text)
}

async fn hook_metrics(State(shown): State<Arc<Shown>>) -> impl IntoResponse {
    plain(shown.operator.get().map(|operator| operator.runner.hook_metrics.text()).unwrap_or_default())
}

fn plain(text: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}
