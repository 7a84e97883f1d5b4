//! Maintains the objects that point the API server to the webhooks.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};

use http::Method;
use serde_json::{Value, json};

use super::Webhooks;
use crate::config::AdmissionBinding;
use crate::operator::active::HookState;
use crate::webhook::objects;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
/// Annotation that names the operator to which a configuration points.
const OWNER: &str = "shell-operator/owner";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

impl Webhooks {
    /// Creates or repairs the admission configurations.
    pub(super) async fn register_admission(&self, ca: Vec<u8>) -> Result<(), String> {
        let states = self.core.hooks.get();
        let all = |of: fn(&HookState) -> &[AdmissionBinding]| -> Vec<&AdmissionBinding> {
            states.values().flat_map(|state| of(state)).collect()
        };
        let validating = all(|state| &state.hook.config.validating);
        let mutating = all(|state| &state.hook.config.mutating);
        self.register(&validating, false, &ca).await?;
        self.register(&mutating, true, &ca).await
    }

    async fn register(
        &self,
        bindings: &[&AdmissionBinding],
        mutating: bool,
        ca: &[u8],
    ) -> Result<(), String> {
        let kind = if mutating { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" };
        // Without bindings the configuration does not concern this operator, unless the last binding was removed just now.
        if bindings.is_empty() && !self.registered().contains(kind) {
            return Ok(());
        }
        let settings = &self.settings;
        let reach = self.reach(&settings.admission);
        let webhook = |binding| objects::webhook(binding, &settings.failure_policy, mutating, &reach, ca);
        // Names are unique in a configuration: if several hooks use one name, the last one counts.
        let mut webhooks: Vec<Value> = Vec::new();
        for binding in bindings {
            webhooks.retain(|known| known["name"] != binding.name.as_str());
            webhooks.push(webhook(binding));
        }
        let name = format!("{}-hooks", settings.configuration_name);
        let collection = format!("{CONFIGURATIONS}/{}s", kind.to_lowercase());
        let wanted = objects::configuration(kind, &name, &webhooks);
        self.keep_configuration(kind, &collection, &name, wanted).await?;
        if bindings.is_empty() {
            self.registered().remove(kind);
        } else {
            self.registered().insert(kind);
        }
        Ok(())
    }

    /// The name that distinguishes this operator, with all its replicas, from others.
    fn owner(&self) -> String {
        let webhooks = &self.settings;
        format!("{}/{}", webhooks.namespace, webhooks.admission.service)
    }

    fn registered(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn keep_configuration(
        &self,
        kind: &str,
        collection: &str,
        name: &str,
        wanted: Value,
    ) -> Result<(), String> {
        let mut wanted = wanted;
        wanted["metadata"]["annotations"] = json!({ OWNER: self.owner() });
        let Some(mut current) = self.api.find(collection, name).await? else {
            self.api.send(Method::POST, collection, &wanted).await?;
            tracing::info!("{kind} {name} is created");
            return Ok(());
        };
        let owner = current["metadata"]["annotations"][OWNER].as_str();
        if let Some(other) = owner.filter(|owner| *owner != self.owner()) {
            return Err(format!(
                "{kind} {name} belongs to the operator behind the Service {other}, not to {}\n\
                 hint: set a different name for each operator with --validating-webhook-configuration-name, or delete the configuration of a previous operator",
                self.owner()
            ));
        }
        if owner.is_some() && current["webhooks"] == wanted["webhooks"] {
            return Ok(());
        }
        current["webhooks"] = wanted["webhooks"].clone();
        current["metadata"]["annotations"][OWNER] = self.owner().into();
        self.api.send(Method::PUT, &format!("{collection}/{name}"), &current).await?;
        tracing::info!("{kind} {name} is brought up to date");
        Ok(())
    }

    /// Leads the definitions of custom resources to the operator.
    pub(super) async fn register_conversions(&self, ca: Vec<u8>) -> Result<(), String> {
        let reach = self.reach(&self.settings.conversion);
        let mut missing = Vec::new();
        for crd in self.conversions().crds() {
            let path = format!("{DEFINITIONS}/{crd}");
            let Some(mut current) = self.api.find(DEFINITIONS, crd).await? else {
                missing.push(crd.clone());
                continue;
            };
            let wanted = objects::conversion(crd, &reach, &ca);
            if current["spec"]["conversion"] == wanted {
                continue;
            }
            current["spec"]["conversion"] = wanted;
            self.api.send(Method::PUT, &path, &current).await?;
            tracing::info!("CustomResourceDefinition {crd} is converted by hooks now");
        }
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!("there is no CustomResourceDefinition {} yet", missing.join(", ")))
    }
}
