//! Projects: namespaces of users that belong to a workspace of `KubeSphere`.

use serde_json::{Value, json};

use super::{Engine, Failure};
use crate::api::{ApiError, Id};

/// API group and kind of workspaces.
const GROUP: &str = "tenant.kubesphere.io/";
const KIND: &str = "Workspace";
/// Says of which workspace a namespace is. As long as it does, `ks-controller-manager` makes the workspace its owner again.
const LABEL: &str = "kubesphere.io/workspace";

impl Engine {
    /// Takes all namespaces out of their workspaces when these are about to go: otherwise Kubernetes deletes them with their owner,
    /// and what users have in them.
    pub(super) async fn leave_projects(&self, kinds: &[Id]) -> Result<(), Failure> {
        if !kinds.iter().any(|kind| is_workspace(&kind.api_version, &kind.kind)) {
            return Ok(());
        }
        let all = Id::new("v1", "Namespace", "", "");
        for namespace in self.api.list(&all, "").await.map_err(Failure::at(&all))? {
            let Some(change) = without_workspace(&namespace) else { continue };
            let id = Id::of(&namespace);
            match self.api.merge(&id, "", &change).await {
                Err(ApiError::Refused { code: 404, .. }) => {}
                other => drop(other.map_err(Failure::at(&id))?),
            }
        }
        Ok(())
    }
}

/// The change that takes a namespace out of its workspace, if it is in one.
fn without_workspace(namespace: &Value) -> Option<Value> {
    let metadata = &namespace["metadata"];
    let owners: Vec<&Value> = metadata["ownerReferences"].as_array().into_iter().flatten().collect();
    let is_other = |owner: &&&Value| {
        let text = |key: &str| owner[key].as_str().unwrap_or_default();
        !is_workspace(text("apiVersion"), text("kind"))
    };
    let others: Vec<&Value> = owners.iter().filter(is_other).copied().collect();
    let is_in_one = others.len() < owners.len() || metadata["labels"][LABEL].is_string();
    is_in_one.then(|| json!({ "metadata": { "labels": { LABEL: null }, "ownerReferences": others } }))
}

fn is_workspace(api_version: &str, kind: &str) -> bool {
    api_version.starts_with(GROUP) && kind == KIND
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::of_nobody(json!({"name": "a", "labels": {"x": "y"}}), None)]
    #[case::of_another(json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Workspace"}]}), None)]
    #[case::labelled(json!({"labels": {LABEL: "w"}}), Some(json!([])))]
    #[case::owned(
        json!({"ownerReferences": [{"apiVersion": "tenant.kubesphere.io/v1alpha1", "kind": "Workspace"}, {"kind": "Other"}]}),
        Some(json!([{"kind": "Other"}]))
    )]
    fn a_namespace_leaves_its_workspace_only(#[case] metadata: Value, #[case] owners: Option<Value>) {
        let change = without_workspace(&json!({ "metadata": metadata }));
        let expected =
            owners.map(|owners| json!({"metadata": {"labels": {LABEL: null}, "ownerReferences": owners}}));
        assert_eq!(change, expected);
    }
}
