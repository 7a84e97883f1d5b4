//! Reading and writing YAML; the library behind it is named here only.

/// A value as a YAML document, ending in a newline.
pub(crate) fn to_string(value: &serde_json::Value) -> String {
    let mut text = serde_saphyr::to_string(value).expect("JSON values have only text keys");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Several documents in one stream.
pub(crate) fn documents(values: &[serde_json::Value]) -> String {
    values.iter().fold(String::new(), |text, value| text + "---\n" + &to_string(value))
}

/// A document as a value.
///
/// # Errors
/// Why the text is not a YAML document.
pub(crate) fn parse(text: &str) -> Result<serde_json::Value, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

/// All documents of a stream, without empty ones.
///
/// # Errors
/// Why the text is not a stream of YAML documents.
pub(crate) fn parse_documents(text: &str) -> Result<Vec<serde_json::Value>, String> {
    let documents: Vec<serde_json::Value> =
        serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// A small document of a host or of a cluster as a value. Anchors, aliases and merge keys are refused, because a short text can expand to a huge
/// one. Repeated keys are refused, because each reader picks another value. An error states only its position: the text around it
/// may be secret.
///
/// # Errors
/// Why the text is not a YAML document.
pub fn parse_untrusted(text: &str) -> Result<serde_json::Value, String> {
    let budget = serde_saphyr::budget! {
        max_events: 10_000,
        max_nodes: 10_000,
        max_aliases: 0,
        max_anchors: 0,
        max_merge_keys: 0,
        max_depth: 16,
        flow_nesting_limit: 16,
        max_documents: 1,
        max_total_scalar_bytes: 1 << 20,
    };
    let duplicate_keys = serde_saphyr::options::DuplicateKeyPolicy::Error;
    let options =
        serde_saphyr::options! { budget: budget, duplicate_keys: duplicate_keys, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let at = error.location().map(|at| format!(" at line {}", at.line())).unwrap_or_default();
        format!("it is not plain YAML{at}: it must have no anchors, no repeated keys, and few entries")
    })
}
