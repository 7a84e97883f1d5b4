//! Implements `Connection::upload` for every [`Caller`]: one stream for all files.
//!
//! The host requests each file that it does not have yet. A file is written next to its target, hashed, and renamed if the hash
//! is right (`upload.sh`), so the first files can be used while the last ones are sent.

use std::fmt::Write as _;

use super::{Body, Call, Caller, Side, last_lines};
use crate::{Error, Payload, Upload, UploadFile, UploadHooks, UploadOutcome, nonce};

const SCRIPT: &str = include_str!("upload.sh");

/// Sends files.
pub(crate) async fn upload(caller: &dyn Caller, upload: Upload) -> Result<UploadOutcome, Error> {
    let Upload { files, hooks, timeout, cancel, progress } = upload;
    if files.is_empty() {
        return Ok(UploadOutcome::default());
    }
    let host = &caller.peer().host;
    let failed =
        |path: &str, reason: String| Error::Transfer { host: host.clone(), path: path.into(), reason };
    if let Some((file, reason)) = files.iter().find_map(|file| Some((file, flaw(file)?))) {
        return Err(failed(&file.target, reason.into()));
    }
    let body = Body::new(&files, progress)?;
    let mut call = Call::new(format!("kk={}\n{SCRIPT}", nonce()).into(), timeout, cancel);
    call.files = small_files(&files, &body, hooks);
    call.side = Side::Body(body);
    let reply = caller.call(call).await?;
    if reply.code == 0 {
        return Ok(UploadOutcome { bytes: reply.body_sent });
    }
    let at = String::from_utf8_lossy(&reply.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("fail ")?.parse::<usize>().ok())
        .and_then(|index| files.get(index));
    Err(failed(at.map_or("files", |file| &file.target), last_lines(&reply.stderr)))
}

/// The files in the script's directory: the list of the uploaded files, and the hooks with their files.
fn small_files(files: &[UploadFile], body: &Body, hooks: UploadHooks) -> Vec<Payload> {
    let mut manifest = String::new();
    for (index, file) in files.iter().enumerate() {
        writeln!(manifest, "{} {} {:o}\n{}", body.size(index), file.sha256, file.mode & 0o7777, file.target)
            .expect("a string takes any text");
    }
    let UploadHooks { lock, before, after, files: mut payloads } = hooks;
    let texts = [("manifest", Some(manifest.into())), ("lock", lock), ("before", before), ("after", after)];
    payloads.extend(
        texts
            .into_iter()
            .filter_map(|(name, text)| Some(Payload { name: name.into(), content: text?.as_bytes().into() })),
    );
    payloads
}

/// The error in a file's target or checksum, if there is one. Both are from a catalogue that the user may have written.
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

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        io::{BufRead as _, BufReader, Write as _},
        os::unix::fs::PermissionsExt as _,
        process::{Command, Stdio},
        sync::mpsc,
        thread,
        time::Duration,
    };

    use super::*;

    /// Runs the upload script on this machine with two files and, optionally, a replacement for `head`. Returns how many files
    /// the script requests before it has received a byte. Each file is sent when it is requested.
    fn asked_for_at_first(head: Option<&str>) -> usize {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let contents = ["one\n", "the second\n"];
        let mut manifest = String::new();
        for (number, content) in contents.iter().enumerate() {
            let sum = kk_util::sha256(content.as_bytes());
            let target = at(&number.to_string());
            writeln!(manifest, "{} {sum} 644\n{}", content.len(), target.display()).unwrap();
        }
        fs::write(at("manifest"), manifest).unwrap();
        fs::create_dir(at("bin")).unwrap();
        if let Some(text) = head {
            fs::write(at("bin/head"), text).unwrap();
            fs::set_permissions(at("bin/head"), Permissions::from_mode(0o755)).unwrap();
        }
        let mut child = Command::new("sh")
            .args(["-c", &format!("kk=abcdefghijklmnop\n{SCRIPT}")])
            .current_dir(directory.path())
            .env("PATH", format!("{}:/usr/bin:/bin", at("bin").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                sender.send(line.unwrap()).unwrap();
            }
        });
        let next = |limit| lines.recv_timeout(limit);
        let mut wanted = vec![next(Duration::from_mins(1)).unwrap()];
        // A script that requests all files does so at once; the limit is only how long to wait for an early request.
        while let Ok(line) = next(Duration::from_millis(if head.is_some() { 300 } else { 20_000 })) {
            wanted.push(line);
            if wanted.len() == contents.len() {
                break;
            }
        }
        let at_first = wanted.len();
        for (number, content) in contents.iter().enumerate() {
            if number == wanted.len() {
                wanted.push(next(Duration::from_mins(1)).unwrap());
            }
            assert_eq!(wanted[number], format!("want {number}"));
            input.write_all(content.as_bytes()).unwrap();
        }
        assert!(child.wait().unwrap().success());
        for (number, content) in contents.iter().enumerate() {
            assert_eq!(fs::read_to_string(at(&number.to_string())).unwrap(), *content);
        }
        at_first
    }

    #[test]
    fn all_files_are_asked_for_at_once_unless_head_reads_too_far() {
        assert_eq!(asked_for_at_first(None), 2);
        // It reads all available bytes, as tools with buffers do.
        let greedy = "#!/bin/sh\ndd bs=65536 count=1 2>/dev/null | /usr/bin/head -c \"$2\"\n";
        assert_eq!(asked_for_at_first(Some(greedy)), 1);
    }
}
