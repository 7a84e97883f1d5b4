//! Writing YAML; the library behind it is named here only.

/// A value as a YAML document, ending in a newline.
pub(crate) fn to_string(value: &serde_json::Value) -> String {
    let mut text = serde_saphyr::to_string(value).expect("JSON values have only text keys");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
