//! Random output of hosts: a frame finds the same content however the output is divided, and only its own marks count.

use std::collections::VecDeque;

use kk_test_common::fuzz::{Result, Unstructured, fuzz};

use super::frame::Frame;

/// The content between the marks of one stream, found in the whole stream at once.
#[derive(Debug, PartialEq, Eq)]
struct Framed<'a> {
    content: &'a [u8],
    code: i32,
    /// The bytes after the end mark.
    rest: &'a [u8],
}

fn split<'a>(text: &'a [u8], mark: &str) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(mark.len()).position(|part| part == mark.as_bytes())?;
    Some((&text[..at], &text[at + mark.len()..]))
}

impl<'a> Framed<'a> {
    /// `None`: the script did not begin or did not end.
    fn find(stream: &'a [u8], nonce: &str) -> Option<Self> {
        let (_, inside) = split(stream, &format!("kk-{nonce}-begin\n"))?;
        let (content, after) = split(inside, &format!("kk-{nonce}-end "))?;
        // A code has few digits; a longer line is not a code.
        let line = after.iter().take(64).position(|byte| *byte == b'\n');
        let (code, rest) = match line {
            Some(at) => (str::from_utf8(&after[..at]).ok(), &after[at + 1..]),
            None if after.len() >= 64 => (None, after),
            None => return None,
        };
        let code = code.and_then(|code| code.trim().parse().ok()).unwrap_or(255);
        Some(Self { content, code, rest })
    }
}

/// Output in which the marks of this call, of other calls, and incomplete marks are frequent.
fn output(nonce: &str, u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mark = |rest: &str| format!("kk-{nonce}-{rest}").into_bytes();
    let mut stream = Vec::new();
    noise(nonce, &mut stream, u)?;
    if u.ratio(9, 10)? {
        stream.extend(mark("begin\n"));
    }
    noise(nonce, &mut stream, u)?;
    if u.ratio(8, 10)? {
        let code = u.choose(&["0", "7", "255", "-1", " 3 ", "", "x", "99999999999", "0\r"])?;
        stream.extend(mark(&format!("end {code}")));
    }
    if u.ratio(9, 10)? {
        stream.push(b'\n');
    }
    noise(nonce, &mut stream, u)?;
    Ok(stream)
}

fn noise(nonce: &str, stream: &mut Vec<u8>, u: &mut Unstructured<'_>) -> Result<()> {
    let own = format!("kk-{nonce}-end 0\n");
    let pieces: [&[u8]; 12] = [
        b"\n",
        b"word ",
        b"kk-",
        b"kk-other-begin\n",
        b"kk-other-end 0\n",
        b"kk--end 0\n",
        b"want 0\n",
        b"want 1\n",
        b"\xff\xfe",
        b"0123456789",
        b"-end 0\n",
        b"-begin\n",
    ];
    for _ in 0..u.int_in_range(0..=6)? {
        match u.int_in_range(0..=9)? {
            0 => stream.extend(&own.as_bytes()[..u.choose_index(own.len())?]),
            1 => stream.extend(b"x\n".repeat(u.int_in_range(1..=60)?)),
            2 => stream.extend(u.bytes(3)?),
            _ => stream.extend_from_slice(u.choose(&pieces)?),
        }
    }
    Ok(())
}

/// The stream in the pieces in which it arrives.
fn pieces(stream: &[u8], u: &mut Unstructured<'_>) -> Result<VecDeque<Vec<u8>>> {
    let longest = *u.choose(&[1, 2, 7, 64, 4096])?;
    let (mut pieces, mut rest) = (VecDeque::new(), stream);
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(u.int_in_range(1..=longest)?.min(rest.len()));
        pieces.push_back(piece.to_vec());
        rest = more;
    }
    Ok(pieces)
}

#[test]
fn fuzz_frames() {
    fuzz("frames", |u| {
        let nonce = *u.choose(&["x", "abcdefghijklmnop"])?;
        let stream = output(nonce, u)?;
        let keep = *u.choose(&[0, 1, 5, 40, 10_000])?;
        let mut frame = Frame::new(nonce, keep, true);
        let mark = format!("kk-{nonce}-end ").len();
        let (mut lines, mut rest) = (Vec::new(), Vec::new());
        for piece in pieces(&stream, u)? {
            rest.extend(frame.push(&piece, &mut |line| lines.push(line.to_vec())));
            let (held, kept) = frame.buffered();
            assert!(kept <= 2 * keep, "{stream:?}");
            // An incomplete mark, or an end mark with an incomplete code.
            assert!(!frame.begun() || held < mark + 64, "{stream:?}");
        }
        let found = Framed::find(&stream, nonce);
        assert_eq!(frame.code(), found.as_ref().map(|found| found.code), "{stream:?}");
        assert_eq!(frame.begun(), split(&stream, &format!("kk-{nonce}-begin\n")).is_some());
        let Some(found) = found else {
            assert!(rest.is_empty(), "{stream:?}");
            return Ok(false);
        };
        let mut all: Vec<_> = found.content.split(|byte| *byte == b'\n').collect();
        all.pop_if(|last| last.is_empty());
        assert_eq!(lines, all, "{stream:?}");
        assert_eq!(rest, found.rest, "{stream:?}");
        assert_eq!(frame.received(), found.content.len() as u64);
        let cut = found.content.len().saturating_sub(keep);
        assert_eq!(frame.into_content(), &found.content[cut..], "{stream:?}");
        Ok(true)
    });
}
