//! The behaviour that hooks may rely on, as data: one file in `cases/` for each behaviour.
//!
//! A file describes the behaviour, and shows it by its contents: a hook's configuration and how it is understood, files of a run
//! and their effects, hooks on a real API server and their contexts. Behaviours that only code can show name the tests that do;
//! those that do not apply state why. Their number is known, so nothing is forgotten.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod case;
mod cluster;
mod config;
mod context;
mod effects;
mod hook;
mod named;
mod program;
mod queue;
mod schedule;
mod value;
mod webhook;

#[path = "../it/cluster/control_plane.rs"]
#[expect(dead_code, reason = "the tests of faults need more of it")]
mod control_plane;
#[path = "../it/cluster/operator.rs"]
#[expect(dead_code, reason = "the other tests need more of it")]
mod operator;
#[path = "../it/cluster/programs.rs"]
mod programs;

use libtest_mimic::{Arguments, Trial};

use case::Way;

/// Number of behaviours; each has its file.
const BEHAVIOURS: usize = 122;

fn main() {
    let arguments = Arguments::from_args();
    let cases = case::load_all();
    let mut trials = vec![Trial::test("every_behaviour_has_its_file", {
        let names: Vec<String> = cases.iter().map(|(name, _)| name.clone()).collect();
        move || every_behaviour_has_its_file(&names)
    })];
    let count = |way| cases.iter().filter(|(_, case)| case.way() == way).count();
    let summary = format!(
        "conformance: {} run, {} by named test, {} not applicable; {} in all",
        count(Way::Run),
        count(Way::Test),
        count(Way::NotApplicable),
        cases.len()
    );
    for (name, case) in cases {
        let ignored = case.way() == Way::NotApplicable;
        trials.push(Trial::test(name, move || case.run().map_err(Into::into)).with_ignored_flag(ignored));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    say(&summary);
    conclusion.exit();
}

#[expect(clippy::print_stdout, reason = "a test program speaks to whoever runs it")]
fn say(text: &str) {
    println!("{text}");
}

fn every_behaviour_has_its_file(names: &[String]) -> Result<(), libtest_mimic::Failed> {
    if names.len() == BEHAVIOURS {
        Ok(())
    } else {
        Err(format!("there must be {BEHAVIOURS} files in cases/, but are {}", names.len()).into())
    }
}
