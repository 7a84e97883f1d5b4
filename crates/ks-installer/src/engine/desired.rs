//! Which components a spec asks for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Failure, Reason};
use crate::payload::{Component, Payload};

/// What shall be there.
#[derive(Debug, Default)]
pub struct Desired {
    /// Components that are wanted, parts that these need included.
    pub wanted: BTreeSet<String>,
    /// Wanted components that cannot be there, and why.
    pub refused: BTreeMap<String, Failure>,
}

/// The components that are switched on, and what they need.
pub fn desired(payload: &Payload, spec: &Value) -> Desired {
    let context = minijinja::Value::from_serialize(json!({ "spec": spec }));
    let mut desired = Desired::default();
    for (name, component) in payload.components().iter().filter(|(_, component)| !component.is_shared()) {
        match component.enabled.holds(&context) {
            Ok(true) => drop(desired.wanted.insert(name.clone())),
            Ok(false) => {}
            Err(why) => {
                // Nobody knows whether it is wanted: what is there stays.
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
    desired
}
