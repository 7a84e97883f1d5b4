//! Published manifests, which capabilities adapt to the cluster: their documents, or the reason why they are missing.

use std::{collections::BTreeMap, sync::Arc};

use kk_artifact::{Component, Error};
use kk_config::ImageName;
use kk_engine::{Finding, Severity};
use serde_json::Value;

use crate::base::yaml;

/// A published manifest that a capability needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PublishedFile {
    /// The component to which it belongs.
    pub component: Component,
    /// The name of the file.
    pub name: &'static str,
}

/// The documents of a manifest, or the finding that reports why they are missing.
pub(crate) type Documents = Result<Arc<[Value]>, Finding>;

/// The published manifests of a cluster, by component.
#[derive(Clone, Default)]
pub(crate) struct Published(BTreeMap<Component, Documents>);

impl Published {
    /// Adds the manifest of a component.
    pub(crate) fn add(&mut self, component: Component, documents: Documents) {
        self.0.insert(component, documents);
    }

    /// The documents of a component's manifest. `None` if it is missing, or if the command does not need it.
    pub(crate) fn documents(&self, component: Component) -> Option<&[Value]> {
        self.0.get(&component)?.as_deref().ok()
    }

    /// The components whose manifests the cluster needs.
    pub(crate) fn components(&self) -> impl Iterator<Item = Component> {
        self.0.keys().copied()
    }

    /// Why manifests are missing.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &Finding> {
        self.0.values().filter_map(|documents| documents.as_ref().err())
    }

    /// The images of all manifests.
    pub(crate) fn images(&self) -> Vec<ImageName> {
        let documents = self.0.values().filter_map(|documents| documents.as_deref().ok());
        documents.flat_map(image_names).filter_map(|name| name.parse().ok()).collect()
    }
}

impl PublishedFile {
    /// The documents in the content of the file. `version` is for messages.
    pub(crate) fn read(self, version: &str, content: &[u8]) -> Documents {
        let refuse = |why: String| {
            let message = format!("{} of {} {version} cannot be used: {why}", self.name, self.component);
            problem(message, format!("use another version in spec.components.{}", self.component))
        };
        let text = std::str::from_utf8(content).map_err(|error| refuse(error.to_string()))?;
        let documents = yaml::parse_documents(text).map_err(&refuse)?;
        if let Some(name) =
            image_names(&documents).into_iter().find(|name| name.parse::<ImageName>().is_err())
        {
            return Err(refuse(format!("`{name}` is not the full name of an image")));
        }
        Ok(documents.into())
    }

    /// The finding for a file that cannot be fetched.
    pub(crate) fn missing(self, version: &str, error: &Error) -> Finding {
        let message = format!("the manifest of {} {version} is missing: {error}", self.component);
        problem(message, error.hint().unwrap_or_default())
    }
}

fn problem(message: String, hint: String) -> Finding {
    Finding { severity: Severity::Error, host: None, message, hint }
}

/// The images of the containers in some documents, without repetitions.
pub(crate) fn image_names(documents: &[Value]) -> Vec<&str> {
    let mut names = Vec::new();
    for document in documents.iter().filter(|document| has_pods(document)) {
        collect(document, &mut names);
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn collect<'v>(value: &'v Value, names: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if let (true, Some(containers)) = (CONTAINERS.contains(&key.as_str()), value.as_array()) {
                    names.extend(containers.iter().filter_map(|one| one.get("image")?.as_str()));
                }
                collect(value, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

/// Replaces the names of images.
pub(crate) fn rename_images(documents: &mut [Value], new: &dyn Fn(&str) -> String) {
    documents.iter_mut().filter(|document| has_pods(document)).for_each(|document| rename(document, new));
}

fn rename(value: &mut Value, new: &dyn Fn(&str) -> String) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if let (true, Some(containers)) = (CONTAINERS.contains(&key.as_str()), value.as_array_mut()) {
                    for image in containers.iter_mut().filter_map(|one| one.get_mut("image")) {
                        if let Some(name) = image.as_str().map(new) {
                            *image = name.into();
                        }
                    }
                }
                rename(value, new);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, new)),
        _ => {}
    }
}

const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// `CustomResourceDefinitions` are skipped: they are large, and their schemas may describe containers.
fn has_pods(document: &Value) -> bool {
    document["kind"] != "CustomResourceDefinition"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FILE: PublishedFile = PublishedFile { component: Component::Calico, name: "calico.yaml" };

    #[test]
    fn images_of_all_containers_are_found_and_renamed() {
        let spec = json!({"containers": [{"image": "a.io/b:1"}, {"name": "none"}], "initContainers": [{"image": "a.io/c:1"}]});
        let schema =
            json!({"kind": "CustomResourceDefinition", "spec": {"containers": [{"image": "a.io/d:1"}]}});
        let mut documents = [
            json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}}),
            json!({"kind": "Pod", "spec": spec}),
            schema.clone(),
        ];
        assert_eq!(image_names(&documents), ["a.io/b:1", "a.io/c:1"]);
        rename_images(&mut documents, &|name| name.replace("a.io", "hub"));
        assert_eq!(image_names(&documents), ["hub/b:1", "hub/c:1"]);
        assert_eq!(documents[2], schema);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_the_reason() {
        let pod =
            |image: &str| format!("# x\n---\n---\nkind: Pod\nspec: {{containers: [{{image: {image}}}]}}\n");
        assert_eq!(FILE.read("1", pod("a.io/b:1").as_bytes()).unwrap().len(), 1);
        for (content, why) in [
            (pod("b:1").into_bytes(), "`b:1` is not the full name of an image"),
            (b"a: [".to_vec(), "calico.yaml of calico 1 cannot be used"),
            (vec![0xff], "utf-8"),
        ] {
            let finding = FILE.read("1", &content).unwrap_err();
            assert!(finding.message.contains(why), "{finding:?}");
        }
    }
}
