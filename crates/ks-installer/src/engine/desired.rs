//! Determines which components a spec enables.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Failure, Reason};
use crate::payload::{Component, Payload, extension};

/// The components that a spec wants in the cluster.
#[derive(Debug, Default)]
pub struct Desired {
    /// Wanted components, including the shared components that they need.
    pub wanted: BTreeSet<String>,
    /// Wanted components that cannot be installed, with the reason.
    pub refused: BTreeMap<String, Failure>,
}

/// The enabled components and their dependencies.
pub fn desired(payload: &Payload, spec: &Value, kubernetes: &str) -> Desired {
    let cluster = json!({ "version": kubernetes, "minor": minor(kubernetes) });
    let context = minijinja::Value::from_serialize(json!({ "spec": spec, "cluster": cluster }));
    let mut desired = Desired::default();
    for (name, component) in payload.components() {
        match component.enabled.holds(&context) {
            Ok(true) => drop(desired.wanted.insert(name.clone())),
            Ok(false) => {}
            Err(why) => {
                // It is unknown whether the component is wanted, so its objects stay.
                desired.wanted.insert(name.clone());
                desired.refused.insert(name.clone(), Failure::new(Reason::RenderFailed, why));
            }
        }
    }
    let mut next: Vec<String> = desired.wanted.iter().cloned().collect();
    while let Some(name) = next.pop() {
        let Some(component) = payload.components().get(&name) else { continue };
        for dependency in &component.depends_on {
            if desired.wanted.contains(dependency) {
                continue;
            }
            if payload.components().get(dependency).is_some_and(Component::is_shared) {
                desired.wanted.insert(dependency.clone());
                next.push(dependency.clone());
            } else {
                let message = format!("{name} needs {dependency}, which is switched off");
                desired.refused.insert(name.clone(), Failure::new(Reason::DependencyDisabled, message));
            }
        }
    }
    for (name, component) in payload.components().iter().filter(|(name, _)| desired.wanted.contains(*name)) {
        let holds = component.refused.iter().map(|refusal| Ok((refusal, refusal.when.holds(&context)?)));
        let failure = match holds.collect::<Result<Vec<_>, String>>() {
            Err(why) => Some(Failure::new(Reason::RenderFailed, why)),
            Ok(found) => found.iter().find(|(_, holds)| *holds).map(|(refusal, _)| {
                Failure::new(Reason::NotSupported, format!("{} (Kubernetes {kubernetes})", refusal.why))
            }),
        };
        if let Some(failure) = failure {
            desired.refused.entry(name.clone()).or_insert(failure);
        }
    }
    without_definition(payload, spec, &mut desired);
    desired
}

/// Reports components that the spec enables and the payload does not contain.
fn without_definition(payload: &Payload, spec: &Value, desired: &mut Desired) {
    for path in ks_spec::switches() {
        let is_on = path.split('.').try_fold(spec, |at, key| at.get(key)) == Some(&Value::Bool(true));
        let asks = |component: &Component| component.enabled.mentions(&format!("spec.{path}"));
        if !is_on || payload.components().values().any(asks) {
            continue;
        }
        let name = path.trim_end_matches(".enabled").to_owned();
        no_definition(&name, &path, desired);
    }
    for (name, settings) in spec["extensions"].as_object().into_iter().flatten() {
        let is_on = settings[extension::ENABLED] == true;
        let has = |component: &Component| component.extensions().any(|own| own == name);
        if is_on && !payload.components().values().any(has) {
            no_definition(name, &format!("extensions.{name}.{}", extension::ENABLED), desired);
        }
    }
}

fn no_definition(name: &str, path: &str, desired: &mut Desired) {
    let message = format!(
        "{path} is true, and the payload has no component for it\nhint: set it to false, or take a payload that has it"
    );
    desired.wanted.insert(name.to_owned());
    desired.refused.insert(name.to_owned(), Failure::new(Reason::NoDefinition, message));
}

/// The minor version of Kubernetes; 0 if the text contains none.
fn minor(kubernetes: &str) -> u32 {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    kubernetes.split('.').nth(1).map(digits).and_then(|minor| minor.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::payload::build;

    fn refused(component: &str, spec: &Value, kubernetes: &str) -> Vec<String> {
        let dir = TempDir::new().unwrap();
        std::fs::create_dir_all(dir.path().join("components")).unwrap();
        std::fs::write(dir.path().join("components/a.yaml"), component).unwrap();
        let payload = build(dir.path(), "1", "v3.4.1").unwrap();
        let desired = desired(&payload, spec, kubernetes);
        desired.refused.iter().map(|(name, failure)| format!("{name} {}", failure.reason.as_str())).collect()
    }

    #[test]
    fn what_cannot_be_on_this_kubernetes_is_refused() {
        let component = "enabled: spec.gatekeeper.enabled\nsources: []\n\
            refused: [{when: cluster.minor >= 25 and spec.gatekeeper.enabled, why: it is too old}]\n";
        for (on, kubernetes, expected) in [
            (true, "v1.36.0", &["a NotSupported"][..]),
            (true, "v1.25.0-rc.1", &["a NotSupported"]),
            (true, "v1.24.17+k3s1", &[]),
            (false, "v1.36.0", &[]),
        ] {
            let spec = json!({"gatekeeper": {"enabled": on}});
            assert_eq!(refused(component, &spec, kubernetes), expected, "{kubernetes}");
        }
    }

    #[test]
    fn what_is_switched_on_and_has_no_definition_is_refused_by_its_name() {
        let component = "enabled: spec.devops.enabled or true\nsources: []\n";
        for (spec, expected) in [
            (json!({"devops": {"enabled": true}, "events": {"enabled": false}}), &[][..]),
            (json!({"events": {"enabled": true}}), &["events NoDefinition"]),
            (json!({"openpitrix": {"store": {"enabled": true}}}), &["openpitrix.store NoDefinition"]),
            (json!({"network": {"networkpolicy": {"enabled": true}}}), &[]),
            (json!({"nobody": {"enabled": true}}), &[]),
            (
                json!({"extensions": {"gateway": {"enabled": true}, "vector": {"version": "1"}}}),
                &["gateway NoDefinition"],
            ),
        ] {
            assert_eq!(refused(component, &spec, "v1.36.0"), expected, "{spec}");
        }
    }
}
