//! Detects characters that differ from what they look like, for messages.

/// Invisible characters, and characters that look like a blank.
const INVISIBLE: [(char, char, &str); 12] = [
    ('\u{85}', '\u{85}', "next-line character"),
    ('\u{a0}', '\u{a0}', "no-break space"),
    ('\u{ad}', '\u{ad}', "soft hyphen"),
    ('\u{2000}', '\u{200a}', "typographic blank"),
    ('\u{200b}', '\u{200b}', "zero-width space"),
    ('\u{200c}', '\u{200d}', "zero-width joiner"),
    ('\u{200e}', '\u{200f}', "direction mark"),
    ('\u{2028}', '\u{202f}', "invisible character"),
    ('\u{205f}', '\u{205f}', "typographic blank"),
    ('\u{2060}', '\u{206f}', "invisible character"),
    ('\u{3000}', '\u{3000}', "full-width blank"),
    ('\u{feff}', '\u{feff}', "byte order mark"),
];

/// Characters that look like ASCII characters, with the ASCII character that is meant.
const LOOK_ALIKE: [(&str, &str, char); 9] = [
    ("“”„‟″«»", "typographic quote", '"'),
    ("‘’‚‛′", "typographic quote", '\''),
    ("–", "en dash", '-'),
    ("—―", "em dash", '-'),
    ("−", "minus sign", '-'),
    ("‐‑‒﹣", "typographic hyphen", '-'),
    ("﹕", "small colon", ':'),
    ("、﹐", "ideographic comma", ','),
    ("。", "ideographic full stop", '.'),
];

/// A character that differs from what it looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookAlike {
    /// Its position in the text, in characters from 0.
    pub place: usize,
    /// Its name in a message.
    pub what: String,
    /// The ASCII character that is meant. `None`: it is invisible, or looks like a blank.
    pub meant: Option<char>,
}

impl LookAlike {
    /// Whether a quote is meant.
    pub fn is_quote(&self) -> bool {
        matches!(self.meant, Some('"' | '\''))
    }
}

/// The first such character of a text.
pub fn look_alike(text: &str) -> Option<LookAlike> {
    look_alikes(text).next()
}

pub(crate) fn look_alikes(text: &str) -> impl Iterator<Item = LookAlike> {
    text.chars().enumerate().filter_map(|(place, c)| describe(place, c))
}

fn describe(place: usize, c: char) -> Option<LookAlike> {
    let code = u32::from(c);
    if let Some(name) = invisible(c) {
        return Some(LookAlike { place, what: format!("a {name} (U+{code:04X})"), meant: None });
    }
    let (name, meant) = LOOK_ALIKE
        .iter()
        .find(|(all, ..)| all.contains(c))
        .map(|(_, name, meant)| ((*name).to_owned(), *meant))
        .or_else(|| full_width(c))?;
    let article = if name.starts_with(['a', 'e', 'i']) { "an" } else { "a" };
    let what = format!("{article} {name} `{c}` (U+{code:04X}), not `{meant}`");
    Some(LookAlike { place, what, meant: Some(meant) })
}

fn invisible(c: char) -> Option<&'static str> {
    INVISIBLE.iter().find(|(first, last, _)| (*first..=*last).contains(&c)).map(|(.., name)| *name)
}

/// The Unicode block of full-width forms repeats ASCII in its order.
fn full_width(c: char) -> Option<(String, char)> {
    let meant = char::from_u32(u32::from(c).checked_sub(0xfee0)?).filter(char::is_ascii_graphic)?;
    let name = match meant {
        ':' => "colon",
        ',' => "comma",
        '-' => "hyphen",
        '"' | '\'' => "quote",
        '[' | ']' | '{' | '}' | '(' | ')' => "bracket",
        _ => "character",
    };
    Some((format!("full-width {name}"), meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_named() {
        for (text, said) in [
            ("spec：", Some((4, "a full-width colon `：` (U+FF1A), not `:`", Some(':')))),
            ("a\u{a0}b", Some((1, "a no-break space (U+00A0)", None))),
            ("\u{200b}", Some((0, "a zero-width space (U+200B)", None))),
            ("\u{3000}x", Some((0, "a full-width blank (U+3000)", None))),
            ("“x”", Some((0, "a typographic quote `“` (U+201C), not `\"`", Some('"')))),
            ("–x", Some((0, "an en dash `–` (U+2013), not `-`", Some('-')))),
            ("ａ", Some((0, "a full-width character `ａ` (U+FF41), not `a`", Some('a')))),
            ("größer 节点 é", None),
        ] {
            let said = said.map(|(place, what, meant)| LookAlike { place, what: what.to_owned(), meant });
            assert_eq!(look_alike(text), said, "{text:?}");
        }
    }
}
