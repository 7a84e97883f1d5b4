//! Checks the objects that must exist before a component is applied. A missing one is reported at once, and not after minutes of
//! pods that cannot start. It also lists the objects that controllers create for a component.

use serde_json::{Value, json};

use super::{Engine, Failure, Reason};
use crate::api::Id;
use crate::payload::{Component, Expression, Requirement};

impl Engine {
    /// Checks all requirements of a component.
    pub(super) async fn check_requirements(
        &self,
        component: &Component,
        spec: &Value,
    ) -> Result<(), Failure> {
        for requirement in &component.requires {
            let asked = holds(requirement.when.as_ref(), &json!({ "spec": spec }))?;
            if asked && !self.is_met(requirement).await? {
                let id = id(requirement);
                let what = if id.name.is_empty() {
                    format!("there is no {} as it is needed", id.kind)
                } else {
                    format!("{id} is not there")
                };
                let message = format!("{what}\nhint: {}", requirement.hint);
                return Err(Failure::new(Reason::RequirementMissing, message));
            }
        }
        Ok(())
    }

    async fn is_met(&self, requirement: &Requirement) -> Result<bool, Failure> {
        let id = id(requirement);
        let found = if id.name.is_empty() {
            self.api.list(&id, "limit=500").await.map_err(Failure::at(&id))?
        } else {
            self.api.get(&id).await.map_err(Failure::at(&id))?.into_iter().collect()
        };
        for object in found {
            if holds(requirement.matches.as_ref(), &json!({ "object": object }))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Objects that controllers create for a component with this spec.
pub(super) fn awaited(component: &Component, spec: &Value) -> Result<Vec<Id>, Failure> {
    let mut ids = Vec::new();
    for one in &component.waits_for {
        if holds(one.when.as_ref(), &json!({ "spec": spec }))? {
            ids.push(Id::new(&one.api_version, &one.kind, &one.namespace, &one.name));
        }
    }
    Ok(ids)
}

fn holds(expression: Option<&Expression>, context: &Value) -> Result<bool, Failure> {
    let Some(expression) = expression else { return Ok(true) };
    let holds = expression.holds(&minijinja::Value::from_serialize(context));
    holds.map_err(|why| Failure::new(Reason::RenderFailed, why))
}

fn id(requirement: &Requirement) -> Id {
    Id::new(&requirement.api_version, &requirement.kind, &requirement.namespace, &requirement.name)
}
