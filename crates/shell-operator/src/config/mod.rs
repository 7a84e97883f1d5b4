//! The configuration that a hook prints when it is run with `--config`.
//!
//! [`HookConfig::parse`] reads version `v1` and the old form without a version. All problems of a configuration are found in one
//! pass, each with the path of its key. Obvious mistakes that the original accepts (a duplicate key, a second document) are
//! accepted here too, with a warning.

mod admission;
mod builder;
mod conversion;
mod fields;
mod groups;
mod kubernetes;
mod schedule;
mod selector;
mod settings;
mod text;
mod v0;
mod v1;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub use admission::{AdmissionBinding, AdmissionRule, MatchCondition};
pub use builder::{ConfigBuilder, Kubernetes, Schedule};
pub use conversion::{ConversionBinding, ConversionRule};
pub use kubernetes::{KubernetesBinding, NamespaceSelector, WatchEvent};
pub use selector::{FieldRequirement, LabelSelector, Requirement};
pub use settings::Settings;

use crate::schedule::Crontab;
use fields::Problems;

/// Name of the queue that bindings use when they name none.
pub const MAIN_QUEUE: &str = "main";

/// The form a configuration is written in; it decides the form of the binding contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfigVersion {
    /// No `configVersion`: the first releases of shell-operator.
    V0,
    /// `configVersion: v1`.
    #[default]
    V1,
}

/// A hook's bindings and settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookConfig {
    /// Form of the configuration.
    pub version: ConfigVersion,
    /// Position among the hooks that run at start.
    pub on_startup: Option<i64>,
    /// Limits of the hook's runs.
    pub settings: Settings,
    /// Runs by the clock.
    pub schedules: Vec<ScheduleBinding>,
    /// Runs on changes in the cluster.
    pub kubernetes: Vec<KubernetesBinding>,
    /// Answers to validating admission requests.
    pub validating: Vec<AdmissionBinding>,
    /// Answers to mutating admission requests.
    pub mutating: Vec<AdmissionBinding>,
    /// Conversions between versions of custom resources.
    pub conversions: Vec<ConversionBinding>,
    /// Accepted settings that are probably mistakes.
    pub warnings: Vec<String>,
}

/// One entry of `schedule`.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleBinding {
    /// Name in the binding context.
    pub name: String,
    /// When to run.
    pub crontab: Crontab,
    /// Whether a failed run is only logged.
    pub allow_failure: bool,
    /// Kubernetes bindings whose objects the hook gets.
    pub include_snapshots_from: Vec<String>,
    /// Queue of the runs.
    pub queue: String,
    /// Group that the binding belongs to.
    pub group: Option<String>,
}

/// Everything that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ConfigError(pub Vec<String>);

impl HookConfig {
    /// Reads what a hook printed for `--config`: YAML or JSON.
    pub fn parse(output: &str) -> Result<Self, ConfigError> {
        let problems = Problems::default();
        let config = text::read(output, &problems).map(|root| {
            let mut config = match text::version(&root, &problems) {
                Some(ConfigVersion::V1) => v1::read(&root, &problems),
                Some(ConfigVersion::V0) => v0::read(&root, &problems),
                None => Self::default(),
            };
            groups::check_names(&config, &problems);
            groups::merge(&mut config);
            config
        });
        let (errors, warnings) = problems.into_parts();
        match config {
            Some(config) if errors.is_empty() => Ok(Self { warnings, ..config }),
            _ => Err(ConfigError(errors)),
        }
    }

    /// Whether the hook answers webhooks.
    pub fn has_webhooks(&self) -> bool {
        !(self.validating.is_empty() && self.mutating.is_empty() && self.conversions.is_empty())
    }

    /// Queues that the bindings name, without `main`, each once.
    pub fn queues(&self) -> Vec<&str> {
        let mut names: Vec<&str> = (self.schedules.iter().map(|binding| binding.queue.as_str()))
            .chain(self.kubernetes.iter().map(|binding| binding.queue.as_str()))
            .filter(|name| *name != MAIN_QUEUE)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// A summary for the log: what the hook waits for.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        if let Some(order) = self.on_startup {
            parts.push(format!("OnStartup:{order}"));
        }
        let list = |title: &str, items: Vec<&str>| {
            (!items.is_empty()).then(|| format!("{title}: '{}'", items.join("', '")))
        };
        let crontabs = self.schedules.iter().map(|binding| binding.crontab.as_str()).collect();
        let kinds = self.kubernetes.iter().map(|binding| binding.kind.as_str()).collect();
        let validating = self.validating.iter().map(|binding| binding.name.as_str()).collect();
        let mutating = self.mutating.iter().map(|binding| binding.name.as_str()).collect();
        let crds = self.conversions.iter().map(|binding| binding.crd_name.as_str()).collect();
        parts.extend(list("Schedules", crontabs));
        parts.extend(list("Watch k8s kinds", kinds));
        parts.extend(list("Validate k8s kinds", validating));
        parts.extend(list("Mutate k8s kinds", mutating));
        parts.extend(list("Conversion for crds", crds));
        if self.settings.execution_min_interval > Duration::ZERO {
            let settings = &self.settings;
            parts.push(format!("Rate: {:?}/{}", settings.execution_min_interval, settings.execution_burst));
        }
        parts.join(", ")
    }
}

/// A compiled filter, shared by everything that needs it.
pub type SharedFilter = Arc<crate::jq::Filter>;
