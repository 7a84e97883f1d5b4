//! The recorded cases: what hooks get here has to be what they got from the original, byte for byte.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cluster::control_plane::{free_port, shared};
use crate::cluster::programs;

/// Cases driven by the clock: compared as the set of contexts.
const CLOCK: [&str; 3] = ["schedule", "snapshots", "v0"];
/// Cases in which bindings reached by one object may be in any order within one run.
const ANY_ORDER: [&str; 4] = ["schedule", "snapshots", "v0", "no-full-objects"];

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recorded")
}

/// `(hook, context text)` of each run, with what differs from time to time replaced.
fn read(dir: &Path) -> Vec<(String, String)> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            Path::new(name).extension().is_some_and(|end| end == "json")
                && name.starts_with(|c: char| c.is_ascii_digit())
        })
        .collect();
    names.sort();
    let read = |name: &String| {
        let hook = name.split_once('-').unwrap().1.to_owned();
        (hook, normalise(&fs::read_to_string(dir.join(name)).unwrap()))
    };
    names.iter().map(read).collect()
}

/// Replaces uids, resource versions and times.
pub(crate) fn normalise(text: &str) -> String {
    let mut parts: Vec<String> = text.split('"').map(str::to_owned).collect();
    for i in 2..parts.len() {
        let key = parts[i - 2].clone();
        let value = &mut parts[i];
        let is_time = value.len() == 20 && value.ends_with('Z') && value.as_bytes()[10] == b'T';
        if is_time {
            "TIME".clone_into(value);
        } else if key == "uid" && value.len() == 36 {
            "UID".clone_into(value);
        } else if key == "resourceVersion" && value.bytes().all(|byte| byte.is_ascii_digit()) {
            "RV".clone_into(value);
        }
    }
    parts.join("\"")
}

fn sorted(run: &(String, String)) -> (String, String) {
    let contexts: Vec<serde_json::Value> = serde_json::from_str(&run.1).unwrap();
    let texts: BTreeSet<String> = contexts.iter().map(ToString::to_string).collect();
    (run.0.clone(), texts.into_iter().collect::<Vec<_>>().join("\n"))
}

fn run(case: &str) -> tempfile::TempDir {
    let out = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run-case.sh");
    let status = Command::new("bash")
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_shell-operator"))
        .arg(fixtures().join("cases").join(case))
        .arg(out.path())
        .arg(free_port().to_string())
        .env("KUBECONFIG", shared().kubeconfig())
        .env("KUBECTL", programs::find("kubernetes-", "kubectl"))
        .status()
        .unwrap();
    assert!(status.success());
    out
}

fn text(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap_or_default()
}

fn compare(case: &str) {
    let out = run(case);
    let (mut recorded, mut now) = (read(&fixtures().join("contexts").join(case)), read(out.path()));
    if ANY_ORDER.contains(&case) {
        recorded = recorded.iter().map(sorted).collect();
        now = now.iter().map(sorted).collect();
    }
    let log = text(out.path(), "log");
    if CLOCK.contains(&case) {
        let set = |runs: Vec<(String, String)>| runs.into_iter().collect::<BTreeSet<_>>();
        assert_eq!(set(now), set(recorded), "the log:\n{log}");
    } else {
        assert_eq!(now, recorded, "the log:\n{log}");
    }
    assert_eq!(text(out.path(), "exit"), "exit 0\n", "the log:\n{log}");
    compare_after(case, out.path());
}

/// Compares the state after the cases that change something.
fn compare_after(case: &str, out: &Path) {
    let after = text(out, "after.txt");
    match case {
        "patches" => {
            let recorded = text(&fixtures().join("after"), "patches.txt");
            assert!(after.starts_with(recorded.trim_end()), "{after}");
            assert_eq!(after.matches("NotFound").count(), 3, "{after}");
        }
        "metrics" => {
            let recorded = text(&fixtures().join("after"), "metrics-hooks.txt");
            let (hooks, own) = after.split_once("---\n").unwrap();
            assert_eq!(hooks, recorded);
            for line in text(&fixtures().join("after"), "metrics-own-types.txt").lines() {
                assert!(own.lines().any(|known| known == line), "{line} is missing in:\n{own}");
            }
        }
        _ => {}
    }
}

/// All cases at once: they mostly wait.
#[test]
fn hooks_get_what_the_original_gave_them() {
    shared();
    let mut cases: Vec<String> = fs::read_dir(fixtures().join("cases"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    cases.sort();
    assert_eq!(cases.len(), 14);
    let run = |case: &String| {
        let case = case.clone();
        std::thread::Builder::new().name(case.clone()).spawn(move || compare(&case)).unwrap()
    };
    let running: Vec<_> = cases.iter().map(run).collect();
    let results: Vec<bool> = running.into_iter().map(|case| case.join().is_ok()).collect();
    let different: Vec<&String> =
        cases.iter().zip(results).filter(|(_, same)| !same).map(|(case, _)| case).collect();
    assert!(different.is_empty(), "different: {different:?}");
}
