//! Reading and writing YAML; the library behind it is named here only.

/// A value as a YAML document, ending in a newline.
pub(crate) fn to_string(value: &serde_json::Value) -> String {
    let mut text = serde_saphyr::to_string(value).expect("JSON values have only text keys");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A document as a value.
///
/// # Errors
/// Why it is none.
pub(crate) fn parse(text: &str) -> Result<serde_json::Value, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}
