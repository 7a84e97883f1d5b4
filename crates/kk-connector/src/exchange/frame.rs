//! Extracts a script's output from a stream: the output of the login shell before it, and everything after it, is dropped.
//!
//! The bootstrap prints a line with a random word before and after the script's output. A frame looks for both lines, passes on
//! lines as they arrive and keeps the end of the content.

use memchr::memmem;

use super::KEEP;

/// How much of the text before the begin mark is kept for error messages.
const PREAMBLE: usize = 64 << 10;
/// A longer line is passed on in pieces. This is also the most that is kept of the whole output.
pub(super) const LONGEST_LINE: usize = KEEP;
/// Most bytes that may follow the end mark on its line: an exit code.
const LONGEST_CODE: usize = 64;

/// One framed stream.
pub(crate) struct Frame {
    begin: Vec<u8>,
    end: Vec<u8>,
    state: State,
    /// Received bytes that are not known to be content yet.
    held: Vec<u8>,
    content: Vec<u8>,
    keep: usize,
    /// The unfinished last line; `None` when lines are not wanted.
    line: Option<Vec<u8>>,
    received: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Inside,
    After(i32),
}

impl Frame {
    /// A frame for the random word `nonce` that keeps the last `keep` bytes of content.
    pub(crate) fn new(nonce: &str, keep: usize, lines: bool) -> Self {
        Self {
            begin: format!("kk-{nonce}-begin\n").into_bytes(),
            end: format!("kk-{nonce}-end ").into_bytes(),
            state: State::Before,
            held: Vec::new(),
            content: Vec::new(),
            keep,
            line: lines.then(Vec::new),
            received: 0,
        }
    }

    /// Takes received bytes; passes finished lines to `heard` and returns the bytes after the end mark.
    pub(crate) fn push(&mut self, data: &[u8], heard: &mut dyn FnMut(&[u8])) -> Vec<u8> {
        self.held.extend_from_slice(data);
        if self.state == State::Before {
            match find(&self.held, &self.begin) {
                Some(at) => {
                    self.held.drain(..at + self.begin.len());
                    self.state = State::Inside;
                }
                None => cut_front(&mut self.held, PREAMBLE),
            }
        }
        if self.state == State::Inside {
            self.push_content(heard);
        }
        if matches!(self.state, State::After(_)) { std::mem::take(&mut self.held) } else { Vec::new() }
    }

    fn push_content(&mut self, heard: &mut dyn FnMut(&[u8])) {
        let mark = find(&self.held, &self.end);
        let ready = mark.unwrap_or_else(|| self.held.len() - overlap(&self.held, &self.end));
        let content: Vec<u8> = self.held.drain(..ready).collect();
        self.deliver(&content, heard);
        if mark.is_none() {
            return;
        }
        let line = &self.held[self.end.len()..];
        let newline = line.iter().take(LONGEST_CODE).position(|&b| b == b'\n');
        if newline.is_none() && line.len() < LONGEST_CODE {
            return;
        }
        let line = &line[..newline.unwrap_or(0)];
        let code = String::from_utf8_lossy(line).trim().parse().unwrap_or(255);
        self.held.drain(..self.end.len() + newline.map_or(0, |at| at + 1));
        self.state = State::After(code);
        if let Some(line) = self.line.as_mut().filter(|line| !line.is_empty()) {
            heard(&std::mem::take(line));
        }
        cut_front(&mut self.content, self.keep);
    }

    fn deliver(&mut self, data: &[u8], heard: &mut dyn FnMut(&[u8])) {
        self.received += data.len() as u64;
        self.content.extend_from_slice(data);
        if self.content.len() > self.keep.saturating_mul(2) {
            cut_front(&mut self.content, self.keep);
        }
        let Some(line) = &mut self.line else { return };
        for piece in data.split_inclusive(|&b| b == b'\n') {
            line.extend_from_slice(piece);
            if line.last() == Some(&b'\n') {
                line.pop();
            } else if line.len() < LONGEST_LINE {
                continue;
            }
            heard(&std::mem::take(line));
        }
    }

    /// Whether the begin mark was seen.
    pub(crate) fn begun(&self) -> bool {
        self.state != State::Before
    }

    /// The script's exit code, once the end mark was seen.
    pub(crate) fn code(&self) -> Option<i32> {
        if let State::After(code) = self.state { Some(code) } else { None }
    }

    /// The text before the begin mark (until the begin mark is seen).
    pub(crate) fn preamble(&self) -> &[u8] {
        if self.state == State::Before { &self.held } else { &[] }
    }

    /// The number of all bytes of content, kept or not.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// The number of bytes that are held back, and the number of bytes of content.
    #[cfg(test)]
    pub(super) fn buffered(&self) -> (usize, usize) {
        (self.held.len(), self.content.len())
    }

    /// The content that was kept.
    pub(crate) fn into_content(self) -> Vec<u8> {
        self.content
    }
}

/// The position of `needle` in `hay`.
pub(crate) fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    memmem::find(hay, needle)
}

/// The length of the longest suffix of `hay` that is a prefix of `mark`: it may be the first part of the mark.
fn overlap(hay: &[u8], mark: &[u8]) -> usize {
    (1..mark.len().min(hay.len() + 1)).rev().find(|&n| hay.ends_with(&mark[..n])).unwrap_or(0)
}

fn cut_front(bytes: &mut Vec<u8>, keep: usize) {
    bytes.drain(..bytes.len().saturating_sub(keep));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(stream: &[u8], piece: usize, keep: usize) -> (Option<i32>, String, Vec<String>, String) {
        let mut frame = Frame::new("x", keep, true);
        let (mut lines, mut rest) = (Vec::new(), Vec::new());
        for part in stream.chunks(piece) {
            rest.extend(frame.push(part, &mut |line| lines.push(String::from_utf8_lossy(line).into_owned())));
        }
        let code = frame.code();
        let content = String::from_utf8(frame.into_content()).unwrap();
        (code, content, lines, String::from_utf8(rest).unwrap())
    }

    #[test]
    fn content_is_found_whatever_the_pieces_are() {
        let stream = b"motd\nkk-y-begin\nkk-x-begin\none\nkk-x-en\ntwokk-x-end 7\nbye";
        for piece in 1..=stream.len() {
            let (code, content, lines, rest) = cut(stream, piece, 100);
            assert_eq!(code, Some(7), "pieces of {piece}");
            assert_eq!(content, "one\nkk-x-en\ntwo");
            assert_eq!(lines, ["one", "kk-x-en", "two"]);
            assert_eq!(rest, "bye");
        }
    }

    #[test]
    fn only_the_end_of_long_content_is_kept() {
        let (_, content, lines, _) = cut(b"kk-x-begin\n1\n2\n3\n4\n5\nkk-x-end 0\n", 3, 4);
        assert_eq!(content, "4\n5\n");
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn an_end_mark_without_an_end_is_a_wrong_code() {
        let mut frame = Frame::new("x", 100, false);
        frame.push(b"kk-x-begin\nkk-x-end ", &mut |_| {});
        for _ in 0..1000 {
            frame.push(&[b'1'; 100], &mut |_| {});
            assert!(frame.held.len() <= LONGEST_CODE + 100);
        }
        assert_eq!(frame.code(), Some(255));
    }

    #[test]
    fn a_stream_without_marks_has_no_code() {
        let mut frame = Frame::new("x", 10, false);
        frame.push(b"sudo: no\n", &mut |_| {});
        assert_eq!((frame.code(), frame.begun(), frame.preamble()), (None, false, &b"sudo: no\n"[..]));
    }
}
