//! Builds helm's record of a release: the chart, its values, and its objects, marked as belonging to the release.
//!
//! The format is defined by helm's `pkg/release/v1` and `pkg/chart/v2`. As with helm, definitions next to the templates (`crds/`)
//! do not belong to the release, because helm would delete them with it.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{objects, text};

/// Label and annotations by which helm recognises its objects (`pkg/action/validate.go`).
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "Helm");
const NAME: &str = "meta.helm.sh/release-name";
const NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// A chart whose release is recorded.
#[derive(Clone, Debug)]
pub struct Release {
    /// Name of the release.
    pub name: String,
    /// Namespace of the release.
    pub namespace: String,
    chart: PathBuf,
    values: Value,
}

impl Release {
    pub(super) fn new(name: &str, namespace: &str, chart: PathBuf, values: Value) -> Self {
        let values = if values.is_object() { values } else { json!({}) };
        Self { name: name.to_owned(), namespace: namespace.to_owned(), chart, values }
    }

    /// The objects in a text that helm has rendered. Objects of templates are marked as belonging to the release.
    pub(super) fn objects(&self, rendered: &str) -> Result<Vec<Value>, String> {
        let (definitions, templates) = split(rendered);
        let mut objects = objects::read(&definitions)?;
        for mut object in objects::read(&templates)? {
            let metadata = &mut object["metadata"];
            let mut put = |map: &str, key: &str, value: &str| {
                if metadata[map].is_null() {
                    metadata[map] = json!({});
                }
                match metadata[map].as_object_mut() {
                    Some(map) => drop(map.insert(key.to_owned(), value.into())),
                    None => return Err(format!("metadata.{map} is no map")),
                }
                Ok(())
            };
            put("labels", MANAGED_BY.0, MANAGED_BY.1)?;
            put("annotations", NAME, &self.name)?;
            put("annotations", NAMESPACE, &self.namespace)?;
            objects.push(object);
        }
        Ok(objects)
    }

    /// The content of the record that is equal in all revisions with the same inputs.
    pub fn content(&self, objects: &[Value]) -> Result<Value, String> {
        let is_ours = |object: &&Value| {
            let annotations = &object["metadata"]["annotations"];
            annotations[NAME] == self.name.as_str() && annotations[NAMESPACE] == self.namespace.as_str()
        };
        let mut manifest = String::new();
        for object in objects.iter().filter(is_ours) {
            // JSON is valid YAML, and its texts are always read as texts.
            let object = serde_json::to_string_pretty(object).map_err(|error| error.to_string())?;
            manifest.extend(["---\n", &object, "\n"]);
        }
        Ok(json!({
            "name": self.name,
            "namespace": self.namespace,
            "config": self.values,
            "manifest": manifest,
            "chart": chart(&self.chart)?,
        }))
    }
}

/// Splits a rendered text into definitions next to the templates, and the output of templates. helm names the source of each
/// document.
fn split(rendered: &str) -> (String, String) {
    let (mut definitions, mut templates) = (String::new(), String::new());
    let mut is_definition = false;
    let mut lines = rendered.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if line.trim_end() == "---"
            && let Some(source) = lines.peek().and_then(|next| next.strip_prefix("# Source: "))
        {
            let directory = source.trim_end().split('/').find(|part| ["crds", "templates"].contains(part));
            is_definition = directory == Some("crds");
        }
        if is_definition { &mut definitions } else { &mut templates }.push_str(line);
    }
    (definitions, templates)
}

/// A chart in helm's record, without its subcharts.
fn chart(dir: &Path) -> Result<Value, String> {
    let mut chart = json!({
        "metadata": null, "lock": null, "templates": [], "values": {}, "schema": null, "files": []
    });
    let mut files = Vec::new();
    collect(dir, dir, &mut files)?;
    files.sort();
    for name in files {
        let path = dir.join(&name);
        let bytes = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let parsed = || text::value(&String::from_utf8_lossy(&bytes));
        match name.as_str() {
            "Chart.yaml" => chart["metadata"] = texts("", parsed()?),
            "Chart.lock" => chart["lock"] = parsed()?,
            "values.yaml" => {
                chart["values"] =
                    Some(parsed()?).filter(Value::is_object).unwrap_or_else(|| Map::new().into());
            }
            "values.schema.json" => chart["schema"] = STANDARD.encode(&bytes).into(),
            _ => {
                let list = if name.starts_with("templates/") { "templates" } else { "files" };
                if let Some(list) = chart[list].as_array_mut() {
                    list.push(json!({ "name": name, "data": STANDARD.encode(&bytes) }));
                }
            }
        }
    }
    Ok(chart)
}

/// Converts a value of `Chart.yaml` to helm's type (`pkg/chart/v2/metadata.go`). All fields except two are texts, also
/// `appVersion: 7`. helm cannot read a record with a number instead of a text.
fn texts(key: &str, value: Value) -> Value {
    match value {
        Value::Number(number) => number.to_string().into(),
        Value::Bool(bool) if !["deprecated", "enabled"].contains(&key) => bool.to_string().into(),
        Value::Array(items) => items.into_iter().map(|item| texts(key, item)).collect(),
        Value::Object(fields) => {
            let text = |(key, value): (String, Value)| {
                let value = texts(&key, value);
                (key, value)
            };
            Value::Object(fields.into_iter().map(text).collect())
        }
        other => other,
    }
}

/// Names of the files below a directory, relative to the chart.
fn collect(root: &Path, dir: &Path, files: &mut Vec<String>) -> Result<(), String> {
    let wrong = |error| format!("cannot read {}: {error}", dir.display());
    for entry in fs::read_dir(dir).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) else { continue };
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if is_hidden || name == "charts" {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files)?;
        } else {
            files.push(name.to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_chart_are_texts_to_helm() {
        let chart = json!({
            "name": "c", "appVersion": 7, "deprecated": true, "annotations": {"a": 1.5, "b": false},
            "dependencies": [{"name": "d", "version": 2, "enabled": false}],
        });
        let expected = json!({
            "name": "c", "appVersion": "7", "deprecated": true, "annotations": {"a": "1.5", "b": "false"},
            "dependencies": [{"name": "d", "version": "2", "enabled": false}],
        });
        assert_eq!(texts("", chart), expected);
    }

    #[test]
    fn definitions_beside_the_templates_are_not_the_releases() {
        let rendered = "---\n# Source: c/charts/d/crds/all.yaml\nA\n---\nB\n---\n# Source: c/templates/crds/x.yaml\nC\n---\nD\n";
        let (definitions, templates) = split(rendered);
        assert_eq!(definitions, "---\n# Source: c/charts/d/crds/all.yaml\nA\n---\nB\n");
        assert_eq!(templates, "---\n# Source: c/templates/crds/x.yaml\nC\n---\nD\n");
    }
}
