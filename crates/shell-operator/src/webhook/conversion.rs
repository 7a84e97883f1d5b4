//! Conversion of custom resources: what the API server asks and what it is told.

use serde::Deserialize;
use serde_json::{Value, json};

use super::escape_html;

/// The API server's question.
#[derive(Clone, Debug, Deserialize)]
pub struct Review {
    /// What is to be converted.
    pub request: Request,
}

/// Objects to be converted.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Names the question.
    pub uid: String,
    /// `group/version` that the objects shall have.
    #[serde(rename = "desiredAPIVersion")]
    pub desired_api_version: String,
    /// The objects.
    pub objects: Vec<Value>,
}

/// What a hook writes into `$CONVERSION_RESPONSE_PATH`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    failed_message: String,
    #[serde(default)]
    converted_objects: Vec<Value>,
}

impl Request {
    /// The `review` of the binding context, with the objects as far as they are converted.
    pub fn context(&self, objects: &[Value]) -> String {
        let review = json!({
            "request": { "uid": self.uid, "desiredAPIVersion": self.desired_api_version, "objects": objects }
        });
        escape_html(&review.to_string())
    }

    /// The answer.
    pub fn reply(&self, result: Result<Vec<Value>, String>) -> Value {
        let response = match result {
            Ok(objects) => {
                json!({ "uid": self.uid, "convertedObjects": objects, "result": { "status": "Success" } })
            }
            Err(message) => {
                json!({ "uid": self.uid, "convertedObjects": [], "result": { "status": "Failed", "message": message } })
            }
        };
        json!({ "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response })
    }
}

/// Versions of `objects` that are not `wanted`, each once, in order.
pub fn source_versions(objects: &[Value], wanted: &str) -> Vec<String> {
    let mut versions: Vec<String> = Vec::new();
    for version in objects.iter().map(|object| object["apiVersion"].as_str().unwrap_or_default()) {
        if version != wanted && !versions.iter().any(|known| known == version) {
            versions.push(version.to_owned());
        }
    }
    versions
}

/// Reads the hook's file, which must have as many objects as it was given.
pub fn parse_response(text: &str, expected: usize) -> Result<Vec<Value>, String> {
    let bad = |why: String| format!("got bad conversion response: {why}");
    let response: Response = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    if !response.failed_message.is_empty() {
        return Err(response.failed_message);
    }
    let count = response.converted_objects.len();
    if count != expected {
        return Err(bad(format!("it has {count} objects, but {expected} were to be converted")));
    }
    Ok(response.converted_objects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::objects(r#"{"convertedObjects":[{"a":1}]}"#, Ok(1))]
    #[case::failed(r#"{"failedMessage":"why"}"#, Err("why"))]
    #[case::too_few(r#"{"convertedObjects":[]}"#, Err("it has 0 objects"))]
    #[case::empty("", Err("got bad conversion response"))]
    #[case::invalid("x", Err("got bad conversion response"))]
    fn responses(#[case] text: &str, #[case] expected: Result<usize, &str>) {
        match (parse_response(text, 1), expected) {
            (Ok(objects), Ok(count)) => assert_eq!(objects.len(), count),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            (result, _) => panic!("{result:?}"),
        }
    }

    #[test]
    fn versions_are_found_once_in_order() {
        let objects = ["g/v2", "g/v1", "g/v2", "g/v3"].map(|version| json!({ "apiVersion": version }));
        assert_eq!(source_versions(&objects, "g/v3"), ["g/v2", "g/v1"]);
    }
}
