//! Reviews of requests: the API server's question and the answer.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::compact;

/// The API server's question.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review<'a> {
    api_version: &'a str,
    /// The request, as it was written.
    #[serde(borrow)]
    request: Option<&'a RawValue>,
}

/// The part of a request that the answer repeats.
#[derive(Default, Deserialize)]
struct Request {
    uid: String,
}

/// The response that a hook writes into `$ADMISSION_RESPONSE_PATH`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Response {
    /// Whether the request may pass.
    #[serde(default)]
    pub allowed: bool,
    /// Why not.
    #[serde(default)]
    pub message: String,
    /// Warnings for the user.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// A JSON patch of the object, in base64.
    #[serde(default)]
    pub patch: String,
    /// Status code when it may not pass.
    #[serde(skip)]
    pub code: u16,
}

/// Why a request body is not a review.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// It is not JSON.
    #[error("Invalid JSON payload")]
    Json,
    /// It has no request.
    #[error("Missing parameters: request")]
    NoRequest,
}

impl<'a> Review<'a> {
    /// Reads the API server's question.
    pub fn parse(body: &'a str) -> Result<Self, ReviewError> {
        let review: Self = serde_json::from_str(body).map_err(|_| ReviewError::Json)?;
        if review.request.is_none() { Err(ReviewError::NoRequest) } else { Ok(review) }
    }

    /// The `review` of the binding context: the request with its keys in the API server's own order.
    pub fn context(&self) -> String {
        format!("{{\"request\":{}}}", compact(self.request.map_or("null", RawValue::get)))
    }

    /// The answer that carries `response`.
    pub fn reply(&self, response: &Response) -> Value {
        let request = self.request.and_then(|request| serde_json::from_str(request.get()).ok());
        let Request { uid } = request.unwrap_or_default();
        let mut answer = json!({ "uid": uid, "allowed": response.allowed });
        if !response.allowed {
            let code = if response.code == 0 { 403 } else { response.code };
            answer["status"] = json!({ "code": code, "message": response.message });
        }
        if !response.warnings.is_empty() {
            answer["warnings"] = json!(response.warnings);
        }
        if !response.patch.is_empty() {
            answer["patchType"] = "JSONPatch".into();
            answer["patch"] = response.patch.as_str().into();
        }
        json!({ "kind": "AdmissionReview", "apiVersion": self.api_version, "response": answer })
    }
}

impl Response {
    /// A refusal by the operator itself.
    pub fn refusal(code: u16, message: impl Into<String>) -> Self {
        Self { message: message.into(), code, ..Self::default() }
    }

    /// Reads the hook's file: its first JSON object. An empty file is no answer, and so a refusal.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::refusal(500, "the hook gave no answer: $ADMISSION_RESPONSE_PATH is empty"));
        }
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Self>();
        let response = values.next().unwrap_or_else(|| Ok(Self::default()));
        response.map_err(|error| format!("got bad admission response: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","z":"<b>","a":1}}"#;

    #[test]
    fn the_request_keeps_its_order() {
        let review = Review::parse(BODY).unwrap();
        assert_eq!(review.context(), r#"{"request":{"uid":"u","z":"\u003cb\u003e","a":1}}"#);
    }

    #[test]
    fn replies() {
        for (case, response, expected) in [
            ("allowed", r#"{"allowed":true}"#, r#"{"uid":"u","allowed":true}"#),
            (
                "warnings",
                r#"{"allowed":true,"warnings":["a","b"]}"#,
                r#"{"uid":"u","allowed":true,"warnings":["a","b"]}"#,
            ),
            (
                "denied",
                r#"{"allowed":false,"message":"no"}"#,
                r#"{"uid":"u","allowed":false,"status":{"code":403,"message":"no"}}"#,
            ),
            (
                "patch",
                r#"{"allowed":true,"patch":"W10="}"#,
                r#"{"uid":"u","allowed":true,"patchType":"JSONPatch","patch":"W10="}"#,
            ),
        ] {
            println!("case {case}");
            let reply = Review::parse(BODY).unwrap().reply(&Response::parse(response).unwrap());
            assert_eq!(reply["response"].to_string(), expected, "{case}");
            assert_eq!(reply["apiVersion"], "admission.k8s.io/v1", "{case}");
        }
    }

    #[test]
    fn no_answer_is_a_refusal_and_a_bad_one_an_error() {
        let response = Response::parse(" \n").unwrap();
        assert!(!response.allowed && response.code == 500);
        assert!(Response::parse("yes").is_err());
    }

    #[test]
    fn bad_questions() {
        for (body, expected) in [("x", ReviewError::Json), (r#"{"apiVersion":"v1"}"#, ReviewError::NoRequest)]
        {
            println!("case {body}");
            assert_eq!(Review::parse(body).unwrap_err(), expected, "{body}");
        }
    }
}
