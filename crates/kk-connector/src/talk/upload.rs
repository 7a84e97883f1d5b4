//! `Connection::upload` on anything that can carry out a call: one stream for all files.
//!
//! The host says first which files it does not have yet; their contents follow one after the other. Each is
//! written beside its target, hashed while it arrives, and renamed when the hash is right (`upload.sh`), so the
//! first files can be used while the last ones travel.

use std::fmt::Write as _;

use super::{Body, Call, Caller, Side, last_lines, opening::nonce};
use crate::{Error, Payload, Upload, UploadFile, UploadOutcome};

const SCRIPT: &str = include_str!("upload.sh");

/// Sends files.
pub(crate) async fn upload(caller: &dyn Caller, upload: Upload) -> Result<UploadOutcome, Error> {
    let Upload { files, timeout, cancel, progress } = upload;
    let host = &caller.whom().host;
    let body = Body::new(&files, progress)?;
    let mut manifest = String::new();
    for (index, file) in files.iter().enumerate() {
        if let Some(reason) = flaw(file) {
            return Err(Error::Transfer {
                host: host.clone(),
                path: file.target.clone(),
                reason: reason.into(),
            });
        }
        writeln!(manifest, "{} {} {:o}\n{}", body.size(index), file.sha256, file.mode & 0o7777, file.target)
            .expect("a string takes any text");
    }
    if files.is_empty() {
        return Ok(UploadOutcome::default());
    }
    let mut call = Call::new(format!("kk={}\n{SCRIPT}", nonce()).into(), timeout, cancel);
    call.files = vec![Payload { name: "manifest".into(), content: manifest.into_bytes().into() }];
    call.side = Side::Body(body);
    let reply = caller.call(call).await?;
    if reply.code == 0 {
        return Ok(UploadOutcome { bytes: reply.body_sent });
    }
    let failed = String::from_utf8_lossy(&reply.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("fail ")?.parse::<usize>().ok())
        .and_then(|index| files.get(index));
    let path = failed.map_or_else(|| "files".to_owned(), |file| file.target.clone());
    Err(Error::Transfer { host: host.clone(), path, reason: last_lines(&reply.stderr) })
}

/// What is wrong with a file's target or sum, which come from a catalogue that may be the user's own.
fn flaw(file: &UploadFile) -> Option<&'static str> {
    let target = &file.target;
    let Some(relative) = target.strip_prefix('/') else { return Some("the path is not absolute") };
    if target.chars().any(char::is_control) {
        return Some("the path contains control characters");
    }
    if relative.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return Some("the path has an empty, `.` or `..` part");
    }
    if file.sha256.len() != 64 || !file.sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Some("its SHA-256 is not 64 lower-case hex digits");
    }
    None
}
