//! Watches the object itself, and objects of Kubernetes' own kinds with the component label.
//!
//! Secrets are not watched, because permissions cannot limit a watch to labels. Secrets and custom resources are checked on each
//! resync.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use shell_operator::config::{ConfigError, HookConfig, Kubernetes, Schedule, WatchEvent};
use shell_operator::context::Event;
use shell_operator::hook::{Effects, HookBody, Input};
use tokio::sync::Notify;

use super::board::Board;
use super::{API_VERSION, KIND, NAME};
use crate::api::{Id, digest};
use crate::engine::Phase;
use crate::render::COMPONENT_LABEL;

/// Name of the binding to the object itself.
const CONFIGURATION: &str = "configuration";
/// Name of the binding that updates the metrics.
const METRICS: &str = "metrics";

/// Kinds of the watched objects.
pub(super) const WATCHED: [(&str, &str); 15] = [
    ("v1", "ConfigMap"),
    ("v1", "Namespace"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiregistration.k8s.io/v1", "APIService"),
];

/// An object with the component label, as a watch returned it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Seen {
    pub(super) component: String,
    pub(super) id: Id,
    /// Digest of the object; empty if it was deleted.
    pub(super) live: String,
}

/// Objects that the hooks received, for the controller.
#[derive(Default)]
pub(super) struct Wake {
    seen: Mutex<HashMap<Id, Seen>>,
    begun: Notify,
    /// The object itself changed.
    pub(super) changed: Notify,
    /// Objects with the component label changed, perhaps by ks-installer itself.
    pub(super) moved: Notify,
}

impl Wake {
    /// Waits until hooks run, which means that this replica is active.
    pub(super) async fn first(&self) {
        self.begun.notified().await;
    }

    /// The latest state of all objects.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn note(&self, seen: Seen) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(seen.id.clone(), seen);
    }
}

/// The bindings of the only hook.
pub(super) fn config(namespace: &str) -> Result<HookConfig, ConfigError> {
    let generation = |object: &Value| {
        let metadata = &object["metadata"];
        json!([metadata["uid"], metadata["generation"], metadata["deletionTimestamp"]])
    };
    let own = Kubernetes::new(API_VERSION, KIND).name(CONFIGURATION).namespace(namespace);
    let mut builder = HookConfig::builder().kubernetes(own.names(&[NAME]).filter(generation));
    for (api_version, kind) in WATCHED {
        let exists = json!({ "matchExpressions": [{ "key": COMPONENT_LABEL, "operator": "Exists" }] });
        let filter = move |object: &Value| {
            let mut id = Id::of(object);
            // The items of a list have no `apiVersion` and no `kind`.
            [id.api_version, id.kind] = [api_version, kind].map(str::to_owned);
            let component = &object["metadata"]["labels"][COMPONENT_LABEL];
            json!({ "component": component, "id": id, "live": digest(object) })
        };
        let binding = Kubernetes::new(api_version, kind).name(kind).key("labelSelector", exists);
        builder = builder.kubernetes(binding.filter(filter));
    }
    builder.schedule(Schedule::new("*/5 * * * * *").name(METRICS)).build()
}

/// The hook, which records the received objects and wakes the controller.
pub(super) fn body(wake: Arc<Wake>, board: Arc<Board>) -> impl HookBody {
    move |input: Input| {
        let (wake, board) = (wake.clone(), board.clone());
        async move {
            let mut effects = Effects::new();
            for context in &input.contexts {
                if &*context.binding == CONFIGURATION {
                    wake.changed.notify_one();
                    continue;
                }
                if &*context.binding == METRICS {
                    for (component, (phase, _)) in &board.state().components {
                        let value = if *phase == Phase::Ready { 1.0 } else { 0.0 };
                        effects.set_metric(
                            "ks_installer_component_ready",
                            value,
                            &[("component", component)],
                        );
                    }
                    continue;
                }
                match &context.event {
                    Event::Object { change, item, .. } => {
                        let mut seen: Seen = item.parse()?;
                        if *change == WatchEvent::Deleted {
                            seen.live.clear();
                        }
                        wake.note(seen);
                    }
                    _ => input.objects(&context.binding)?.into_iter().for_each(|seen| wake.note(seen)),
                }
                wake.moved.notify_one();
            }
            wake.begun.notify_one();
            Ok::<_, anyhow::Error>(effects)
        }
    }
}
