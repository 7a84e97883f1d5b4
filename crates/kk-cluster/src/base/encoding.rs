//! Base64.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Standard Base64 (RFC 4648, section 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes standard Base64. `None` if the text is not Base64.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}
