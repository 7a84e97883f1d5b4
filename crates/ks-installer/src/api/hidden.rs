//! What the API server repeats of an object that it refuses may be a password; messages go into the status and the log.

/// What stands before a repeated text, behind the path of its field.
const REPEATS: &str = ": Invalid value: \"";
/// Words in the names of fields that hold what nobody else may know.
const SECRET: [&str; 3] = ["password", "secret", "token"];

/// The message without the values of such fields.
pub(super) fn without_secrets(message: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(message.len()), message);
    while let Some(at) = rest.find(REPEATS) {
        let (before, after) = rest.split_at(at + REPEATS.len());
        let path = rest[..at].rsplit(char::is_whitespace).next().unwrap_or_default().to_lowercase();
        let (value, behind) = after.split_at(end_of_text(after));
        shown.push_str(before);
        shown.push_str(if SECRET.iter().any(|word| path.contains(word)) { "…" } else { value });
        rest = behind;
    }
    shown + rest
}

/// Where a quoted text ends, in Go's form.
fn end_of_text(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        r#"User "a" is invalid: spec.password: Invalid value: "wo\"rd": spec.password in body"#,
        r#"User "a" is invalid: spec.password: Invalid value: "…": spec.password in body"#
    )]
    #[case(
        r#"[data.adminSecret: Invalid value: "x": no, spec.port: Invalid value: "y": no]"#,
        r#"[data.adminSecret: Invalid value: "…": no, spec.port: Invalid value: "y": no]"#
    )]
    #[case(r#"spec.token: Invalid value: "not closed"#, r#"spec.token: Invalid value: "…"#)]
    #[case("spec.password: Required value", "spec.password: Required value")]
    fn values_of_secret_fields_are_not_repeated(#[case] said: &str, #[case] shown: &str) {
        assert_eq!(without_secrets(said), shown);
    }
}
