//! Strings with the escapes that Go's HTML-safe encoder uses, or jq.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The characters that are escaped in addition to quotes, backslashes and control characters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// Characters that must not occur in HTML or old JavaScript; backspace and form feed by their numbers.
    Html,
    /// Only the delete character.
    Jq,
}

impl Escapes {
    /// Whether `byte` may have to be escaped; everything else is copied in one piece.
    fn needs_look(self, byte: u8) -> bool {
        match byte {
            0..0x20 | b'"' | b'\\' => true,
            b'<' | b'>' | b'&' | 0xe2 => self == Self::Html,
            0x7f => self == Self::Jq,
            _ => false,
        }
    }
}

/// Appends `bytes` as a JSON string; what is not UTF-8 becomes U+FFFD.
pub(super) fn write_string(out: &mut Vec<u8>, bytes: &[u8], escapes: Escapes) {
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    for chunk in bytes.utf8_chunks() {
        write_valid(out, chunk.valid().as_bytes(), escapes);
        if !chunk.invalid().is_empty() {
            out.extend_from_slice(b"\\ufffd");
        }
    }
    out.push(b'"');
}

fn write_valid(out: &mut Vec<u8>, bytes: &[u8], escapes: Escapes) {
    let mut done = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if !escapes.needs_look(byte) {
            continue;
        }
        // U+2028 and U+2029 are E2 80 A8 and E2 80 A9: legal JSON, but not legal in old JavaScript.
        if byte == 0xe2
            && !(bytes[at..].starts_with(b"\xe2\x80\xa8") || bytes[at..].starts_with(b"\xe2\x80\xa9"))
        {
            continue;
        }
        out.extend_from_slice(&bytes[done..at]);
        done = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 if escapes == Escapes::Jq => out.extend_from_slice(b"\\b"),
            0x0c if escapes == Escapes::Jq => out.extend_from_slice(b"\\f"),
            0xe2 => {
                out.extend_from_slice(if bytes[at + 2] == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                done = at + 3;
            }
            other => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(other >> 4)]);
                out.push(HEX[usize::from(other & 15)]);
            }
        }
    }
    out.extend_from_slice(&bytes[done..]);
}
