//! Objects of a manifest, by which kk queries them from the API.

use kk_util::sha256;
use serde_json::{Value, json};

use crate::{
    base::{
        error::BuildError,
        requirements::{Manifest, Object},
    },
    model::cluster::Cluster,
};

/// A manifest from a template, as input for `kubectl apply`.
///
/// # Errors
/// The user's template cannot be rendered, or it contains no objects.
pub(crate) fn from_template(
    cluster: &Cluster,
    name: &'static str,
    template: &str,
    values: &Value,
) -> Result<Manifest, BuildError> {
    let file = cluster.templates.render(template, values)?;
    let objects = objects_of(template, &file)?;
    Ok(Manifest { name, note: file.clone(), file, objects, made_by_init: false, command: None })
}

/// The objects in a rendered file.
///
/// # Errors
/// The user's template contains no objects.
fn objects_of(template: &str, text: &str) -> Result<Vec<Object>, BuildError> {
    let broken = |why: String| {
        BuildError::local(
            format!("the template {template} gives no objects: {why}"),
            "correct it, or remove it from --templates",
        )
    };
    let mut objects = Vec::new();
    for document in text.split("\n---") {
        if document.lines().all(|line| line.trim().is_empty() || line.starts_with(['#', '-'])) {
            continue;
        }
        let value: Value = crate::base::yaml::parse(document).map_err(broken)?;
        objects.push(
            object(&value).ok_or_else(|| broken("a document has no apiVersion, kind or name".to_owned()))?,
        );
    }
    Ok(objects)
}

/// A manifest of adapted documents, as one List. The note contains only its checksum, because the file is large.
///
/// # Errors
/// A document is not an object.
pub(crate) fn from_documents(name: &'static str, documents: &[Value]) -> Result<Manifest, BuildError> {
    let objects = documents.iter().map(object).collect::<Option<Vec<_>>>().ok_or_else(|| {
        BuildError::local(
            format!("the manifest of {name} has a document without apiVersion, kind or name"),
            format!("use another version in spec.components.{name}"),
        )
    })?;
    let file = json!({"apiVersion": "v1", "kind": "List", "items": documents}).to_string();
    let note = format!("# The SHA-256 of the manifest that kk applied last.\n{}\n", sha256(&file));
    Ok(Manifest { name, note, file, objects, made_by_init: false, command: None })
}

fn object(value: &Value) -> Option<Object> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Some(Object {
        api_version: text("/apiVersion")?,
        kind: text("/kind")?,
        namespace: text("/metadata/namespace").unwrap_or_default(),
        name: text("/metadata/name")?,
    })
}
