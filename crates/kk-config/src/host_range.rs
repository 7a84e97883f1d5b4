//! Expands host ranges of role groups: `node[1:5]`, `node[01:12]` (padded), `node[1,3,5]`, and mixtures.

/// Maximum number of names in one range.
const MAX_NAMES: usize = 10_000;

/// Maximum number of digits in a number of a range.
const MAX_DIGITS: usize = 9;

/// The names in an entry of a role group; the entry itself if it has no brackets. Text after the bracket is kept
/// (`node[1:3].example`); KubeKey drops it. The error states why the range is wrong.
pub(crate) fn expand(entry: &str) -> Result<Vec<String>, String> {
    let Some((prefix, rest)) = entry.split_once('[') else {
        return if entry.contains(']') {
            Err("`]` has no `[`".to_owned())
        } else {
            Ok(vec![entry.to_owned()])
        };
    };
    let (inside, suffix) = rest.split_once(']').ok_or("`[` has no `]`")?;
    if suffix.contains(['[', ']']) {
        return Err("only one range fits in a name".to_owned());
    }
    let mut names = Vec::new();
    for part in inside.split(',') {
        let (first, last) = part.split_once(':').unwrap_or((part, part));
        let (start, end) = (number(first)?, number(last)?);
        if end < start {
            return Err(format!("{last} is less than {first}"));
        }
        if names.len() + (end - start) >= MAX_NAMES {
            return Err(format!("more than {MAX_NAMES} hosts"));
        }
        // A leading zero means padding to the width of the first number.
        let width = if first.trim().starts_with('0') { first.trim().len() } else { 0 };
        names.extend((start..=end).map(|i| format!("{prefix}{i:0width$}{suffix}")));
    }
    Ok(names)
}

fn number(text: &str) -> Result<usize, String> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("`{text}` is not a number"));
    }
    // Leading zeros count, too: they become part of every name.
    let number = (text.len() <= MAX_DIGITS).then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| format!("`{text}` has more than {MAX_DIGITS} digits"))
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn expands_ranges_and_lists() {
        let cases = [
            ("node1", "node1"),
            ("node[1:3]", "node1 node2 node3"),
            ("node[9:11]", "node9 node10 node11"),
            ("node[08:11]", "node08 node09 node10 node11"),
            ("node[1,3,5]", "node1 node3 node5"),
            ("node[1:2, 7]", "node1 node2 node7"),
            ("node[0:1].example", "node0.example node1.example"),
            ("node[4:4]", "node4"),
        ];
        for (entry, names) in cases {
            assert_eq!(expand(entry).unwrap().join(" "), names, "{entry}");
        }
    }

    #[test]
    fn refuses_what_is_no_range() {
        for entry in [
            "node[1:3",
            "node1]",
            "node[]",
            "node[a:b]",
            "node[3:1]",
            "node[1:2][3:4]",
            "node[1:]",
            "node[-1:2]",
        ] {
            assert!(expand(entry).is_err(), "{entry}");
        }
        assert_eq!(expand("node[1:1000000000]").unwrap_err(), "`1000000000` has more than 9 digits");
        assert!(expand("node[1:99999999]").is_err() && expand("node[1:9999999999999999999999]").is_err());
    }
}
