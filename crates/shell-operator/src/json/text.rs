//! Strings with the escapes that Go's HTML-safe encoder uses.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `bytes` as a JSON string; what is not UTF-8 becomes U+FFFD.
pub fn write_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    for chunk in bytes.utf8_chunks() {
        write_valid(out, chunk.valid().as_bytes());
        if !chunk.invalid().is_empty() {
            out.extend_from_slice(b"\\ufffd");
        }
    }
    out.push(b'"');
}

fn write_valid(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut done = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if !needs_look(byte) {
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

/// Whether `byte` may have to be escaped; everything else is copied in one piece.
fn needs_look(byte: u8) -> bool {
    matches!(byte, 0..0x20 | b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2)
}
