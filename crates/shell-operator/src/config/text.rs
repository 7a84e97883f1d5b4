//! Converts the hook's output to one untyped value, and reads its version.

use serde_json::{Map, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::ConfigVersion;
use super::fields::{Problems, type_name};

/// The first document of `output`. `None` after a problem was reported.
pub(super) fn read(output: &str, problems: &Problems) -> Option<Value> {
    if output.trim().is_empty() {
        problems.error("", "the hook printed nothing for --config");
        return None;
    }
    let strict = documents(output, DuplicateKeyPolicy::Error);
    let documents = match strict {
        Ok(documents) => documents,
        Err(error) => match documents(output, DuplicateKeyPolicy::LastWins) {
            Ok(documents) => {
                problems
                    .warn("", format!("a key is given twice, the last one counts: {}", first_line(&error)));
                documents
            }
            Err(error) => {
                problems.error("", format!("not valid YAML or JSON: {}", error.to_string().trim_end()));
                return None;
            }
        },
    };
    let mut documents = documents.into_iter().filter(|document| !document.is_null());
    let first = documents.next();
    if documents.next().is_some() {
        problems.warn("", "there is more than one YAML document; only the first one counts");
    }
    match first {
        Some(Value::Object(map)) if map.is_empty() => {
            problems.error("", "the configuration is empty");
            None
        }
        Some(Value::Object(map)) => Some(Value::Object(map)),
        Some(other) => {
            problems
                .error("", format!("the configuration must be of type object, not {}", type_name(&other)));
            None
        }
        None => {
            problems.error("", "the hook printed no configuration for --config");
            None
        }
    }
}

fn documents(text: &str, policy: DuplicateKeyPolicy) -> Result<Vec<Value>, serde_saphyr::Error> {
    // JSON may be indented by tabs, which YAML forbids.
    if let Ok(map) = serde_json::from_str::<Map<String, Value>>(text) {
        return Ok(vec![Value::Object(map)]);
    }
    let options = serde_saphyr::options! { duplicate_keys: policy };
    serde_saphyr::from_multiple_with_options(text, options)
}

fn first_line(error: &serde_saphyr::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// The version that `root` names. `None` after an unknown one was reported.
pub(super) fn version(root: &Value, problems: &Problems) -> Option<ConfigVersion> {
    match root.get("configVersion") {
        None => Some(ConfigVersion::V0),
        Some(Value::String(version)) if version == "v1" => Some(ConfigVersion::V1),
        Some(Value::String(version)) => {
            problems.error("configVersion", format!("'{version}' is unsupported; supported is v1"));
            None
        }
        Some(other) => {
            problems.error("configVersion", format!("must be of type string, not {}", type_name(other)));
            None
        }
    }
}
