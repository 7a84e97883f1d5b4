//! Detects dashes and quotes on the command line that a web page or an editor has replaced by typographic characters.

use crate::error::Error;

/// The error for a word that begins with a character that resembles a dash or a quote. clap would treat it as a name.
pub fn refused(line: &[String]) -> Option<Error> {
    let mistaken = |word: &&String| {
        let found = kk_config::look_alike(word)?;
        let dashes_before = word.chars().take(found.place).all(|c| c == '-');
        let misleads = found.meant == Some('-') || found.is_quote();
        (dashes_before && found.place < 2 && misleads).then_some(found)
    };
    let (word, found) = line.iter().find_map(|word| Some((word, mistaken(&word)?)))?;
    let hint = if found.meant == Some('-') {
        let name = word.trim_start_matches(|c: char| c == '-' || !c.is_ascii());
        let dashes = if name.chars().count() > 1 { "--" } else { "-" };
        format!("write `{dashes}{name}`")
    } else {
        "type the quotes again: the text was probably copied from a web page or a document".to_owned()
    };
    Some(Error::Usage { message: format!("`{word}` begins with {}", found.what), hint })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typographic_dashes_are_named_with_what_to_write() {
        for (word, answer) in [
            ("–with-kubernetes", Some("write `--with-kubernetes`")),
            ("—yes", Some("write `--yes`")),
            ("-–yes", Some("write `--yes`")),
            ("–f", Some("write `-f`")),
            ("−y", Some("write `-y`")),
            ("“cluster.yaml”", Some("type the quotes again")),
            ("--yes", None),
            ("cluster–new.yaml", None),
            ("（新）.yaml", None),
            ("-", None),
        ] {
            let said = refused(&[word.to_owned()]).map(|error| match error {
                Error::Usage { message, hint } => format!("{message}: {hint}"),
                other => panic!("{other:?}"),
            });
            assert_eq!(said.is_some(), answer.is_some(), "{word}: {said:?}");
            assert!(said.unwrap_or_default().contains(answer.unwrap_or_default()), "{word}");
        }
    }
}
