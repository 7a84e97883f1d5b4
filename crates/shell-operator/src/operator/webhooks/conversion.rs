//! Conversion of custom resources by chains of hooks.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use axum::{Json, Router};

use super::Webhooks;
use crate::context::{BindingContext, Event};
use crate::queue::BindingType;
use crate::webhook::conversion::{Object, Reply, Request, Review, parse_response, source_versions};
use crate::webhook::server::{Limits, limit};
use crate::webhook::{Conversions, Step};

/// Questions at the same time.
const AT_ONCE: usize = 8;
/// How long the API server waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Largest request in bytes, and all requests at the same time: the API server has a whole list converted at once.
const LARGEST: usize = 256 << 20;

pub(super) fn router(webhooks: Arc<Webhooks>) -> Router {
    Router::new()
        .route("/{crd}", post(answer))
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Limits::new(AT_ONCE, LARGEST, LARGEST), limit))
        .with_state(webhooks)
}

async fn answer(
    State(webhooks): State<Arc<Webhooks>>,
    Path(crd): Path<String>,
    body: Bytes,
) -> Result<Json<Reply>, (StatusCode, String)> {
    let review: Review = serde_json::from_slice(&body)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("this is not a ConversionReview: {error}\n")))?;
    let result = webhooks.convert(&crd, &review.request).await;
    if let Err(error) = &result {
        tracing::error!(crd, error, "conversion failed");
    }
    Ok(Json(review.request.reply(result)))
}

impl Webhooks {
    /// The conversions of all hooks.
    pub(super) fn conversions(&self) -> Conversions {
        let mut conversions = Conversions::default();
        for state in self.core.hooks.get().values() {
            for (binding, config) in state.hook.config.conversions.iter().enumerate() {
                for rule in &config.rules {
                    let step = Step { hook: state.hook.name.clone(), binding, rule: rule.clone() };
                    conversions.add(&config.crd_name, step);
                }
            }
        }
        conversions
    }

    /// Converts all objects, version by version, step by step. Each step gets all objects and leaves those alone
    /// that are not of its version.
    async fn convert(self: &Arc<Self>, crd: &str, request: &Request) -> Result<Vec<Object>, String> {
        let wanted = &request.desired_api_version;
        let conversions = self.conversions();
        let mut objects = request.objects.clone();
        for version in source_versions(&request.objects, wanted) {
            let failed =
                || format!("Conversion {crd} to {wanted} was not successful: there is no way from {version}");
            for step in conversions.path(crd, &version, wanted).ok_or_else(failed)? {
                objects = self.convert_step(step, request, &objects).await?;
                if source_versions(&objects, wanted).is_empty() {
                    return Ok(objects);
                }
            }
        }
        Ok(objects)
    }

    async fn convert_step(
        self: &Arc<Self>,
        step: &Step,
        request: &Request,
        objects: &[Object],
    ) -> Result<Vec<Object>, String> {
        let failed = || format!("Hook failed to convert to {}", request.desired_api_version);
        let hooks = self.core.hooks.get();
        let state = hooks.get(&step.hook).ok_or_else(failed)?;
        let binding = state.hook.config.conversions.get(step.binding).ok_or_else(failed)?;
        let context = BindingContext {
            binding: binding.name.as_str().into(),
            event: Event::Conversion {
                from: step.rule.from.as_str().into(),
                to: step.rule.to.as_str().into(),
                review: Arc::from(request.context(objects).into_bytes()),
            },
            group: binding.group.as_deref().map(Into::into),
            snapshots: binding.include_snapshots_from.clone().into(),
        };
        let text = self.core.answer(state.clone(), BindingType::Conversion, context, PATIENCE).await;
        let text = text.map_err(|_| failed())?;
        parse_response(&text, objects.len())
    }
}
