//! Changes to published documents. A change whose path a document lacks is an error, because a release that moved the path would
//! otherwise lose the setting without notice.

use std::fmt;

use serde_json::{Map, Value, json};

/// A path that a change needs and that a document lacks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it has no {}", self.0)
    }
}

/// Documents that are changed. The order of documents and keys stays.
pub(crate) struct Overlay<'a> {
    documents: &'a mut Vec<Value>,
}

impl<'a> Overlay<'a> {
    pub(crate) fn new(documents: &'a mut Vec<Value>) -> Self {
        Self { documents }
    }

    /// The document of a kind and name.
    pub(crate) fn object(&mut self, kind: &str, name: &str) -> Result<Place<'_>, Missing> {
        let position = self.position(kind, name)?;
        Ok(Place { value: &mut self.documents[position], path: format!("{kind} {name}") })
    }

    /// Adds a document after another.
    pub(crate) fn insert_after(&mut self, kind: &str, name: &str, document: Value) -> Result<(), Missing> {
        let position = self.position(kind, name)?;
        self.documents.insert(position + 1, document);
        Ok(())
    }

    fn position(&self, kind: &str, name: &str) -> Result<usize, Missing> {
        let is_it = |document: &Value| document["kind"] == kind && document["metadata"]["name"] == name;
        self.documents.iter().position(is_it).ok_or_else(|| Missing(format!("{kind} {name}")))
    }
}

/// A value in a document.
pub(crate) struct Place<'a> {
    value: &'a mut Value,
    path: String,
}

impl Place<'_> {
    /// The value at these keys, all of which must exist.
    pub(crate) fn at(&mut self, keys: &str) -> Result<Place<'_>, Missing> {
        let path = format!("{}/{keys}", self.path);
        match self.value.pointer_mut(&format!("/{keys}")) {
            Some(value) => Ok(Place { value, path }),
            None => Err(Missing(path)),
        }
    }

    /// The item of a list with this name.
    pub(crate) fn named(&mut self, name: &str) -> Result<Place<'_>, Missing> {
        let path = format!("{}[{name}]", self.path);
        let items = self.value.as_array_mut().into_iter().flatten();
        match items.into_iter().find(|item| item["name"] == name) {
            Some(value) => Ok(Place { value, path }),
            None => Err(Missing(path)),
        }
    }

    /// The value as text.
    pub(crate) fn text(&self) -> String {
        self.value.to_string()
    }

    /// Replaces the value.
    pub(crate) fn replace(&mut self, value: impl Into<Value>) {
        *self.value = value.into();
    }

    /// Adds or replaces keys of a map.
    pub(crate) fn merge(&mut self, keys: impl IntoIterator<Item = (String, Value)>) -> Result<(), Missing> {
        let Some(map) = self.value.as_object_mut() else { return Err(Missing(self.path.clone())) };
        for (key, value) in keys {
            map.insert(key, value);
        }
        Ok(())
    }

    /// Adds annotations to metadata, which may have none yet.
    pub(crate) fn annotate(&mut self, key: &str, value: &str) -> Result<(), Missing> {
        let Some(map) = self.value.as_object_mut() else { return Err(Missing(self.path.clone())) };
        let annotations = map.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
        Place { value: annotations, path: self.path.clone() }.merge([(key.to_owned(), value.into())])
    }

    /// Replaces a part of a text, which must contain it exactly once.
    pub(crate) fn replace_text(&mut self, part: &str, by: &str) -> Result<(), Missing> {
        let text = self.value.as_str().filter(|text| text.matches(part).count() == 1);
        let text = text.ok_or_else(|| Missing(format!("{} with {part} in it once", self.path)))?;
        *self.value = text.replace(part, by).into();
        Ok(())
    }

    /// Removes an item of a list of texts.
    pub(crate) fn remove_item(&mut self, item: &str) -> Result<(), Missing> {
        let path = || Missing(format!("{} with {item}", self.path));
        let position = self.value.as_array().and_then(|items| items.iter().position(|one| *one == item));
        let position = position.ok_or_else(path)?;
        self.value.as_array_mut().expect("it has the item").remove(position);
        Ok(())
    }

    /// Changes a variable of a container, which must have it.
    pub(crate) fn change_variable(&mut self, name: &str, value: &str) -> Result<(), Missing> {
        self.at("env")?.named(name)?.at("value")?.replace(value);
        Ok(())
    }

    /// Adds a variable to a container, or changes it.
    pub(crate) fn set_variable(&mut self, name: &str, value: &str) -> Result<(), Missing> {
        let variables = self.at("env")?;
        let Some(list) = variables.value.as_array_mut() else { return Err(Missing(variables.path)) };
        list.retain(|variable| variable["name"] != name);
        list.push(json!({"name": name, "value": value}));
        Ok(())
    }

    /// Checks that a container gets the variables of a `ConfigMap`.
    pub(crate) fn requires_variables_of(&mut self, config_map: &str) -> Result<(), Missing> {
        let sources = self.at("envFrom")?;
        let has = |source: &Value| source["configMapRef"]["name"] == config_map;
        if sources.value.as_array().is_some_and(|all| all.iter().any(has)) {
            return Ok(());
        }
        Err(Missing(format!("{} with {config_map}", sources.path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> Vec<Value> {
        let container = json!({"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "command": ["x", "-y"], "envFrom": [{"configMapRef": {"name": "m"}}]});
        vec![
            json!({"kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"text": "one two"}}),
            json!({"kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {"containers": [container], "metadata": {}}}),
        ]
    }

    #[test]
    fn values_change_where_they_are() {
        let mut changed = documents();
        let mut overlay = Overlay::new(&mut changed);
        overlay
            .object("ConfigMap", "m")
            .unwrap()
            .at("data/text")
            .unwrap()
            .replace_text("two", "three")
            .unwrap();
        overlay
            .insert_after("ConfigMap", "m", json!({"kind": "ConfigMap", "metadata": {"name": "n"}}))
            .unwrap();
        let mut set = overlay.object("DaemonSet", "d").unwrap();
        set.at("spec/metadata").unwrap().annotate("k", "v").unwrap();
        let mut containers = set.at("spec/containers").unwrap();
        let mut container = containers.named("c").unwrap();
        container.requires_variables_of("m").unwrap();
        container.change_variable("A", "3").unwrap();
        container.set_variable("B", "4").unwrap();
        container.set_variable("C", "5").unwrap();
        container.at("command").unwrap().remove_item("-y").unwrap();
        let container = json!({"name": "c", "env": [{"name": "A", "value": "3"}, {"name": "B", "value": "4"}, {"name": "C", "value": "5"}],
            "command": ["x"], "envFrom": [{"configMapRef": {"name": "m"}}]});
        assert_eq!(
            changed,
            [
                json!({"kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"text": "one three"}}),
                json!({"kind": "ConfigMap", "metadata": {"name": "n"}}),
                json!({"kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {"containers": [container], "metadata": {"annotations": {"k": "v"}}}}),
            ]
        );
    }

    #[test]
    fn a_path_that_a_document_lacks_is_named() {
        type Change = fn(&mut Overlay<'_>) -> Result<(), Missing>;
        let cases: [(Change, &str); 9] = [
            (|all| all.object("DaemonSet", "other").map(drop), "DaemonSet other"),
            (|all| all.insert_after("Service", "s", Value::Null), "Service s"),
            (|all| all.object("DaemonSet", "d")?.at("spec/template").map(drop), "DaemonSet d/spec/template"),
            (
                |all| all.object("DaemonSet", "d")?.at("spec/containers")?.named("x").map(drop),
                "DaemonSet d/spec/containers[x]",
            ),
            (
                |all| {
                    all.object("DaemonSet", "d")?.at("spec/containers")?.named("c")?.change_variable("D", "")
                },
                "DaemonSet d/spec/containers[c]/env[D]",
            ),
            (
                |all| {
                    all.object("DaemonSet", "d")?
                        .at("spec/containers")?
                        .named("c")?
                        .requires_variables_of("n")
                },
                "DaemonSet d/spec/containers[c]/envFrom with n",
            ),
            (
                |all| {
                    all.object("DaemonSet", "d")?
                        .at("spec/containers")?
                        .named("c")?
                        .at("command")?
                        .remove_item("-z")
                },
                "DaemonSet d/spec/containers[c]/command with -z",
            ),
            (
                |all| all.object("ConfigMap", "m")?.at("data/text")?.replace_text("o", "x"),
                "ConfigMap m/data/text with o in it once",
            ),
            (|all| all.object("ConfigMap", "m")?.at("data/text")?.merge([]), "ConfigMap m/data/text"),
        ];
        for (change, path) in cases {
            let mut documents = documents();
            let missing = change(&mut Overlay::new(&mut documents)).unwrap_err();
            assert_eq!(missing.to_string(), format!("it has no {path}"));
        }
    }
}
