//! Runs the data cases in `tests/cases/<action>/*.yaml`: facts in, change and script out.
//!
//! A case has `action` (the constructor's argument), `facts`, `change` (its lines; none means nothing to do). It may have
//! `script` (the text that would run) and `failure` (a host's message, and the resulting failure).

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use kk_connector::UploadFile;
use kk_engine::{
    Action, Apply, Change, Facts,
    actions::{
        Block, ClusterIdentity, Command, Directory, File, KernelModules, SwapOff, Sysctls, Unit, Upload,
        User, WaitUntil,
    },
};
use serde::{Deserialize, de::DeserializeOwned};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case<A> {
    action: A,
    facts: Facts,
    change: Vec<String>,
    script: Option<String>,
    failure: Option<Failing>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failing {
    code: i32,
    stderr: String,
    hint: Option<String>,
    #[serde(default)]
    transient: bool,
}

/// Runs all cases of an action. There must be at least one case without a change, one with a change, and one failure.
fn cases<A: DeserializeOwned, T: Action>(name: &str, build: impl Fn(A) -> T) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(name);
    let (mut none, mut change, mut failures) = (0, 0, 0);
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let case: Case<A> =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let action = build(case.action);
        let wanted = if case.change.is_empty() { Change::None } else { Change::Needed(case.change) };
        assert_eq!(action.check(&case.facts), wanted, "{}", path.display());
        let there = if wanted.is_needed() { &mut change } else { &mut none };
        *there += 1;
        if let Some(script) = case.script {
            let Apply::Script(made) = action.apply(&case.facts) else {
                panic!("{} is no script", path.display())
            };
            assert_eq!(made.text, script, "{}", path.display());
        }
        if let Some(failing) = case.failure {
            failures += 1;
            assert_eq!(action.hint(&failing.stderr), failing.hint, "{}", path.display());
            assert_eq!(
                action.transient(failing.code, &failing.stderr),
                failing.transient,
                "{}",
                path.display()
            );
        }
    }
    assert!(
        none > 0 && change > 0 && failures > 0,
        "{name}: {none} without change, {change} with, {failures} failures"
    );
}

#[test]
fn file() {
    #[derive(Deserialize)]
    struct Input {
        path: String,
        text: String,
        mode: Option<u32>,
        owner: Option<String>,
    }
    cases("file", |input: Input| {
        let file = File::text(input.path, input.text).mode(input.mode.unwrap_or(0o644));
        file.owner(input.owner.unwrap_or("root:root".into()))
    });
}

#[test]
fn directory() {
    #[derive(Deserialize)]
    struct Input {
        path: String,
        mode: u32,
        owner: String,
    }
    cases("directory", |input: Input| Directory::new(input.path).mode(input.mode).owner(input.owner));
}

#[test]
fn unit() {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Input {
        name: String,
        enabled: Option<bool>,
        started: Option<bool>,
        restart_after: Vec<String>,
        force_restart: bool,
        reload: bool,
        no_block: bool,
    }
    cases("unit", |input: Input| {
        let unit = match (input.enabled, input.started) {
            (Some(true), Some(true)) => Unit::running(input.name),
            (Some(false), Some(false)) => Unit::stopped(input.name),
            (Some(true), None) => Unit::enabled(input.name),
            (None, Some(true)) => Unit::started(input.name),
            other => panic!("no constructor for {other:?}"),
        };
        let unit = unit.restart_after(input.restart_after).force_restart(input.force_restart);
        let unit = if input.reload { unit.reload() } else { unit };
        if input.no_block { unit.no_block() } else { unit }
    });
}

#[test]
fn upload() {
    #[derive(Deserialize)]
    struct Input {
        files: Vec<InputFile>,
    }
    #[derive(Deserialize)]
    struct InputFile {
        source: String,
        target: String,
        mode: u32,
        sha256: String,
    }
    cases("upload", |input: Input| {
        let files = input.files.into_iter().map(|file| UploadFile {
            source: file.source.into(),
            target: file.target,
            mode: file.mode,
            sha256: file.sha256,
        });
        Upload::new(files.collect())
    });
}

#[test]
fn sysctl() {
    #[derive(Deserialize)]
    struct Input {
        path: String,
        settings: BTreeMap<String, String>,
    }
    cases("sysctl", |input: Input| Sysctls::new(input.path, input.settings));
}

#[test]
fn modules() {
    #[derive(Deserialize)]
    struct Input {
        path: String,
        names: Vec<String>,
    }
    cases("modules", |input: Input| KernelModules::new(input.path, input.names));
}

#[test]
fn user() {
    #[derive(Deserialize)]
    struct Input {
        name: String,
    }
    cases("user", |input: Input| User::new(input.name));
}

#[test]
fn block() {
    #[derive(Deserialize)]
    struct Input {
        path: String,
        begin: String,
        end: String,
        content: String,
    }
    cases("block", |input: Input| Block::new(input.path, input.begin, input.end, input.content));
}

#[test]
fn cluster_identity() {
    #[derive(Deserialize)]
    struct Input {
        name: String,
        ca_sha256: String,
    }
    cases("cluster_identity", |input: Input| ClusterIdentity::new(input.name, input.ca_sha256));
}

#[test]
fn swap() {
    #[derive(Deserialize)]
    struct Input {}
    cases("swap", |_: Input| SwapOff);
}

#[test]
fn command() {
    #[derive(Deserialize)]
    struct Input {
        describe: String,
        script: String,
        /// The command does not run if the host has this binary.
        unless_tool: Option<String>,
        #[serde(default)]
        hints: BTreeMap<String, String>,
        #[serde(default)]
        transient_on: Vec<String>,
    }
    cases("command", |input: Input| {
        let tool = input.unless_tool;
        let command = Command::new(input.describe, input.script);
        let command =
            command.when(move |facts| tool.as_ref().is_none_or(|tool| !facts.tools.contains_key(tool)));
        let command = input.hints.into_iter().fold(command, |command, (text, hint)| command.hint(text, hint));
        input.transient_on.into_iter().fold(command, Command::transient_on)
    });
}

#[test]
fn wait() {
    #[derive(Deserialize)]
    struct Input {
        describe: String,
        condition: String,
        within_s: Option<u64>,
        unless_tool: Option<String>,
        #[serde(default)]
        hints: BTreeMap<String, String>,
    }
    cases("wait", |input: Input| {
        let tool = input.unless_tool;
        let wait = WaitUntil::new(input.describe, input.condition)
            .within(Duration::from_secs(input.within_s.unwrap_or(120)))
            .done_by(move |facts| tool.as_ref().is_some_and(|tool| facts.tools.contains_key(tool)));
        input.hints.into_iter().fold(wait, |wait, (text, hint)| wait.hint(text, hint))
    });
}
