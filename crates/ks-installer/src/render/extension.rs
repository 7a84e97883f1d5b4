//! Renders the `InstallPlan` of an extension.
//!
//! It lacks values that only the cluster knows: the recommended version, and the clusters for the agent that some extensions
//! have. `engine/extension.rs` adds them.

use serde_json::{Value, json};

use super::{canonical, lay, text as yaml};
use crate::api::install_plan;
use crate::payload::extension::{CLUSTERS, CONFIG, VERSION};

/// The rendered templates of the definition.
pub(super) struct Texts<'a> {
    pub(super) version: &'a str,
    pub(super) config: &'a str,
}

/// The plan of an extension. Settings in the spec override values in the definition.
pub(super) fn plan(name: &str, texts: &Texts<'_>, spec: &Value) -> Result<Value, String> {
    let settings = &spec["extensions"][name];
    let wrong = |key: &str, expected: &str| format!("extensions.{name}.{key} must be {expected}");
    let version = match &settings[VERSION] {
        Value::Null => texts.version.trim(),
        Value::String(text) => text,
        _ => return Err(wrong(VERSION, "a text: quote it")),
    };
    let mut config = yaml::value(texts.config)?;
    // A null would remove a default of the extension, as with helm.
    without_empty(&mut config);
    let own = match &settings[CONFIG] {
        // The form of values in an InstallPlan.
        Value::String(text) => yaml::value(text)?,
        other => other.clone(),
    };
    if !own.is_null() && !own.is_object() {
        return Err(wrong(CONFIG, "a map of keys and values"));
    }
    lay(&mut config, own);
    let mut plan = json!({
        "apiVersion": install_plan::API_VERSION,
        "kind": install_plan::KIND,
        "metadata": { "name": name },
        "spec": {
            "extension": { "name": name },
            "enabled": true,
            "upgradeStrategy": "Manual",
        },
    });
    match &settings[CLUSTERS] {
        Value::Null => {}
        clusters @ Value::Array(_) => {
            plan["spec"]["clusterScheduling"] = json!({ "placement": { "clusters": clusters } });
        }
        _ => return Err(wrong(CLUSTERS, "a list of names")),
    }
    if !version.is_empty() {
        plan["spec"]["extension"]["version"] = version.into();
    }
    if config.as_object().is_some_and(|config| !config.is_empty()) {
        // JSON is valid YAML, and every YAML parser reads its texts as texts. A webhook removes spaces at the ends of lines; this
        // text has none.
        let text = serde_json::to_string_pretty(&canonical(&config)).map_err(|error| error.to_string())?;
        plan["spec"]["config"] = text.into();
    }
    Ok(plan)
}

/// Removes keys without a value, at any depth.
fn without_empty(value: &mut Value) {
    let Some(map) = value.as_object_mut() else { return };
    map.values_mut().for_each(without_empty);
    map.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|inner| !inner.is_empty()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spec: &Value) -> Result<Value, String> {
        plan("vector", &Texts { version: " 1.0.4\n", config: "a: {b: 1, c: 2}\ne: {f: {g: }}\n" }, spec)
    }

    #[test]
    fn what_the_spec_says_goes_before_the_definition() {
        let spec = |settings: Value| json!({"extensions": {"vector": settings}});
        let config = |plan: &Value| -> Value {
            serde_json::from_str(plan["spec"]["config"].as_str().unwrap_or("null")).unwrap()
        };
        let plain = of(&json!({})).unwrap();
        assert_eq!(plain["metadata"]["name"], plain["spec"]["extension"]["name"]);
        assert_eq!(plain["spec"]["extension"]["version"], "1.0.4");
        assert_eq!(config(&plain), json!({"a": {"b": 1, "c": 2}}));
        assert!(plain["spec"]["clusterScheduling"].is_null());
        for own in [json!({"a": {"b": 3}}), json!("a:\n  b: 3\n")] {
            let said = json!({"version": "2", "config": own, "clusters": ["one", "two"]});
            let changed = of(&spec(said)).unwrap();
            assert_eq!(changed["spec"]["extension"]["version"], "2");
            assert_eq!(config(&changed), json!({"a": {"b": 3, "c": 2}}));
            assert_eq!(changed["spec"]["clusterScheduling"]["placement"]["clusters"], json!(["one", "two"]));
        }
        let nothing = plan("vector", &Texts { version: "", config: "" }, &json!({})).unwrap();
        assert_eq!(nothing["spec"]["extension"], json!({"name": "vector"}));
        assert!(nothing["spec"].get("config").is_none(), "values that others write stay theirs");
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        for (settings, expected) in [
            (json!({"version": 1.2}), "extensions.vector.version"),
            (json!({"config": [1]}), "extensions.vector.config"),
            (json!({"clusters": "host"}), "extensions.vector.clusters"),
        ] {
            let error = of(&json!({"extensions": {"vector": settings}})).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
