//! Answering the API server: admission of requests and conversion of custom resources.
//!
//! Pure parts: addresses ([`path_of`]), conversion paths ([`Conversions`]), replies ([`admission`], [`conversion`])
//! and the objects that tell the API server whom to ask ([`objects`]). [`server`] serves them with certificates
//! that may change while it runs; [`certificates`] makes such certificates.

pub mod admission;
pub mod certificates;
pub mod conversion;
pub mod objects;
pub mod server;

mod chain;
mod names;

pub use chain::{Conversions, Step};
pub use names::path_of;

/// Replaces the characters that Go's encoder escapes; in JSON text they stand only inside strings.
pub(crate) fn escape_html(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
