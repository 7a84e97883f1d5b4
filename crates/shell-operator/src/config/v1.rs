//! `configVersion: v1`.

use serde_json::Value;

use super::fields::{Fields, Problems};
use super::{ConfigVersion, HookConfig, admission, conversion, kubernetes, schedule, settings};

const KEYS: [&str; 8] = [
    "configVersion",
    "onStartup",
    "schedule",
    "kubernetes",
    "kubernetesValidating",
    "kubernetesMutating",
    "kubernetesCustomResourceConversion",
    "settings",
];

pub(super) fn read(root: &Value, problems: &Problems) -> HookConfig {
    let Some(fields) = Fields::new("", root, problems) else { return HookConfig::default() };
    fields.only(&KEYS);
    if fields.keys().all(|key| key == "configVersion") {
        problems.error("", "the configuration has no binding");
    }
    HookConfig {
        version: ConfigVersion::V1,
        on_startup: fields.integer("onStartup"),
        settings: settings::read(&fields),
        schedules: items(&fields, "schedule", schedule::read),
        kubernetes: items(&fields, "kubernetes", kubernetes::read),
        validating: admission::read_validating(&fields),
        mutating: items(&fields, "kubernetesMutating", admission::read),
        conversions: items(&fields, "kubernetesCustomResourceConversion", conversion::read),
        warnings: Vec::new(),
    }
}

/// Reads each mapping of the list under `key`.
pub(super) fn items<T>(fields: &Fields, key: &str, read: impl Fn(&Fields) -> Option<T>) -> Vec<T> {
    fields
        .filled_list(key)
        .iter()
        .filter_map(|(path, item)| read(&Fields::new(path, item, fields.problems)?))
        .collect()
}
