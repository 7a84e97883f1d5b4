//! Checks across bindings, and what a group adds to `includeSnapshotsFrom`.

use super::HookConfig;
use super::fields::Problems;

/// Reports snapshots that no binding, or more than one, provides, and warns about names used twice.
pub(super) fn check_names(config: &HookConfig, problems: &Problems) {
    let names: Vec<&str> = config.kubernetes.iter().map(|binding| binding.name.as_str()).collect();
    for (position, name) in names.iter().enumerate() {
        if names[..position].contains(name) {
            let text = format!("the name '{name}' is used by another binding too; give each its own `name`");
            problems.warn(&format!("kubernetes[{position}]"), text);
        }
    }
    let check = |path: &str, wanted: &[String]| {
        for name in wanted {
            let text = match names.iter().filter(|known| *known == name).count() {
                0 => format!("there is no kubernetes binding named '{name}'"),
                1 => continue,
                _ => format!("more than one kubernetes binding is named '{name}'"),
            };
            problems.error(&format!("{path}.includeSnapshotsFrom"), text);
        }
    };
    for (i, binding) in config.schedules.iter().enumerate() {
        check(&format!("schedule[{i}]"), &binding.include_snapshots_from);
    }
    for (i, binding) in config.kubernetes.iter().enumerate() {
        check(&format!("kubernetes[{i}]"), &binding.include_snapshots_from);
    }
    for (i, binding) in config.validating.iter().enumerate() {
        check(&format!("kubernetesValidating[{i}]"), &binding.include_snapshots_from);
    }
    for (i, binding) in config.mutating.iter().enumerate() {
        check(&format!("kubernetesMutating[{i}]"), &binding.include_snapshots_from);
    }
    for (i, binding) in config.conversions.iter().enumerate() {
        check(&format!("kubernetesCustomResourceConversion[{i}]"), &binding.include_snapshots_from);
    }
    warn_empty_groups(config, problems);
}

fn warn_empty_groups(config: &HookConfig, problems: &Problems) {
    for (i, binding) in config.schedules.iter().enumerate() {
        let Some(group) = &binding.group else { continue };
        if !config.kubernetes.iter().any(|other| other.group.as_ref() == Some(group)) {
            let text = format!("the group '{group}' has no kubernetes binding, so it brings no snapshots");
            problems.warn(&format!("schedule[{i}].group"), text);
        }
    }
}

/// Adds, for each binding with a group, the kubernetes bindings of that group to its snapshots.
pub(super) fn merge(config: &mut HookConfig) {
    let members: Vec<(String, String)> = config
        .kubernetes
        .iter()
        .filter_map(|binding| Some((binding.group.clone()?, binding.name.clone())))
        .collect();
    let add = |group: Option<&String>, included: &mut Vec<String>| {
        for (_, name) in members.iter().filter(|(member_of, _)| Some(member_of) == group) {
            if !included.contains(name) {
                included.push(name.clone());
            }
        }
    };
    for binding in &mut config.schedules {
        add(binding.group.as_ref(), &mut binding.include_snapshots_from);
    }
    for binding in &mut config.kubernetes {
        add(binding.group.as_ref(), &mut binding.include_snapshots_from);
    }
    for binding in config.validating.iter_mut().chain(&mut config.mutating) {
        add(binding.group.as_ref(), &mut binding.include_snapshots_from);
    }
    for binding in &mut config.conversions {
        add(binding.group.as_ref(), &mut binding.include_snapshots_from);
    }
}
