//! Cuts the items out of a list while it arrives, so that no list is ever in memory as a whole.

/// Finds the elements of the top-level array `items` in JSON text that arrives in pieces.
///
/// It trusts the text to be JSON: the items are parsed after it, and the API server wrote it.
#[derive(Debug, Default)]
pub(super) struct ItemScanner {
    /// Open brackets.
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// Text of the string at depth 1 that was read last: the key, when a `:` follows.
    key: Vec<u8>,
    in_items: bool,
    /// The item being read.
    item: Vec<u8>,
    /// Everything outside the items: the list's own metadata.
    rest: Vec<u8>,
}

impl ItemScanner {
    /// Takes the next piece and calls `found` with each item that it completes.
    pub(super) fn feed<E>(
        &mut self,
        piece: &[u8],
        mut found: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = 0;
        while at < piece.len() {
            if self.in_string {
                at = self.skip_string(piece, at);
                continue;
            }
            let byte = piece[at];
            at += 1;
            match byte {
                b'"' => {
                    self.in_string = true;
                    self.key.clear();
                }
                b'{' | b'[' => {
                    self.in_items |= self.depth == 1 && byte == b'[' && self.key == b"items";
                    self.depth += 1;
                    if self.in_items && self.depth == 2 {
                        self.rest.push(byte);
                        continue;
                    }
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.in_items && self.depth == 1 {
                        self.in_items = false;
                    }
                }
                b',' if self.in_items && self.depth == 2 => continue,
                _ => {}
            }
            self.keep(&[byte]);
            if self.in_items && self.depth == 2 && byte == b'}' {
                found(&self.item)?;
                self.item.clear();
            }
        }
        Ok(())
    }

    /// The list without its items. The text must have been read to its end.
    pub(super) fn into_rest(self) -> Vec<u8> {
        self.rest
    }

    /// Goes over string bytes from `at` to the end of the string or of the piece.
    fn skip_string(&mut self, piece: &[u8], at: usize) -> usize {
        let mut next = at;
        if self.escaped {
            self.escaped = false;
            next += 1;
        }
        loop {
            match memchr::memchr2(b'"', b'\\', &piece[next.min(piece.len())..]) {
                None => {
                    // The string continues in the next piece, perhaps in the middle of an escape.
                    self.take_text(&piece[at..]);
                    return piece.len();
                }
                Some(offset) if piece[next + offset] == b'\\' => {
                    next += offset + 2;
                    self.escaped = next > piece.len();
                }
                Some(offset) => {
                    let end = next + offset;
                    self.take_text(&piece[at..end]);
                    self.keep(b"\"");
                    self.in_string = false;
                    return end + 1;
                }
            }
        }
    }

    fn take_text(&mut self, text: &[u8]) {
        if self.depth == 1 {
            self.key.extend_from_slice(text);
        }
        self.keep(text);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.in_items { self.item.extend_from_slice(bytes) } else { self.rest.extend_from_slice(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str, piece: usize) -> (Vec<String>, String) {
        let (mut scanner, mut items) = (ItemScanner::default(), Vec::new());
        for chunk in text.as_bytes().chunks(piece) {
            scanner
                .feed(chunk, |item| {
                    items.push(serde_json::from_slice::<serde_json::Value>(item)?.to_string());
                    Ok::<(), serde_json::Error>(())
                })
                .unwrap();
        }
        (items, String::from_utf8(scanner.into_rest()).unwrap())
    }

    #[test]
    fn items_are_found_wherever_the_text_is_cut() {
        let item = r#"{"a":"}]\\\",[","items":[{"b":1},{"b":2}],"c":["x"]}"#;
        for text in [
            format!(r#"{{"kind":"L","metadata":{{"resourceVersion":"5"}}, "items":[ {item}, {item} ]}}"#),
            format!(
                r#"{{"items":[{item},{item}],"kind":"L","metadata":{{"resourceVersion":"5","items":[]}}}}"#
            ),
        ] {
            for piece in 1..text.len() {
                let (items, rest) = scan(&text, piece);
                assert_eq!(items, [item, item], "in pieces of {piece}");
                let rest: serde_json::Value = serde_json::from_str(&rest).unwrap();
                assert_eq!(rest["metadata"]["resourceVersion"], "5");
            }
        }
    }

    #[test]
    fn no_items() {
        for text in [r#"{"items":[],"metadata":{}}"#, r#"{"items":null,"metadata":{}}"#, r#"{"metadata":{}}"#]
        {
            assert_eq!(scan(text, 3).0, Vec::<String>::new(), "{text}");
        }
    }
}
