//! Hook configurations and what is understood of them.

use serde::Deserialize;
use serde_json::{Value, json};
use shell_operator::config::{
    AdmissionBinding, ConfigVersion, HookConfig, KubernetesBinding, NamespaceSelector, ScheduleBinding,
};

use crate::value::{contains, expect, refused};

/// The output of a hook for `--config`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Config {
    text: String,
    /// The expected result, in the form of [`view`].
    expect: Option<Value>,
    /// The configuration is not accepted; its error has all of these.
    refused: Option<Vec<String>>,
    /// Warnings that an accepted one has.
    #[serde(default)]
    warnings: Vec<String>,
    /// Another text that means the same.
    same_as: Option<String>,
}

impl Config {
    pub(crate) fn run(&self) -> Result<(), String> {
        let result = HookConfig::parse(&self.text);
        if let Some(parts) = &self.refused {
            return refused(result, parts);
        }
        let config = result.map_err(|error| format!("it was refused: {error}"))?;
        contains(&config.warnings.join("\n"), &self.warnings)?;
        let view = view(&config);
        if let Some(expected) = &self.expect {
            expect(&view, expected)?;
        }
        if let Some(other) = &self.same_as {
            let other = HookConfig::parse(other).map_err(|error| format!("sameAs was refused: {error}"))?;
            expect(&self::view(&other), &view)?;
        }
        Ok(())
    }
}

/// A configuration with its defaults, as a case writes it.
fn view(config: &HookConfig) -> Value {
    let settings = &config.settings;
    let conversions = config.conversions.iter().map(|binding| {
        let rules = binding.rules.iter().map(|rule| format!("{}>{}", rule.from, rule.to));
        json!({
            "name": binding.name, "crdName": binding.crd_name, "rules": rules.collect::<Vec<_>>(),
            "includeSnapshotsFrom": binding.include_snapshots_from, "group": binding.group,
        })
    });
    json!({
        "version": if config.version == ConfigVersion::V0 { "v0" } else { "v1" },
        "onStartup": config.on_startup,
        "schedule": config.schedules.iter().map(schedule).collect::<Vec<_>>(),
        "kubernetes": config.kubernetes.iter().map(kubernetes).collect::<Vec<_>>(),
        "kubernetesValidating": config.validating.iter().map(admission).collect::<Vec<_>>(),
        "kubernetesMutating": config.mutating.iter().map(admission).collect::<Vec<_>>(),
        "kubernetesCustomResourceConversion": conversions.collect::<Vec<_>>(),
        "settings": {
            "executionMinInterval": settings.execution_min_interval.as_secs_f64(),
            "executionBurst": settings.execution_burst,
        },
    })
}

fn schedule(binding: &ScheduleBinding) -> Value {
    json!({
        "name": binding.name, "crontab": binding.crontab.as_str(), "allowFailure": binding.allow_failure,
        "includeSnapshotsFrom": binding.include_snapshots_from, "queue": binding.queue, "group": binding.group,
    })
}

fn kubernetes(binding: &KubernetesBinding) -> Value {
    let namespaces = match &binding.namespace {
        NamespaceSelector::All => json!("all"),
        NamespaceSelector::Names(names) => json!(names),
        NamespaceSelector::Labels(labels) => json!({ "labels": labels.to_string() }),
    };
    let fields = binding.field_selector.iter().map(ToString::to_string);
    json!({
        "name": binding.name, "apiVersion": binding.api_version, "kind": binding.kind,
        "events": binding.events.iter().map(|event| event.as_str()).collect::<Vec<_>>(),
        "executeHookOnSynchronization": binding.on_synchronization,
        "waitForSynchronization": binding.wait_for_synchronization,
        "keepFullObjectsInMemory": binding.keep_full_objects,
        "names": binding.names,
        "labelSelector": binding.label_selector.as_ref().map(ToString::to_string),
        "fieldSelector": fields.collect::<Vec<_>>(),
        "namespaces": namespaces,
        "jqFilter": binding.filter.as_ref().map(|filter| filter.source()),
        "allowFailure": binding.allow_failure, "includeSnapshotsFrom": binding.include_snapshots_from,
        "queue": binding.queue, "group": binding.group,
    })
}

fn admission(binding: &AdmissionBinding) -> Value {
    let selector =
        |selector: &Option<shell_operator::config::LabelSelector>| selector.as_ref().map(ToString::to_string);
    let rules = binding.rules.iter().map(|rule| {
        json!({
            "apiGroups": rule.api_groups, "apiVersions": rule.api_versions, "resources": rule.resources,
            "operations": rule.operations, "scope": rule.scope,
        })
    });
    json!({
        "name": binding.name, "failurePolicy": binding.failure_policy, "sideEffects": binding.side_effects,
        "timeoutSeconds": binding.timeout_seconds, "objectSelector": selector(&binding.object_selector),
        "namespaceSelector": selector(&binding.namespace_selector), "rules": rules.collect::<Vec<_>>(),
        "includeSnapshotsFrom": binding.include_snapshots_from, "group": binding.group,
    })
}
