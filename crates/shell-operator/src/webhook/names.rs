//! Names of webhooks as parts of a URL.

/// `test-policy.example.com` becomes `test-policy-example-com`, `importantHook` becomes `important-hook`.
///
/// A capital gets a `-` before it, everything but `a-z0-9-/` becomes `-`, and repeated `-` become one.
pub fn path_of(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    let mut push = |c: char| {
        if c != '-' || !(path.is_empty() || path.ends_with('-')) {
            path.push(c);
        }
    };
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            push('-');
        }
        let c = c.to_ascii_lowercase();
        push(if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '/' { c } else { '-' });
    }
    path.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (name, expected) in [
            ("importantHook", "important-hook"),
            ("weird---dashed---Name", "weird-dashed-name"),
            ("test-policy.example.com", "test-policy-example-com"),
            ("Größe.example", "gr-e-example"),
        ] {
            assert_eq!(path_of(name), expected, "{name}");
        }
    }
}
