//! Makes text from other machines safe for a terminal.

use std::borrow::Cow;

/// Escapes characters that control a terminal or change the order in which text is shown: C0 and C1 except newline and tab,
/// DEL, and the marks of bidirectional text. Text without any of them is returned as it is.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Does the same for a JSON document. The meaning stays the same, because JSON has its own escapes.
pub fn escape_json_controls(document: &str) -> Cow<'_, str> {
    if !document.contains(is_unsafe) {
        return Cow::Borrowed(document);
    }
    let escape = |c: char| if is_unsafe(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(document.chars().map(escape).collect())
}

fn is_unsafe(c: char) -> bool {
    // The marks of bidirectional text are in Bidi_Control of the Unicode character database.
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_controls_a_terminal_is_escaped_and_other_text_stays() {
        for (text, shown) in [
            ("plain ä 漢字 \\ text\n\tindented", "plain ä 漢字 \\ text\n\tindented"),
            ("\u{1b}[2A\u{1b}[2K", "\\u{1b}[2A\\u{1b}[2K"),
            ("\u{1b}]52;c;ZXZpbA==\u{7}", "\\u{1b}]52;c;ZXZpbA==\\u{7}"),
            ("over\rwritten\u{8}\0", "over\\u{d}written\\u{8}\\u{0}"),
            ("\u{7f}\u{9b}2J\u{85}", "\\u{7f}\\u{9b}2J\\u{85}"),
            ("\u{202e}txt\u{2069}\u{200e}\u{61c}", "\\u{202e}txt\\u{2069}\\u{200e}\\u{61c}"),
        ] {
            assert_eq!(escape_controls(text), shown);
        }
    }

    #[test]
    fn an_escaped_json_document_has_the_same_values() {
        let text = "\u{9b}2J\u{7f} \u{202e}";
        let document = format!("{{\n  \"a\": \"{text}\"\n}}");
        let escaped = escape_json_controls(&document);
        assert!(!escaped.contains(is_unsafe), "{escaped:?}");
        assert_eq!(escaped, "{\n  \"a\": \"\\u009b2J\\u007f \\u202e\"\n}");
    }
}
