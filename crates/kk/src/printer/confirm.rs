//! The question before the first change.

use std::io::{BufRead, Write};

use crate::error::Error;

/// Asks until the answer is yes or no. The end of the input counts as no.
pub(super) fn ask(question: &str, input: &mut impl BufRead, output: &mut impl Write) -> Result<bool, Error> {
    let failed = |error| Error::other("ask on the terminal", error);
    loop {
        write!(output, "{question} [yes/no] ").and_then(|()| output.flush()).map_err(failed)?;
        let mut answer = String::new();
        if input.read_line(&mut answer).map_err(failed)? == 0 {
            writeln!(output).map_err(failed)?;
            return Ok(false);
        }
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ask;

    #[test]
    fn asks_again_until_the_answer_is_yes_or_no() {
        let cases = [
            ("yes\n", true, 1),
            ("Y\n", true, 1),
            ("NO\n", false, 1),
            ("\nok\ny\n", true, 3),
            ("maybe\n", false, 2),
        ];
        for (typed, expected, times) in cases {
            let mut shown = Vec::new();
            assert_eq!(ask("Go on?", &mut typed.as_bytes(), &mut shown).unwrap(), expected, "{typed:?}");
            let shown = String::from_utf8(shown).unwrap();
            assert_eq!(shown.matches("Go on? [yes/no] ").count(), times, "{typed:?}");
        }
    }
}
