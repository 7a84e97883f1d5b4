//! Handles projects: namespaces of users that belong to a workspace of `KubeSphere`.

use serde_json::{Value, json};

use super::{Engine, Failure, Inventory, Origin};
use crate::api::Id;

/// API group and kind of workspaces.
const GROUP: &str = "tenant.kubesphere.io/";
const KIND: &str = "Workspace";
/// Kind from which `ks-controller-manager` creates a workspace of the same name.
const TEMPLATE: &str = "WorkspaceTemplate";
/// Label with the workspace of a namespace. While it is set, `ks-controller-manager` makes the workspace the owner of the
/// namespace again.
const LABEL: &str = "kubesphere.io/workspace";

impl Engine {
    /// Removes namespaces from workspaces that are about to be deleted. Otherwise Kubernetes would delete the namespaces with
    /// their owner, including data of users. If the kind is removed, this applies to all workspaces, otherwise to those that the
    /// component created.
    pub(super) async fn leave_projects(&self, kinds: &[Id], inventory: &Inventory) -> Result<(), Failure> {
        let all = kinds.iter().any(|kind| is_workspace(&kind.api_version, &kind.kind));
        let goes =
            |id: &&Id| id.api_version.starts_with(GROUP) && [KIND, TEMPLATE].contains(&id.kind.as_str());
        let made = inventory.objects.iter().filter(|entry| entry.origin == Origin::Created);
        let ids = made.map(|entry| &entry.id);
        let going: Vec<&str> = ids.filter(goes).map(|id| id.name.as_str()).collect();
        if !all && going.is_empty() {
            return Ok(());
        }
        let namespaces = Id::new("v1", "Namespace", "", "");
        for namespace in self.api.list(&namespaces, "").await.map_err(Failure::at(&namespaces))? {
            let leaves = |workspace: &str| all || going.contains(&workspace);
            let Some(change) = without_workspace(&namespace, leaves) else { continue };
            let id = Id::of(&namespace);
            match self.api.merge(&id, "", &change).await {
                Err(error) if error.is_not_found() => {}
                other => drop(other.map_err(Failure::at(&id))?),
            }
        }
        Ok(())
    }
}

/// The change that removes a namespace from its workspace, or `None` if its workspace stays.
fn without_workspace(namespace: &Value, leaves: impl Fn(&str) -> bool) -> Option<Value> {
    let metadata = &namespace["metadata"];
    let owners: Vec<&Value> = metadata["ownerReferences"].as_array().into_iter().flatten().collect();
    let stays = |owner: &&&Value| !(owns(owner) && owner["name"].as_str().is_some_and(&leaves));
    let others: Vec<&Value> = owners.iter().filter(stays).copied().collect();
    let goes = others.len() < owners.len() || metadata["labels"][LABEL].as_str().is_some_and(&leaves);
    goes.then(|| json!({ "metadata": { "labels": { LABEL: null }, "ownerReferences": others } }))
}

/// Whether an owner of an object is a workspace.
pub(super) fn owns(owner: &Value) -> bool {
    let text = |key: &str| owner[key].as_str().unwrap_or_default();
    is_workspace(text("apiVersion"), text("kind"))
}

fn is_workspace(api_version: &str, kind: &str) -> bool {
    api_version.starts_with(GROUP) && kind == KIND
}

#[cfg(test)]
mod tests {

    use super::*;

    fn owner(name: &str) -> Value {
        json!({"apiVersion": "tenant.kubesphere.io/v1alpha1", "kind": "Workspace", "name": name})
    }

    #[test]
    fn a_namespace_leaves_its_workspace_only() {
        for (case, metadata, owners) in [
            ("of_nobody", json!({"name": "a", "labels": {"x": "y"}}), None),
            ("of_another", json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Workspace"}]}), None),
            ("labelled", json!({"labels": {LABEL: "w"}}), Some(json!([]))),
            (
                "in_one_that_stays",
                json!({"labels": {LABEL: "other"}, "ownerReferences": [owner("other")]}),
                None,
            ),
            (
                "owned",
                json!({"ownerReferences": [owner("w"), {"kind": "Other"}]}),
                Some(json!([{"kind": "Other"}])),
            ),
        ] {
            let change = without_workspace(&json!({ "metadata": metadata }), |workspace| workspace == "w");
            let expected = owners
                .map(|owners| json!({"metadata": {"labels": {LABEL: null}, "ownerReferences": owners}}));
            assert_eq!(change, expected, "{case}");
        }
    }
}
