//! Identifies an object.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Kind, namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Id {
    /// API version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Id {
    /// Creates an identifier from its parts.
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let [api_version, kind, namespace, name] = [api_version, kind, namespace, name].map(str::to_owned);
        Self { api_version, kind, namespace, name }
    }

    /// The identifier of an object.
    pub fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
        }
    }
}

impl Id {
    /// Whether both identify the same object, perhaps in different versions of its API.
    pub fn is_same_object(&self, other: &Self) -> bool {
        let group = |id: &Self| id.api_version.split_once('/').map(|(group, _)| group.to_owned());
        group(self) == group(other)
            && (&self.kind, &self.namespace, &self.name) == (&other.kind, &other.namespace, &other.name)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = [self.namespace.as_str(), self.name.as_str()];
        let place: Vec<&str> = place.into_iter().filter(|part| !part.is_empty()).collect();
        // The identifier of all objects of a kind has no name.
        let space = if place.is_empty() { "" } else { " " };
        write!(formatter, "{}{space}{}", self.kind, place.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_called_by_what_it_has() {
        for (namespace, name, expected) in
            [("n", "x", "Thing n/x"), ("", "x", "Thing x"), ("n", "", "Thing n"), ("", "", "Thing")]
        {
            assert_eq!(Id::new("v1", "Thing", namespace, name).to_string(), expected);
        }
    }
}
