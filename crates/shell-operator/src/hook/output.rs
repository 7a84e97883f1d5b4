//! Copies the output of a program: its lines into the log, and the end of its text into an error message.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio_util::sync::CancellationToken;

use super::LineLog;

/// Most of a program's stderr that is kept for the error's text, in bytes.
pub(super) const KEPT_STDERR: usize = 8 * 1024;
/// Longest line that is kept in memory, in bytes; the rest of a longer one is dropped.
const LONGEST_LINE: usize = 2 << 20;

/// Logs the lines of `pipe` until its end or until `no_more` is cancelled, and returns the end of the text.
pub(super) async fn copy_lines(
    pipe: impl AsyncRead + Unpin,
    mut log: LineLog,
    no_more: CancellationToken,
) -> String {
    let mut reader = BufReader::new(pipe);
    let (mut line, mut kept) = (Vec::new(), Vec::new());
    loop {
        let read = tokio::select! {
            read = read_line(&mut reader, &mut line) => read,
            () = no_more.cancelled() => Ok(false),
        };
        let end_of_line = read.unwrap_or(false);
        if end_of_line || !line.is_empty() {
            log.line(&String::from_utf8_lossy(&line));
            kept.extend_from_slice(&line);
            kept.push(b'\n');
        }
        if !end_of_line {
            break;
        }
        if kept.len() > 2 * KEPT_STDERR {
            kept.drain(..kept.len() - KEPT_STDERR);
        }
        line.clear();
    }
    log.flush();
    String::from_utf8_lossy(&kept[kept.len().saturating_sub(KEPT_STDERR)..]).trim().to_owned()
}

/// Reads up to the end of the line. False when the stream ended before.
async fn read_line(reader: &mut (impl AsyncBufReadExt + Unpin), line: &mut Vec<u8>) -> std::io::Result<bool> {
    loop {
        let buffer = reader.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(false);
        }
        let end = memchr::memchr(b'\n', buffer);
        let length = end.unwrap_or(buffer.len());
        line.extend_from_slice(&buffer[..length.min(LONGEST_LINE.saturating_sub(line.len()))]);
        let used = end.map_or(length, |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// The text that a copier returned.
pub(super) async fn finish(copier: Option<tokio::task::JoinHandle<String>>) -> String {
    match copier {
        Some(copier) => copier.await.unwrap_or_default(),
        None => String::new(),
    }
}
