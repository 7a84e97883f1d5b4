//! Masks secrets in text from a file. A finding shows a line of the file and values in backticks.
//!
//! All rules use only the text: they must also work if the text is not YAML, if a key is misspelt, and if a quote or colon is
//! missing. In doubt they mask too much.

/// The replacement for a secret.
pub(crate) const MASK: &str = "***";
/// Maximum length of a value in a message, in characters.
const VALUE_SHOWN: usize = 100;

/// A line of the file in the form that may be shown.
pub(crate) fn shown_line(lines: &[String], index: usize) -> String {
    let line = lines.get(index).map_or("", |line| line.trim_end());
    if belongs_to_secret(lines, index) {
        return format!("{}***", &line[..indent(line)]);
    }
    printable(&mask_values(line))
}

/// A message in the form that may be shown: text in backticks may be from the file.
pub(crate) fn shown_message(message: &str) -> String {
    let mut parts: Vec<String> = message.split('`').map(str::to_owned).collect();
    for value in parts.iter_mut().skip(1).step_by(2) {
        let line = value.lines().next().unwrap_or_default();
        let mut shown: String = mask_values(line).chars().take(VALUE_SHOWN).collect();
        if value.lines().nth(1).is_some() || line.chars().count() > VALUE_SHOWN {
            shown.push('…');
        }
        *value = shown;
    }
    printable(&parts.join("`"))
}

/// Whether a line contains only a part of a secret that began in an earlier line.
fn belongs_to_secret(lines: &[String], index: usize) -> bool {
    let line = lines.get(index).map_or("", String::as_str);
    let above = &lines[..index.min(lines.len())];
    let counts = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let before = || above.iter().enumerate().rev().filter(|(_, line)| counts(line));
    // A value that begins in the line after its key.
    let starts_here =
        before().next().is_some_and(|(_, line)| secret_end(line).is_some_and(|end| line[end..].is_empty()));
    // A block such as an inline private key: deeper than its key.
    let parent = before().find(|(_, above)| indent(above) < indent(line));
    let in_block = parent.is_some_and(|(_, key)| {
        secret_end(key).is_some_and(|end| !has_key(line) || key[end..].is_empty() || names_key(key))
    });
    // A block that lost its indentation. A key above may itself be part of the block (`Proc-Type: …`).
    let key = before().find(|(_, above)| !has_key(line) && has_key(above));
    let continues = key.is_some_and(|(i, key)| secret_end(key).is_some() || belongs_to_secret(lines, i));
    starts_here || in_block || continues
}

/// A private key contains lines that look like YAML keys.
fn names_key(line: &str) -> bool {
    let line = line.to_lowercase();
    line.contains("privatekey:") || line.contains("privkey")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Whether the line has a colon that ends a key: text before the colon, and after it a blank, a quote or nothing.
fn has_key(line: &str) -> bool {
    line.match_indices(':').any(|(i, _)| {
        let behind = line[i + 1..].chars().next();
        !line[..i].trim().is_empty() && behind.is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\''))
    })
}

/// Masks the text after the first word that names a secret, and the credentials of URLs.
fn mask_values(text: &str) -> String {
    match secret_end(text) {
        Some(end) if text[end..].trim().is_empty() => text.to_owned(),
        Some(end) => {
            let blanks = text.len() - end - text[end..].trim_start().len();
            format!("{}{MASK}", mask_url_credentials(&text[..end + blanks]))
        }
        None => mask_url_credentials(text),
    }
}

/// The position after the first word that names a secret and the colon or quote after it.
fn secret_end(text: &str) -> Option<usize> {
    let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let mut start = 0;
    for word in text.split(|c| !in_word(c)) {
        let end = start + word.len();
        if names_secret(word) {
            let rest = text[end..].trim_start_matches(['"', '\'', ':', ' ', '=']);
            // A block's value begins in the next line.
            let rest = rest.trim_start_matches(['|', '>']).trim_end();
            let tail = if rest.is_empty() || rest == "-" || rest == "+" { text.len() } else { end };
            let colon = text[end..].find(':').filter(|i| *i <= 2).map_or(end, |i| end + i + 1);
            return Some(tail.max(colon));
        }
        start = end + text[end..].chars().next().map_or(0, char::len_utf8);
    }
    None
}

/// Whether the value of a key with this name is treated as a secret.
pub fn names_secret(word: &str) -> bool {
    const PARTS: [&str; 7] = ["pass", "pwd", "secret", "token", "privatekey", "privkey", "credential"];
    const NAMES: [&str; 3] = ["password", "sudopassword", "privatekey"];
    // Paths and public keys are not secrets, and showing them helps.
    const HARMLESS: [&str; 2] = ["privatekeypath", "hostkey"];
    let word = word.to_lowercase();
    !HARMLESS.contains(&word.as_str())
        && (PARTS.iter().any(|part| word.contains(part))
            || NAMES.iter().any(|name| strsim::damerau_levenshtein(name, &word) <= 2))
}

/// `https://user:password@host` becomes `https://***@host`.
fn mask_url_credentials(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("://").map(|i| i + 3) {
        let end =
            rest[start..].find(|c: char| c == '/' || c.is_whitespace()).map_or(rest.len(), |i| start + i);
        shown.push_str(&rest[..start]);
        match rest[start..end].rfind('@') {
            Some(at) => shown.extend(["***", &rest[start + at..end]]),
            None => shown.push_str(&rest[start..end]),
        }
        rest = &rest[end..];
    }
    shown + rest
}

/// Replaces control characters, which could control the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secrets_are_masked_however_they_are_written() {
        let cases = [
            ("    password: hunter2", "    password: ***"),
            ("    pasword: hunter2", "    pasword: ***"),
            ("    Passwort: hunter2", "    Passwort: ***"),
            ("    password hunter2", "    password ***"),
            ("    passwd: [hunter2", "    passwd: ***"),
            ("- {name: node1, password: hunter2, port: ssh}", "- {name: node1, password: ***"),
            ("{\"password\":\"hunter2\"}", "{\"password\":***"),
            ("- {name: a, password:hunter2}", "- {name: a, password:***"),
            ("    privatKey: hunter2", "    privatKey: ***"),
            ("    privateKey: |", "    privateKey: |"),
            ("    privateKey: >-", "    privateKey: >-"),
            ("    password:", "    password:"),
            ("    privateKeyPath: ~/.ssh/id", "    privateKeyPath: ~/.ssh/id"),
            ("    port: ssh", "    port: ssh"),
            ("    address: fd00::1", "    address: fd00::1"),
            (
                "[https://u:p@a.example/x, https://b, http://t@c]",
                "[https://***@a.example/x, https://b, http://***@c]",
            ),
            ("name: \u{1b}[2J", "name: \u{fffd}[2J"),
        ];
        for (line, shown) in cases {
            assert_eq!(shown_line(&[line.to_owned()], 0), shown);
        }
    }

    #[test]
    fn a_value_over_several_lines_is_masked_in_each() {
        let lines =
            ["  privateKey: |", "    Proc-Type: 4", "    hunter2", " hunter2", "- hunter2", "  port: 22"];
        let lines = lines.map(str::to_owned);
        let shown: Vec<String> = (0..lines.len()).map(|i| shown_line(&lines, i)).collect();
        assert_eq!(shown, ["  privateKey: |", "    ***", "    ***", " ***", "***", "  port: 22"]);
        assert_eq!(shown_line(&["  password:", "  hunter2, port: 22"].map(str::to_owned), 1), "  ***");
    }

    #[test]
    fn values_in_messages_are_masked_and_shortened() {
        let message = "`10.0.0.1, password: hunter2` is not an address of `node1`, which has no password";
        let shown = "`10.0.0.1, password: ***` is not an address of `node1`, which has no password";
        assert_eq!(shown_message(message), shown);
        assert_eq!(shown_message("not `two\nlines`"), "not `two…`");
    }
}
