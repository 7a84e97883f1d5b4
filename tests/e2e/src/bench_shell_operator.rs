//! The results of `shell-operator`: its own bench measures; this module prints them and writes them into the table.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::bench::{Table, write_table};
use crate::report::line;

/// How `--only` names it.
pub(crate) const NAME: &str = "shell-operator";

/// The long run, which is only done on request.
pub(crate) const SOAK: &str = "so_soak";

const TABLE: Table = Table {
    begin: "<!-- figures of shell-operator: written by `make bench` -->",
    end: "<!-- end of the figures of shell-operator -->",
};
const SOAK_TABLE: Table = Table {
    begin: "<!-- figures of so_soak: written by `make bench` -->",
    end: "<!-- end of the figures of so_soak -->",
};

/// Measures, prints a line for each result, and writes the table. True: every goal is reached.
///
/// To be called in the directory of the workspace.
pub(crate) fn run(name: &str, table: Option<&Path>) -> Result<bool> {
    let (words, of_name) = if name == SOAK { (&["--", SOAK][..], &SOAK_TABLE) } else { (&[][..], &TABLE) };
    let mut cargo = Command::new("cargo")
        .args(["bench", "--quiet", "-p", "shell-operator", "--bench", "figures"])
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo, which builds and runs the bench of shell-operator")?;
    let out = cargo.stdout.take().context("the output is piped")?;
    let (mut rows, mut good) = (String::new(), true);
    for text in BufReader::new(out).lines() {
        let text = text?;
        line(&text);
        if let Some(figure) = text.strip_prefix("BENCH ") {
            let (row, reached) = row(figure).with_context(|| format!("cannot read the line `{text}`"))?;
            rows.push_str(&row);
            good &= reached;
        }
    }
    let status = cargo.wait()?;
    // A missed goal makes it fail as well, but not without results.
    ensure!(!rows.is_empty() && (status.success() || !good), "the bench of shell-operator failed: {status}");
    if let Some(file) = table {
        write_table(file, of_name, &rows)?;
    }
    Ok(good)
}

/// A row of the table, and whether its goal is reached.
fn row(figure: &str) -> Option<(String, bool)> {
    let mut words: Vec<&str> = figure.split(' ').collect();
    let verdict = words.pop()?;
    let field = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let (name, value, unit) = (field("name")?, field("value")?, field("unit")?);
    let (beside, goal) = (field("beside")?, field("goal")?);
    let reached = if verdict == "ok" { "yes" } else { "no" };
    Some((format!("| {name} | {value} {unit} | {beside} | {goal} | {reached} |\n"), verdict == "ok"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_a_row() {
        assert_eq!(
            row("name=a value=1.00 unit=s beside=x:2,y:3 goal=>=5.00 short"),
            Some(("| a | 1.00 s | x:2,y:3 | >=5.00 | no |\n".to_owned(), false))
        );
        assert_eq!(row("name=a ok"), None);
    }
}
