//! Snapshots of every help page, and checks of their text.

use clap::{Command, CommandFactory};
use insta::assert_snapshot;
use kk::args::Cli;

/// The command with all its subcommands, as `kk a b` and its help page.
fn pages(command: &mut Command, path: &str, pages: &mut Vec<(String, String)>) {
    pages.push((path.to_owned(), command.render_long_help().to_string()));
    for name in command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect::<Vec<_>>() {
        if name != "help" {
            let sub = command.find_subcommand_mut(&name).expect("it was listed");
            self::pages(sub, &format!("{path} {name}"), pages);
        }
    }
}

fn all_pages() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut command = Cli::command();
    command.build();
    pages(&mut command, "kk", &mut all);
    all
}

#[test]
fn help_pages() {
    let text: Vec<String> = all_pages().iter().map(|(path, page)| format!("# {path}\n\n{page}")).collect();
    assert_snapshot!(text.join("\n"));
}

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_examples_that_are_accepted() {
    for (path, page) in all_pages() {
        if page.contains("\nCommands:\n") && path != "kk" {
            continue;
        }
        let (_, examples) =
            page.split_once("Examples:\n").unwrap_or_else(|| panic!("{path} has no examples"));
        for line in examples.lines().take_while(|line| !line.is_empty()) {
            let words = line.trim().split("  ").next().unwrap_or_default();
            let words = words.split(['<', '>']).next().unwrap_or_default().split_whitespace();
            let parsed = Cli::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{path}: {line}: {}", parsed.unwrap_err());
        }
    }
}
