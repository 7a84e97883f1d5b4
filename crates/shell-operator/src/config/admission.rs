//! Entries of `kubernetesValidating` and `kubernetesMutating`.

use serde_json::Value;

use super::fields::Fields;
use super::schedule::read_group;
use super::selector::{self, LabelSelector};
use super::v1::items;

/// One admission webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionBinding {
    /// Name of the webhook.
    pub name: String,
    /// Requests it answers.
    pub rules: Vec<AdmissionRule>,
    /// `Fail` or `Ignore`; `None` takes the operator's default.
    pub failure_policy: Option<String>,
    /// `None` or `NoneOnDryRun`.
    pub side_effects: String,
    /// Seconds the API server waits.
    pub timeout_seconds: i64,
    /// Labels of the objects.
    pub object_selector: Option<LabelSelector>,
    /// Labels of the objects' namespaces.
    pub namespace_selector: Option<LabelSelector>,
    /// CEL conditions, as the API server takes them.
    pub match_conditions: Vec<MatchCondition>,
    /// Kubernetes bindings whose objects the hook gets.
    pub include_snapshots_from: Vec<String>,
    /// Group that the binding belongs to.
    pub group: Option<String>,
}

/// Requests that a webhook answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionRule {
    /// API groups, `*` for all.
    pub api_groups: Vec<String>,
    /// API versions, `*` for all.
    pub api_versions: Vec<String>,
    /// Resources, also with sub-resource.
    pub resources: Vec<String>,
    /// `CREATE`, `UPDATE`, `DELETE`, `CONNECT` or `*`.
    pub operations: Vec<String>,
    /// `Cluster`, `Namespaced` or `*`.
    pub scope: Option<String>,
}

/// A condition in the API server's expression language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchCondition {
    /// Name of the condition.
    pub name: String,
    /// The expression.
    pub expression: String,
}

/// `kubernetesValidating`, whose names Kubernetes checks more strictly.
pub(super) fn read_validating(fields: &Fields) -> Vec<AdmissionBinding> {
    let key = "kubernetesValidating";
    let mut names: Vec<String> = Vec::new();
    for (path, item) in fields.list(key).unwrap_or_default() {
        let Some(name) = item.get("name").and_then(Value::as_str) else { continue };
        let path = format!("{path}.name");
        if !selector::is_dns_subdomain(name) || name.split('.').count() < 3 {
            let text = format!(
                "'{name}' must be a domain name with at least three parts, like 'policy.example.com'"
            );
            fields.problems.error(&path, text);
        }
        if names.iter().any(|known| known == name) {
            fields.problems.error(&path, format!("'{name}' is used twice"));
        }
        names.push(name.to_owned());
    }
    let bindings = items(fields, key, read);
    for binding in &bindings {
        if !(1..=30).contains(&binding.timeout_seconds) {
            let text = format!("{} is not between 1 and 30", binding.timeout_seconds);
            fields.error(key, format!("{}: timeoutSeconds: {text}", binding.name));
        }
    }
    bindings
}

pub(super) fn read(fields: &Fields) -> Option<AdmissionBinding> {
    fields.only(&[
        "name",
        "rules",
        "failurePolicy",
        "sideEffects",
        "timeoutSeconds",
        "labelSelector",
        "namespace",
        "matchConditions",
        "group",
        "includeSnapshotsFrom",
    ]);
    let binding = AdmissionBinding {
        name: String::new(),
        rules: items(fields, "rules", |rule| Some(read_rule(rule))),
        failure_policy: one_of(fields, "failurePolicy", &["Ignore", "Fail"]),
        side_effects: one_of(fields, "sideEffects", &["None", "NoneOnDryRun"])
            .unwrap_or_else(|| "None".to_owned()),
        timeout_seconds: fields.integer("timeoutSeconds").unwrap_or(10),
        object_selector: fields
            .get("labelSelector")
            .and_then(|value| selector::read_labels(&fields.path("labelSelector"), value, fields.problems)),
        namespace_selector: read_namespace(fields),
        match_conditions: items(fields, "matchConditions", read_condition),
        include_snapshots_from: fields.filled_strings("includeSnapshotsFrom"),
        group: read_group(fields),
    };
    let name = fields.required("name")?.to_owned();
    Some(AdmissionBinding { name, ..binding })
}

fn read_namespace(fields: &Fields) -> Option<LabelSelector> {
    let path = fields.path("namespace");
    let namespace = Fields::new(&path, fields.get("namespace")?, fields.problems)?;
    namespace.only(&["labelSelector"]);
    selector::read_labels(&namespace.path("labelSelector"), namespace.get("labelSelector")?, fields.problems)
}

fn read_condition(fields: &Fields) -> Option<MatchCondition> {
    fields.only(&["name", "expression"]);
    let (name, expression) = (fields.required("name"), fields.required("expression"));
    Some(MatchCondition { name: name?.to_owned(), expression: expression?.to_owned() })
}

fn read_rule(fields: &Fields) -> AdmissionRule {
    fields.only(&["apiVersions", "apiGroups", "resources", "operations", "scope"]);
    for key in ["apiVersions", "apiGroups", "resources", "operations"] {
        if !fields.has(key) {
            fields.error(key, "is required");
        }
    }
    let rule = AdmissionRule {
        api_groups: fields.filled_strings("apiGroups"),
        api_versions: fields.filled_strings("apiVersions"),
        resources: fields.filled_strings("resources"),
        operations: fields.filled_strings("operations"),
        scope: one_of(fields, "scope", &["Cluster", "Namespaced", "*"]),
    };
    check_rule(fields, &rule);
    rule
}

/// The checks of the API server that a hook's author should see before the API server refuses the whole object.
fn check_rule(fields: &Fields, rule: &AdmissionRule) {
    const OPERATIONS: [&str; 5] = ["CREATE", "UPDATE", "DELETE", "CONNECT", "*"];
    for operation in rule.operations.iter().filter(|name| !OPERATIONS.contains(&name.as_str())) {
        let text = format!("'{operation}' is unsupported; supported are {}", OPERATIONS.join(", "));
        fields.error("operations", text);
    }
    for (key, values) in [
        ("apiGroups", &rule.api_groups),
        ("apiVersions", &rule.api_versions),
        ("operations", &rule.operations),
    ] {
        if values.len() > 1 && values.iter().any(|value| value == "*") {
            fields.error(key, "'*' must be the only value");
        }
    }
    if rule.api_versions.iter().any(String::is_empty) {
        fields.error("apiVersions", "must not hold an empty version");
    }
    let plain = |resource: &&String| !resource.contains('/') && *resource != "*";
    if rule.resources.iter().any(|resource| resource == "*") && rule.resources.iter().any(|r| plain(&r)) {
        fields.error("resources", "'*' covers all resources, so no other may be named");
    }
    if rule.resources.iter().any(|resource| resource == "*/*") && rule.resources.len() > 1 {
        fields.error("resources", "'*/*' must be the only value");
    }
}

fn one_of(fields: &Fields, key: &str, allowed: &[&str]) -> Option<String> {
    let text = fields.string(key)?;
    if !allowed.contains(&text) {
        fields.error(key, format!("'{text}' is unsupported; supported are {}", allowed.join(", ")));
    }
    Some(text.to_owned())
}
