//! Conversion of custom resources: the API server's question and the answer.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::compact;

/// An object's text, exactly as it was written: its numbers must not change on the way.
pub type Object = Box<RawValue>;

/// The API server's question.
#[derive(Clone, Debug, Deserialize)]
pub struct Review {
    /// The objects to convert, and their new version.
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
    pub objects: Vec<Object>,
}

/// The response that a hook writes into `$CONVERSION_RESPONSE_PATH`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    failed_message: String,
    #[serde(default)]
    converted_objects: Vec<Object>,
}

/// The `review` of the binding context.
#[derive(Serialize)]
struct Context<'a> {
    request: ContextRequest<'a>,
}

#[derive(Serialize)]
struct ContextRequest<'a> {
    uid: &'a str,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: &'a str,
    objects: &'a [Object],
}

/// The answer to the API server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    kind: &'static str,
    api_version: &'static str,
    response: ReplyResponse,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReplyResponse {
    uid: String,
    converted_objects: Vec<Object>,
    result: ReplyResult,
}

#[derive(Debug, Serialize)]
struct ReplyResult {
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

impl Request {
    /// The `review` of the binding context, with the objects in their current state of conversion.
    pub fn context(&self, objects: &[Object]) -> String {
        let (uid, desired_api_version) = (&*self.uid, &*self.desired_api_version);
        let context = Context { request: ContextRequest { uid, desired_api_version, objects } };
        compact(&serde_json::to_string(&context).expect("texts and JSON have a JSON form"))
    }

    /// The answer.
    pub fn reply(&self, result: Result<Vec<Object>, String>) -> Reply {
        let (converted_objects, result) = match result {
            Ok(objects) => (objects, ReplyResult { status: "Success", message: String::new() }),
            Err(message) => (Vec::new(), ReplyResult { status: "Failed", message }),
        };
        Reply {
            kind: "ConversionReview",
            api_version: "apiextensions.k8s.io/v1",
            response: ReplyResponse { uid: self.uid.clone(), converted_objects, result },
        }
    }
}

/// Versions of `objects` that are not `wanted`, each once, in order; empty for an object without one.
pub fn source_versions(objects: &[Object], wanted: &str) -> Vec<String> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Typed {
        api_version: String,
    }
    let mut versions: Vec<String> = Vec::new();
    for object in objects {
        let Typed { api_version } = serde_json::from_str(object.get()).unwrap_or_default();
        if api_version != wanted && !versions.contains(&api_version) {
            versions.push(api_version);
        }
    }
    versions
}

/// Reads the hook's file, which must have as many objects as it was given.
pub fn parse_response(text: &str, expected: usize) -> Result<Vec<Object>, String> {
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

    #[test]
    fn responses() {
        for (case, text, expected) in [
            ("objects", r#"{"convertedObjects":[{"a":1}]}"#, Ok(1)),
            ("failed", r#"{"failedMessage":"why"}"#, Err("why")),
            ("too_few", r#"{"convertedObjects":[]}"#, Err("it has 0 objects")),
            ("empty", "", Err("got bad conversion response")),
            ("invalid", "x", Err("got bad conversion response")),
        ] {
            println!("case {case}");
            match (parse_response(text, 1), expected) {
                (Ok(objects), Ok(count)) => assert_eq!(objects.len(), count, "{case}"),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{case}: {error}"),
                (result, _) => panic!("{case}: {result:?}"),
            }
        }
    }

    #[test]
    fn versions_are_found_once_in_order() {
        let object = |version| RawValue::from_string(format!(r#"{{"apiVersion":"{version}"}}"#)).unwrap();
        let objects = ["g/v2", "g/v1", "g/v2", "g/v3"].map(object);
        assert_eq!(source_versions(&objects, "g/v3"), ["g/v2", "g/v1"]);
    }

    #[test]
    fn objects_pass_without_a_change() {
        let text = r#"{"request":{"uid":"u","desiredAPIVersion":"g/v2","objects":[{"z":1.0,"a":"<b>","n":12345678901234567890123}]}}"#;
        let review: Review = serde_json::from_str(text).unwrap();
        let request = &review.request;
        assert_eq!(
            request.context(&request.objects),
            r#"{"request":{"uid":"u","desiredAPIVersion":"g/v2","objects":[{"z":1.0,"a":"\u003cb\u003e","n":12345678901234567890123}]}}"#
        );
        let reply = serde_json::to_string(&request.reply(Ok(request.objects.clone()))).unwrap();
        assert_eq!(
            reply,
            r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"u","convertedObjects":[{"z":1.0,"a":"<b>","n":12345678901234567890123}],"result":{"status":"Success"}}}"#
        );
        let failed = serde_json::to_string(&request.reply(Err("no".to_owned()))).unwrap();
        assert!(
            failed.contains(r#""convertedObjects":[],"result":{"status":"Failed","message":"no"}"#),
            "{failed}"
        );
    }
}
