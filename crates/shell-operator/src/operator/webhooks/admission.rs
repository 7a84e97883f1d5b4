//! Answers to validating and mutating requests.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response as HttpResponse};
use axum::routing::post;
use axum::{Json, Router};

use super::Webhooks;
use crate::config::AdmissionBinding;
use crate::context::{BindingContext, Event};
use crate::operator::active::HookState;
use crate::queue::BindingType;
use crate::webhook::admission::{Response, Review};
use crate::webhook::path_of;
use crate::webhook::server::{Limits, limit};

/// Questions at the same time.
const AT_ONCE: usize = 64;
/// Largest request in bytes: an object before and after a change. The API server accepts 3 MiB for each.
const LARGEST: usize = 16 << 20;
/// Bytes of all requests at the same time. Clients need no certificate by default, and must not exhaust the memory.
const TOGETHER: usize = 64 << 20;

pub(super) fn router(webhooks: Arc<Webhooks>) -> Router {
    Router::new()
        .route("/hooks/{*id}", post(answer))
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Limits::new(AT_ONCE, LARGEST, TOGETHER), limit))
        .with_state(webhooks)
}

async fn answer(
    State(webhooks): State<Arc<Webhooks>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: String,
) -> HttpResponse {
    let json = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !json {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json\n")
            .into_response();
    }
    let review = match Review::parse(&body) {
        Ok(review) => review,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let response = webhooks.admit(&id, review.context()).await;
    Json(review.reply(&response)).into_response()
}

impl Webhooks {
    async fn admit(self: &Arc<Self>, id: &str, review: String) -> Response {
        let Some((state, binding, kind)) = self.admission_binding(id) else {
            return Response::refusal(500, format!("there is no hook for '{id}'"));
        };
        let review = Arc::from(review.into_bytes());
        let context = BindingContext {
            binding: binding.name.as_str().into(),
            event: if kind == BindingType::Mutating {
                Event::Mutating(review)
            } else {
                Event::Validating(review)
            },
            group: binding.group.as_deref().map(Into::into),
            snapshots: binding.include_snapshots_from.clone().into(),
        };
        let seconds = u64::try_from(binding.timeout_seconds).unwrap_or_default();
        let answer = self.core.answer(state.clone(), kind, context, Duration::from_secs(seconds)).await;
        match answer.and_then(|text| Response::parse(&text)) {
            Ok(response) => response,
            // The cause is in the log; the sender of the request need not know it.
            Err(error) => {
                tracing::error!(hook = &*state.hook.name, binding = binding.name, error, "Hook failed");
                Response::refusal(403, "Hook failed")
            }
        }
    }

    /// The binding with this id; if several hooks use one name, the last one in the order of paths.
    fn admission_binding(&self, id: &str) -> Option<(Arc<HookState>, AdmissionBinding, BindingType)> {
        let mut found = None;
        for state in self.core.hooks.get().values() {
            let config = &state.hook.config;
            let validating = config.validating.iter().map(|binding| (binding, BindingType::Validating));
            let mutating = config.mutating.iter().map(|binding| (binding, BindingType::Mutating));
            for (binding, kind) in
                validating.chain(mutating).filter(|(binding, _)| path_of(&binding.name) == id)
            {
                // The hooks are sorted.
                found = Some((state.clone(), binding.clone(), kind));
            }
        }
        found
    }
}
