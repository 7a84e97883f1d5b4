//! The one function that turns user text into shell text.

use std::borrow::Cow;

/// Quotes `text` as one word of a POSIX shell (POSIX.1-2024, XCU 2.2.2 "Single-Quotes").
///
/// Text of plain characters only is returned as it is, so that logged commands stay readable.
pub fn quote(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn a_word_survives_the_shell() {
        for text in
            ["", "plain", "a b", "it's", "$(id)", "`id`", "\"", "\\", "a\nb", "*", "~", "!", "-n", "ä"]
        {
            let script = format!("printf %s {}", quote(text));
            let out = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(String::from_utf8(out.stdout).unwrap(), text);
        }
    }
}
