//! Paths of the API, and what its errors mean for the person who reads the log.

use http::Request;
use http::header::ACCEPT;

use super::Selection;

/// The `Accept` header of requests for which only the metadata of objects matters. API servers behind an aggregation layer may
/// not know it, and send whole objects.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_ONLY_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// A request for a page of a list of `selection`.
pub(super) fn list(
    selection: &Selection,
    parameters: &[(&str, &str)],
    metadata_only: bool,
) -> Result<Request<Vec<u8>>, String> {
    get(&query(selection, parameters), metadata_only.then_some(METADATA_ONLY_LIST))
}

/// A request for the changes of `selection`.
pub(super) fn watch(
    selection: &Selection,
    parameters: &[(&str, &str)],
    metadata_only: bool,
) -> Result<Request<Vec<u8>>, String> {
    get(&query(selection, parameters), metadata_only.then_some(METADATA_ONLY))
}

fn get(path: &str, accept: Option<&'static str>) -> Result<Request<Vec<u8>>, String> {
    let request = Request::get(path).header(ACCEPT, accept.unwrap_or("application/json"));
    request.body(Vec::new()).map_err(|error| error.to_string())
}

/// Path and query for a list or watch of `selection`.
fn query(selection: &Selection, parameters: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (key, value) in [("labelSelector", &selection.labels), ("fieldSelector", &selection.fields)] {
        if !value.is_empty() {
            query.append_pair(key, value);
        }
    }
    query.extend_pairs(parameters);
    format!("{}?{}", selection.resource.collection(selection.namespace.as_deref()), query.finish())
}

/// The error's text with what to do about it.
pub fn explain(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            format!(
                "{}; hint: allow it by a Role or ClusterRole of the operator's service account",
                status.message
            )
        }
        kube::Error::Api(status) if status.code == 401 => {
            format!("the API server does not accept the credentials: {}", status.message)
        }
        kube::Error::Api(status) => status.message.clone(),
        other => {
            let text = chain(other);
            let hint = HINTS.iter().find(|(part, _)| text.contains(part));
            hint.map_or_else(|| text.clone(), |(_, hint)| format!("{text}; hint: {hint}"))
        }
    }
}

/// Hints for errors that contain a certain text.
const HINTS: [(&str, &str); 2] = [
    (
        "invalid peer certificate",
        "the certificate-authority of the kubeconfig must have signed the API server's certificate, for this address",
    ),
    ("received fatal alert", "the API server does not accept the client certificate of the kubeconfig"),
];

/// The error and its causes, without repeating a text that contains the next one.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Whether the error reports that a resource version is too old to resume from.
pub(super) fn is_expired(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 410)
}

/// Whether the error reports that the resource does not support the verb.
pub(super) fn is_not_allowed(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 405)
}

/// Whether the error reports that there is no such resource or object.
pub(crate) fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
