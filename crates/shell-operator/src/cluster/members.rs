//! The members of JSON objects, cut out of their text without a parser.
//!
//! The text is trusted to be JSON: the API server wrote it. The caller parses the text that is cut out.

/// The members of an object: keys without their quotes, values as text. `None` where the text is not as expected.
pub(super) struct Members<'a> {
    text: &'a [u8],
    /// Where the next member begins, or a comma before it.
    at: usize,
}

/// The next item of an object.
pub(super) enum Next<'a> {
    /// A member with this key.
    Member(&'a [u8]),
    End,
}

impl<'a> Members<'a> {
    pub(super) fn of(object: &'a [u8]) -> Option<Self> {
        let at = skip_spaces(object, 0);
        (object.get(at) == Some(&b'{')).then_some(Self { text: object, at: at + 1 })
    }

    /// The key of the next member, whose value is to be read next.
    pub(super) fn key(&mut self) -> Option<Next<'a>> {
        self.at = skip_spaces(self.text, self.at);
        if self.text.get(self.at) == Some(&b',') {
            self.at = skip_spaces(self.text, self.at + 1);
        }
        if self.text.get(self.at) == Some(&b'}') {
            Some(Next::End)
        } else {
            self.read_key().map(Next::Member)
        }
    }

    fn read_key(&mut self) -> Option<&'a [u8]> {
        let begin = self.at;
        let end = skip_value(self.text, begin)?;
        let key = self.text.get(begin + 1..end.checked_sub(1)?)?;
        let colon = skip_spaces(self.text, end);
        if self.text.get(begin) != Some(&b'"') || self.text.get(colon) != Some(&b':') {
            return None;
        }
        self.at = skip_spaces(self.text, colon + 1);
        Some(key)
    }

    /// The value whose key was read, and all behind it.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The value whose key was read.
    pub(super) fn value(&mut self) -> Option<&'a [u8]> {
        let begin = self.at;
        self.at = skip_value(self.text, begin)?;
        // Something follows every value of an object.
        if self.at < self.text.len() { Some(&self.text[begin..self.at]) } else { None }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Option<(&'a [u8], &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        // Nothing is read behind an error.
        if self.at > self.text.len() {
            return None;
        }
        let member = match self.key() {
            Some(Next::End) => return None,
            Some(Next::Member(key)) => self.value().map(|value| (key, value)),
            None => None,
        };
        if member.is_none() {
            self.at = self.text.len() + 1;
        }
        Some(member)
    }
}

fn skip_spaces(text: &[u8], at: usize) -> usize {
    let spaces = text.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_whitespace());
    at + spaces.count()
}

/// Where the value that begins at `at` ends.
fn skip_value(text: &[u8], at: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, at);
    loop {
        match text.get(at)? {
            b'"' => at = skip_string(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            _ if depth > 0 => at += 1,
            // A number or a literal (`true`, `false`, `null`), up to the next delimiter.
            _ => {
                let rest =
                    text[at..].iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n'));
                return Some(rest.map_or(text.len(), |length| at + length)).filter(|end| *end > at);
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Where the string whose first quote is at `at` ends.
fn skip_string(text: &[u8], at: usize) -> Option<usize> {
    /// Most strings are names: for them a search by vectors costs more to begin than it saves.
    const SHORT: usize = 16;
    let mut at = at + 1;
    loop {
        let rest = text.get(at..)?;
        let ends = |byte: &u8| matches!(byte, b'"' | b'\\');
        let short = rest.iter().take(SHORT).position(ends);
        at += short.or_else(|| memchr::memchr2(b'"', b'\\', rest))?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The member `key` of an object, as text.
pub(super) fn member<'a>(object: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let found = Members::of(object)?.find(|member| member.is_none_or(|(known, _)| known == key.as_bytes()));
    found.flatten().map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found() {
        let line = br#"{"type":"ADDED","object":{"type":"x"}}"#;
        assert_eq!(member(line, "type"), Some(&b"\"ADDED\""[..]));
        assert_eq!(member(line, "object"), Some(&br#"{"type":"x"}"#[..]));
        assert_eq!(member(line, "none"), None);
    }
}
