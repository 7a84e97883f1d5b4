//! Packs JSON for a Secret: compressed, then base64-encoded.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::{Failure, Reason};

/// Maximum size of unpacked data. A Secret has at most 1 MiB, but its compressed data must not exhaust the memory.
const LARGEST: u64 = 64 * 1024 * 1024;

pub(super) fn pack(content: &Value) -> Result<String, Failure> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let packed = packed.write_all(content.to_string().as_bytes()).and_then(|()| packed.finish());
    let packed = packed.map_err(|error| Failure::new(Reason::RenderFailed, error.to_string()))?;
    Ok(STANDARD.encode(packed))
}

pub(super) fn unpack(text: &[u8]) -> Result<Value, String> {
    let packed = STANDARD.decode(text).map_err(|error| error.to_string())?;
    let mut json = String::new();
    GzDecoder::new(packed.as_slice())
        .take(LARGEST)
        .read_to_string(&mut json)
        .map_err(|error| error.to_string())?;
    serde_json::from_str(&json).map_err(|error| error.to_string())
}
