//! The objects that point the API server to the webhooks.
//!
//! Every field is written out with the API server's own defaults, so that existing objects can be compared with the wanted ones.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::path_of;
use crate::config::{AdmissionBinding, AdmissionRule, LabelSelector, Requirement};

/// How the API server reaches the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By a Service.
    Service {
        /// Namespace of the Service.
        namespace: String,
        /// Name of the Service.
        name: String,
    },
    /// By an address outside the cluster, `host:port`.
    Address(String),
}

impl Reach {
    /// The `clientConfig` for a path that begins with `/`; `ca` is PEM.
    pub fn client_config(&self, path: &str, ca: &[u8]) -> Value {
        let bundle = STANDARD.encode(ca);
        match self {
            Self::Service { namespace, name } => json!({
                "caBundle": bundle,
                "service": { "namespace": namespace, "name": name, "path": path, "port": 443 },
            }),
            Self::Address(address) => {
                json!({ "caBundle": bundle, "url": format!("https://{address}{path}") })
            }
        }
    }
}

/// One entry of a configuration's `webhooks`.
pub fn webhook(
    binding: &AdmissionBinding,
    default_policy: &str,
    mutating: bool,
    reach: &Reach,
    ca: &[u8],
) -> Value {
    let mut webhook = json!({
        "name": binding.name,
        "clientConfig": reach.client_config(&format!("/hooks/{}", path_of(&binding.name)), ca),
        "rules": binding.rules.iter().map(rule).collect::<Vec<_>>(),
        "failurePolicy": binding.failure_policy.as_deref().unwrap_or(default_policy),
        "matchPolicy": "Equivalent",
        "namespaceSelector": selector(binding.namespace_selector.as_ref()),
        "objectSelector": selector(binding.object_selector.as_ref()),
        "sideEffects": binding.side_effects,
        "timeoutSeconds": binding.timeout_seconds,
        "admissionReviewVersions": ["v1", "v1beta1"],
    });
    if mutating {
        webhook["reinvocationPolicy"] = "Never".into();
    }
    if !binding.match_conditions.is_empty() {
        let condition = |condition: &crate::config::MatchCondition| json!({ "name": condition.name, "expression": condition.expression });
        webhook["matchConditions"] = binding.match_conditions.iter().map(condition).collect();
    }
    webhook
}

/// The whole configuration object; `kind` is `ValidatingWebhookConfiguration` or `MutatingWebhookConfiguration`.
pub fn configuration(kind: &str, name: &str, webhooks: &[Value]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": { "name": name },
        "webhooks": webhooks,
    })
}

/// `spec.conversion` of a custom resource's definition.
pub fn conversion(crd: &str, reach: &Reach, ca: &[u8]) -> Value {
    json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": reach.client_config(&format!("/{crd}"), ca),
            "conversionReviewVersions": ["v1", "v1beta1"],
        },
    })
}

fn rule(rule: &AdmissionRule) -> Value {
    json!({
        "apiGroups": rule.api_groups,
        "apiVersions": rule.api_versions,
        "resources": rule.resources,
        "operations": rule.operations,
        "scope": rule.scope.as_deref().unwrap_or("*"),
    })
}

fn selector(selector: Option<&LabelSelector>) -> Value {
    let Some(LabelSelector(requirements)) = selector else { return json!({}) };
    let mut labels = serde_json::Map::new();
    let mut expressions = Vec::new();
    for requirement in requirements {
        let expression = |key: &str, operator: &str, values: &[String]| {
            let mut expression = json!({ "key": key, "operator": operator });
            if !values.is_empty() {
                expression["values"] = json!(values);
            }
            expression
        };
        match requirement {
            Requirement::Equals(key, value) => {
                labels.insert(key.clone(), value.as_str().into());
            }
            Requirement::In(key, values) => expressions.push(expression(key, "In", values)),
            Requirement::NotIn(key, values) => expressions.push(expression(key, "NotIn", values)),
            Requirement::Exists(key) => expressions.push(expression(key, "Exists", &[])),
            Requirement::DoesNotExist(key) => expressions.push(expression(key, "DoesNotExist", &[])),
        }
    }
    let mut selector = json!({});
    if !labels.is_empty() {
        selector["matchLabels"] = Value::Object(labels);
    }
    if !expressions.is_empty() {
        selector["matchExpressions"] = Value::Array(expressions);
    }
    selector
}
