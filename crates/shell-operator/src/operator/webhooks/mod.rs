//! Hooks that answer the API server.
//!
//! Servers and the objects that point the API server to them are set up concurrently with the queues, and kept in the wanted
//! state: changed and deleted objects are repaired, a definition that does not exist yet is waited for.

mod admission;
mod conversion;
mod register;
mod secret;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio_util::sync::CancellationToken;

use super::api::ObjectApi;
use super::core::Core;
use super::{WebhookServer, WebhookSettings};
use crate::config::HookConfig;
use crate::webhook::objects::Reach;
use crate::webhook::server;

/// How often the objects in the cluster are checked.
const LOOK: Duration = Duration::from_secs(15);
/// Pause after something failed.
const AGAIN: Duration = Duration::from_secs(2);

/// The two webhook servers.
#[derive(Clone, Copy)]
enum Kind {
    Admission,
    Conversion,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::Conversion => "conversion",
        }
    }
}

/// The servers and objects by which the API server sends requests to hooks.
pub(super) struct Webhooks {
    core: Arc<Core>,
    settings: WebhookSettings,
    api: ObjectApi,
    /// Kinds of admission configurations that point to this operator.
    registered: Mutex<BTreeSet<&'static str>>,
}

impl Webhooks {
    /// The webhooks that the hooks of `core` request.
    pub(super) fn new(core: Arc<Core>) -> Arc<Self> {
        let (settings, api) = (core.settings.webhooks.clone(), core.api.clone());
        Arc::new(Self { core, settings, api, registered: Mutex::default() })
    }

    /// Serves the webhooks that hooks request, until the operator ends.
    pub(super) async fn run(self: Arc<Self>) {
        let serve = async |kind| {
            if self.wait_until_wanted(kind).await {
                self.serve_kind(kind).await;
            }
        };
        tokio::join!(Box::pin(serve(Kind::Admission)), Box::pin(serve(Kind::Conversion)));
    }

    /// Waits for a hook that requests webhooks of this kind; false when the operator ends before.
    async fn wait_until_wanted(&self, kind: Kind) -> bool {
        let wanted = |config: &HookConfig| match kind {
            Kind::Admission => !(config.validating.is_empty() && config.mutating.is_empty()),
            Kind::Conversion => !config.conversions.is_empty(),
        };
        let mut changes = self.core.hooks_changed.subscribe();
        while !self.core.hooks.get().values().any(|state| wanted(&state.hook.config)) {
            tokio::select! {
                () = self.core.stop.cancelled() => return false,
                _ = changes.changed() => {}
            }
        }
        true
    }

    /// One server and the objects that point to it.
    async fn serve_kind(self: &Arc<Self>, kind: Kind) {
        let (mut server, router) = match kind {
            Kind::Admission => (self.settings.admission.clone(), admission::router(self.clone())),
            Kind::Conversion => (self.settings.conversion.clone(), conversion::router(self.clone())),
        };
        let router = router.route("/healthz", get(async || "ok\n"));
        let listens = CancellationToken::new();
        if !self.settings.self_signed {
            tokio::join!(
                self.serve(&server, router, kind, &listens),
                self.keep_registered(&server, kind, &listens)
            );
            return;
        }
        let Some(own) = self.begin_own_certificates(&mut server, kind).await else { return };
        tokio::join!(
            self.serve(&server, router, kind, &listens),
            self.keep_registered(&server, kind, &listens),
            self.keep_own_certificates(&server, kind, own),
        );
    }

    /// Serves until the operator ends; cancels `listens` when it works for the first time.
    async fn serve(&self, server: &WebhookServer, router: Router, kind: Kind, listens: &CancellationToken) {
        let mut attempts = Attempts::new(kind, "server");
        if server.tls.client_ca.is_empty() {
            tracing::warn!(
                "clients of the webhook server on {} need no certificate: each client that reaches it can call the hooks \
                 (see --validating-webhook-client-ca, --conversion-webhook-client-ca)",
                server.listen
            );
        }
        loop {
            let begun = || {
                attempts.good(self);
                listens.cancel();
            };
            let (router, tls) = (router.clone(), server.tls.clone());
            let result = server::serve(router, server.listen, tls, self.core.stop.clone(), begun).await;
            let Err(error) = result else { return };
            if !attempts.again(self, error).await {
                return;
            }
        }
    }

    /// Points the API server to this server as soon as the server answers, and keeps it so.
    async fn keep_registered(&self, server: &WebhookServer, kind: Kind, listens: &CancellationToken) {
        let mut attempts = Attempts::new(kind, "registration");
        let mut changes = self.core.hooks_changed.subscribe();
        tokio::select! {
            () = listens.cancelled() => {}
            () = self.core.stop.cancelled() => return,
        }
        loop {
            let go_on = match self.register_kind(server, kind).await {
                Ok(()) => {
                    attempts.good(self);
                    tokio::select! {
                        go_on = self.pause(LOOK) => go_on,
                        _ = changes.changed() => true,
                    }
                }
                Err(error) => attempts.again(self, error).await,
            };
            if !go_on {
                return;
            }
        }
    }

    async fn register_kind(&self, server: &WebhookServer, kind: Kind) -> Result<(), String> {
        let ca = std::fs::read(&server.ca)
            .map_err(|error| format!("cannot read {}: {error}", server.ca.display()))?;
        match kind {
            Kind::Admission => self.register_admission(ca).await,
            Kind::Conversion => self.register_conversions(ca).await,
        }
    }

    /// Waits; false when the operator ends meanwhile.
    async fn pause(&self, time: Duration) -> bool {
        tokio::select! {
            () = self.core.stop.cancelled() => false,
            () = tokio::time::sleep(time) => true,
        }
    }

    fn reach(&self, server: &WebhookServer) -> Reach {
        let webhooks = &self.settings;
        match &webhooks.external_host {
            Some(host) => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                Reach::Address(format!("{host}:{}", server.listen.port()))
            }
            None => Reach::Service { namespace: webhooks.namespace.clone(), name: server.service.clone() },
        }
    }
}

/// Reports each new problem of one part of the webhooks once, and whether there is one in the metrics.
struct Attempts {
    kind: Kind,
    part: &'static str,
    last: String,
}

impl Attempts {
    fn new(kind: Kind, part: &'static str) -> Self {
        Self { kind, part, last: String::new() }
    }

    /// The part works.
    fn good(&mut self, webhooks: &Webhooks) {
        self.last.clear();
        webhooks.core.metrics.webhooks_failing(self.kind.as_str(), self.part, false);
    }

    /// Waits before the next attempt; false when the operator ends meanwhile.
    async fn again(&mut self, webhooks: &Webhooks, error: String) -> bool {
        webhooks.core.metrics.webhooks_failing(self.kind.as_str(), self.part, true);
        if error != self.last {
            tracing::error!(error, "webhooks cannot be set up, trying again");
            self.last = error;
        }
        webhooks.pause(AGAIN).await
    }
}
