//! Configurations as Rust values: the same keys, defaults and checks as in YAML.
//!
//! ```
//! use shell_operator::config::{HookConfig, Kubernetes, Schedule};
//!
//! let config = HookConfig::builder()
//!     .kubernetes(Kubernetes::new("v1", "ConfigMap").name("maps").namespace("default").jq_filter(".data"))
//!     .schedule(Schedule::new("*/5 * * * *").include_snapshots_from(&["maps"]))
//!     .build()
//!     .unwrap();
//! assert_eq!(config.kubernetes[0].name, "maps");
//! ```

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{ConfigError, HookConfig, SharedFilter, WatchEvent};
use crate::jq::Filter;

/// Collects what a [`HookConfig`] is made of.
#[derive(Default)]
pub struct ConfigBuilder {
    root: Map<String, Value>,
    filters: Vec<Option<SharedFilter>>,
}

impl HookConfig {
    /// A configuration without bindings.
    pub fn builder() -> ConfigBuilder {
        ConfigBuilder::default()
    }
}

impl ConfigBuilder {
    /// Runs the hook when the operator starts, at this place among the others.
    #[must_use]
    pub fn on_startup(mut self, order: i64) -> Self {
        self.root.insert("onStartup".to_owned(), order.into());
        self
    }

    /// Runs the hook on changes in the cluster.
    #[must_use]
    pub fn kubernetes(mut self, binding: Kubernetes) -> Self {
        self.filters.push(binding.filter);
        self.add("kubernetes", binding.keys)
    }

    /// Runs the hook by the clock.
    #[must_use]
    pub fn schedule(self, binding: Schedule) -> Self {
        self.add("schedule", binding.0)
    }

    /// Sets any key of a configuration, like `settings` or `kubernetesValidating`, as in YAML.
    #[must_use]
    pub fn key(mut self, key: &str, value: Value) -> Self {
        self.root.insert(key.to_owned(), value);
        self
    }

    /// Checks everything, as it is done for hooks that are programs.
    pub fn build(mut self) -> Result<HookConfig, ConfigError> {
        self.root.insert("configVersion".to_owned(), "v1".into());
        let mut config = HookConfig::parse(&Value::Object(self.root).to_string())?;
        for (binding, filter) in config.kubernetes.iter_mut().zip(self.filters) {
            binding.filter = filter.or(binding.filter.take());
        }
        Ok(config)
    }

    fn add(mut self, key: &str, binding: Map<String, Value>) -> Self {
        let list = self.root.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(Value::Object(binding));
        }
        self
    }
}

/// A binding to objects of the cluster.
pub struct Kubernetes {
    keys: Map<String, Value>,
    filter: Option<SharedFilter>,
}

impl Kubernetes {
    /// All objects of a kind. An empty `api_version` means any.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let binding = Self { keys: Map::new(), filter: None }.key("kind", kind);
        if api_version.is_empty() { binding } else { binding.key("apiVersion", api_version) }
    }

    /// Its name in contexts and snapshots.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.key("name", name)
    }

    /// Objects of this namespace only.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        self.key("namespace", json!({ "nameSelector": { "matchNames": [namespace] } }))
    }

    /// Objects with this label only.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        let selector = self.keys.entry("labelSelector").or_insert_with(|| json!({ "matchLabels": {} }));
        selector["matchLabels"][key] = value.into();
        self
    }

    /// Objects with these names only.
    #[must_use]
    pub fn names(self, names: &[&str]) -> Self {
        self.key("nameSelector", json!({ "matchNames": names }))
    }

    /// A jq program that selects what matters of an object. Objects are not kept then.
    #[must_use]
    pub fn jq_filter(self, filter: &str) -> Self {
        self.key("jqFilter", filter).key("keepFullObjectsInMemory", false)
    }

    /// A function that selects what matters of an object. Objects are not kept then.
    ///
    /// Unlike a jq program, the function has no time limit: while it runs, no watch is read. When it panics, the result is null
    /// and the error is logged.
    #[must_use]
    pub fn filter(mut self, filter: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(Filter::function(filter)));
        self.key("keepFullObjectsInMemory", false)
    }

    /// Events that run the hook; by default all.
    #[must_use]
    pub fn events(self, events: &[WatchEvent]) -> Self {
        let names: Vec<&str> = events.iter().map(|event| event.as_str()).collect();
        self.key("executeHookOnEvent", json!(names))
    }

    /// Queue of the runs; by default `main`.
    #[must_use]
    pub fn queue(self, queue: &str) -> Self {
        self.key("queue", queue)
    }

    /// Group whose snapshots each of its runs gets.
    #[must_use]
    pub fn group(self, group: &str) -> Self {
        self.key("group", group)
    }

    /// Bindings whose objects the runs get.
    #[must_use]
    pub fn include_snapshots_from(self, bindings: &[&str]) -> Self {
        self.key("includeSnapshotsFrom", json!(bindings))
    }

    /// Any other key, as in YAML.
    #[must_use]
    pub fn key(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.keys.insert(key.to_owned(), value.into());
        self
    }
}

/// A binding to the clock.
pub struct Schedule(Map<String, Value>);

impl Schedule {
    /// Runs at the times of a crontab, with seconds or without.
    pub fn new(crontab: &str) -> Self {
        Self(Map::new()).key("crontab", crontab)
    }

    /// Its name in contexts.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.key("name", name)
    }

    /// Queue of the runs; by default `main`.
    #[must_use]
    pub fn queue(self, queue: &str) -> Self {
        self.key("queue", queue)
    }

    /// Bindings whose objects the runs get.
    #[must_use]
    pub fn include_snapshots_from(self, bindings: &[&str]) -> Self {
        self.key("includeSnapshotsFrom", json!(bindings))
    }

    /// Any other key, as in YAML.
    #[must_use]
    pub fn key(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checks_of_yaml_are_run() {
        let builder = HookConfig::builder()
            .kubernetes(Kubernetes::new("a/b/c", "").jq_filter("."))
            .schedule(Schedule::new("soon").include_snapshots_from(&["none"]));
        let error = builder.build().unwrap_err().to_string();
        for expected in ["apiVersion", "kind", "crontab"] {
            assert!(error.contains(expected), "{expected} missing in:\n{error}");
        }
    }

    #[test]
    fn everything_arrives_in_the_configuration() {
        let binding = Kubernetes::new("v1", "Pod")
            .name("pods")
            .namespace("ns")
            .label("app", "x")
            .events(&[WatchEvent::Added])
            .queue("q")
            .group("g");
        let config = HookConfig::builder().on_startup(3).kubernetes(binding).build().unwrap();
        let yaml = "{configVersion: v1, onStartup: 3, kubernetes: [{name: pods, apiVersion: v1, kind: Pod, \
            namespace: {nameSelector: {matchNames: [ns]}}, labelSelector: {matchLabels: {app: x}}, \
            executeHookOnEvent: [Added], queue: q, group: g}]}";
        assert_eq!(config, HookConfig::parse(yaml).unwrap());
    }

    #[test]
    fn a_function_that_panics_fails_for_that_object_only() {
        let binding = Kubernetes::new("v1", "Pod").filter(|object| match object["n"].as_i64() {
            Some(n) => n.into(),
            None => panic!("no number"),
        });
        let config = HookConfig::builder().kubernetes(binding).build().unwrap();
        let filter = config.kubernetes[0].filter.as_ref().unwrap();
        let run = |text: &str| filter.filter_result(crate::json::parse(text.as_bytes()).unwrap());
        assert!(run("{}").unwrap_err().to_string().contains("no number"));
        assert_eq!(run(r#"{"n":1}"#).unwrap(), b"1");
    }

    #[test]
    fn a_function_may_filter() {
        let binding = Kubernetes::new("v1", "Pod").filter(|object| object["spec"]["nodeName"].clone());
        let config = HookConfig::builder().kubernetes(binding).build().unwrap();
        let object = crate::json::parse(br#"{"spec":{"nodeName":"n1"}}"#).unwrap();
        let filter = config.kubernetes[0].filter.as_ref().unwrap();
        assert_eq!(filter.filter_result(object).unwrap(), b"\"n1\"");
    }
}
