//! Removes secrets from messages of the API server. If it refuses an object, its message repeats values, which may be passwords.
//! The messages are written to the status and the log.

/// Texts between the path of a field and its repeated value: the kinds of errors of
/// `k8s.io/apimachinery/pkg/util/validation/field` that repeat a value.
const REPEATS: [&str; 4] =
    [": Invalid value: ", ": Unsupported value: ", ": Duplicate value: ", ": Not found: "];
/// Words in the names of fields that contain secrets.
const SECRET: [&str; 7] = ["password", "passwd", "secret", "token", "key", "credential", "auth"];

/// The message without the values of such fields.
pub(super) fn without_secrets(message: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(message.len()), message);
    while let Some((at, begin)) = next_value(rest) {
        let path = rest[..at].rsplit(char::is_whitespace).next().unwrap_or_default();
        let (before, after) = rest.split_at(begin);
        let (value, behind) = after.split_at(end_of_value(after));
        shown.push_str(before);
        // The names of fields are inside a repeated object.
        let is_text = value.starts_with('"');
        if names_a_secret(path) || !is_text && names_a_secret(value) {
            shown.push_str(if is_text { "\"…\"" } else { "…" });
        } else {
            shown.push_str(value);
        }
        rest = behind;
    }
    shown + rest
}

fn names_a_secret(text: &str) -> bool {
    let text = text.to_lowercase();
    SECRET.iter().any(|word| text.contains(word))
}

/// Positions at which the next path ends and the following value begins.
fn next_value(text: &str) -> Option<(usize, usize)> {
    let found = REPEATS.iter().filter_map(|words| text.find(words).map(|at| (at, at + words.len())));
    found.min()
}

/// Position at which a value ends. A quoted text in Go's form ends with its quote, other values end before the next part of the
/// message.
fn end_of_value(text: &str) -> usize {
    let (mut quoted, mut escaped, mut depth) = (false, false, 0_u32);
    for (at, letter) in text.char_indices() {
        let rest = &text[at..];
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => {
                quoted = !quoted;
                if !quoted && depth == 0 && text.starts_with('"') {
                    return at + 1;
                }
            }
            _ if quoted => {}
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' if depth == 0 => return at,
            '}' | ']' | ')' => depth -= 1,
            _ if depth == 0 && (rest.starts_with(": ") || rest.starts_with(", ")) => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn values_of_secret_fields_are_not_repeated() {
        for (case, said, shown) in [
            (
                "text",
                r#"User "a" is invalid: spec.password: Invalid value: "wo\"rd": spec.password in body"#,
                r#"User "a" is invalid: spec.password: Invalid value: "…": spec.password in body"#,
            ),
            (
                "one_of_two",
                r#"[data.adminSecret: Invalid value: "x": no, spec.port: Invalid value: "y": no]"#,
                r#"[data.adminSecret: Invalid value: "…": no, spec.port: Invalid value: "y": no]"#,
            ),
            ("not_closed", r#"spec.token: Invalid value: "not closed"#, r#"spec.token: Invalid value: "…""#),
            ("nothing_repeated", "spec.password: Required value", "spec.password: Required value"),
            (
                "unsupported",
                r#"spec.authMode: Unsupported value: "x": supported values: "a", "b""#,
                r#"spec.authMode: Unsupported value: "…": supported values: "a", "b""#,
            ),
            (
                "number",
                "spec.passwd: Invalid value: 1234: must be a text",
                "spec.passwd: Invalid value: …: must be a text",
            ),
            (
                "number_in_a_list",
                "[spec.apiKey: Duplicate value: 1234, spec.port: Invalid value: 99: too large]",
                "[spec.apiKey: Duplicate value: …, spec.port: Invalid value: 99: too large]",
            ),
            (
                "object",
                r#"spec.credentials[0]: Duplicate value: map[string]interface {}{"a":"b: c", "d":1}"#,
                "spec.credentials[0]: Duplicate value: …",
            ),
            (
                "object_with_such_a_field",
                r#"[env[1]: Duplicate value: {"name":"TOKEN","value":"x, y"}, spec.b: Not found: "c"]"#,
                r#"[env[1]: Duplicate value: …, spec.b: Not found: "c"]"#,
            ),
            (
                "others_stay",
                r#"spec.port: Invalid value: 99: too large; spec.name: Duplicate value: "a""#,
                r#"spec.port: Invalid value: 99: too large; spec.name: Duplicate value: "a""#,
            ),
        ] {
            assert_eq!(without_secrets(said), shown, "{case}");
        }
    }
}
