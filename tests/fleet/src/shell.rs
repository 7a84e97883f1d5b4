//! Reads the few shapes of shell text that kk sends: words with single quotes, and the lists of the probe.

/// The words of a simple command. Double quotes keep what is between them; nothing is expanded.
pub(super) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut open) = (Vec::new(), None::<String>, None::<char>);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (open, c) {
            (Some(quote), c) if c == quote => open = None,
            (None, '\'' | '"') => {
                open = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, ' ' | '\t' | '\n') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The words that a list of the probe holds: `name() { "$@" WORDS; }`.
pub(super) fn list(script: &str, name: &str) -> Vec<String> {
    let begin = format!("{name}() {{ \"$@\"");
    let line = script.lines().find_map(|line| line.strip_prefix(begin.as_str())?.strip_suffix("; }"));
    line.map(words).unwrap_or_default()
}

/// A question of the probe.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) number: usize,
    pub(super) snippet: String,
}

/// The questions of a probe. A snippet may have several lines.
pub(super) fn questions(script: &str) -> Vec<Question> {
    let body = script.split_once("kk_questions() {").map_or("", |(_, rest)| rest);
    let mut questions = Vec::new();
    for part in body.split("    { timeout ").skip(1) {
        let Some((command, rest)) = part.split_once(" </dev/null >reply.") else { continue };
        let number = rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|number| number.parse().ok());
        // [-k 2] SECONDS sh -c SNIPPET
        if let (Some(number), Some(snippet)) = (number, words(command).pop()) {
            questions.push(Question { number, snippet });
        }
    }
    questions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_shell() {
        assert_eq!(
            words("kk_put 'a b'c /x/y '' \"q $z\" 'it'\\''s'"),
            ["kk_put", "a bc", "/x/y", "", "q $z", "it's"]
        );
    }

    #[test]
    fn the_lists_and_questions_of_a_probe_are_found() {
        let script = "kk_files() { \"$@\" /a/b '/c d'/*; }\nkk_users() { \"$@\"; }\nkk_questions() {\n    :\n    \
            { timeout -k 2 20 sh -c 'one\ntwo' </dev/null >reply.0 2>error.0; echo $? >code.0; } &\n    \
            { timeout -k 2 5 sh -c three </dev/null >reply.1 2>error.1; echo $? >code.1; } &\n}\nrest";
        assert_eq!(list(script, "kk_files"), ["/a/b", "/c d/*"]);
        assert!(list(script, "kk_users").is_empty());
        let question = |number, snippet: &str| Question { number, snippet: snippet.into() };
        assert_eq!(questions(script), [question(0, "one\ntwo"), question(1, "three")]);
    }
}
