//! The JSON schema of the `Cluster` document, for editors and for `reader`.

use crate::v1alpha2::Cluster;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// The JSON schema (draft 2020-12) of the `Cluster` document.
pub fn schema() -> Value {
    of::<Cluster>()
}

/// The JSON schema of another document.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    RecursiveTransform(drop_null_default).transform(&mut schema);
    RecursiveTransform(permit_anchors).transform(&mut schema);
    schema.into()
}

/// Removes "The default is null", which only means "optional" and is already part of the type.
fn drop_null_default(schema: &mut Schema) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}

/// Permits keys `x-…`, which may hold anchors, in every map with fixed keys.
fn permit_anchors(schema: &mut Schema) {
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.insert("patternProperties".to_owned(), json!({"^x-": true}));
    }
}
