//! Maps each kind of wrong input to the test that shows the reaction of `kk`. A kind without a test, or a test that does not
//! exist, is an error here.

use std::fs;
use std::path::Path;

use super::cases::ALL;
use crate::scenarios::GROUPS;
use crate::suite::Group;

/// Where an input is tried.
enum Test {
    /// A case of this scenario.
    Case(&'static str),
    /// A scenario of its own.
    Scenario(&'static str),
    /// A file of the checkout, and a text that must be in it: the name of a test, or a message that the user reads.
    File(&'static str, &'static str),
}

use Test::{Case, File, Scenario};

const SNAPSHOTS: &str = "crates/kk-config/tests/it/snapshots";

const INPUTS: &[(&str, &[Test])] = &[
    ("malformed YAML", &[File("malformed-yaml.snap", "is not valid YAML")]),
    ("unknown key", &[Case("unknown-key"), File("unknown-keys.snap", "unknown field")]),
    ("wrong type", &[File("wrong-types.snap", "must be a list, not")]),
    ("duplicate host", &[File("duplicates.snap", "two hosts are named")]),
    ("duplicate address", &[File("duplicates.snap", "two hosts have the address")]),
    ("unknown host in a group", &[File("role-groups.snap", "but there is no such host")]),
    ("no control plane", &[File("missing.snap", "there is no control plane")]),
    ("overlapping CIDRs", &[File("ranges-overlap.snap", "overlap")]),
    ("unsupported version", &[Case("unsupported-version"), File("version-v1.38.0.snap", "1.38")]),
    (
        "unreadable key file",
        &[
            Case("no-such-key-file"),
            File("crates/kk-connector/tests/it/ssh/connect.rs", "a_key_that_cannot_be_used_is_named"),
        ],
    ),
    ("host refuses the connection", &[Case("connection-refused")]),
    ("no such host", &[Case("no-such-host")]),
    ("host times out", &[Case("silent-host")]),
    ("server says nothing", &[Case("silent-server")]),
    ("host rejects the password", &[Case("wrong-password")]),
    ("host has no sudo right", &[Case("no-sudo-right"), Case("wrong-sudo-password")]),
    ("changed host key", &[Case("changed-host-key")]),
    ("unknown host key under `strict`", &[Case("unknown-host-key-strict")]),
    ("wrong arch", &[Case("wrong-arch")]),
    ("clocks apart", &[Case("clock-skew")]),
    ("missing tool", &[Case("missing-tool")]),
    ("port in use", &[Case("port-in-use"), Scenario("init-fails")]),
    (
        "leftover of another cluster",
        &[Case("leftover-of-another-cluster"), Case("etcd-data-of-another-cluster")],
    ),
    ("etcd of somebody else", &[Case("etcd-of-others")]),
    ("mirror answers 404", &[Case("mirror-answers-404")]),
    ("mirror is down", &[Case("mirror-is-down")]),
    ("mirror serves a wrong SHA-256", &[Case("mirror-serves-a-wrong-sum")]),
    ("registry lacks an image", &[Case("registry-lacks-an-image"), Scenario("init-fails")]),
    ("disk of a host full", &[Case("full-disk")]),
    ("kubeadm fails", &[Scenario("init-fails")]),
    (
        "connection falls silent in a run",
        &[File("tests/e2e/src/scenarios/bad_input/silence.rs", "in_the_middle")],
    ),
    ("host lost in a cluster", &[Scenario("ha")]),
    ("Ctrl-C at any time", &[Scenario("ctrl-c")]),
    ("everything at once", &[Case("all-problems-at-once"), File("all-at-once.snap", "error: ")]),
    ("secrets in what is said", &[Scenario("secrets")]),
];

#[test]
fn every_wrong_input_is_tried_somewhere() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (input, tests) in INPUTS {
        assert!(!tests.is_empty(), "{input}");
        for test in *tests {
            match test {
                Case(name) => assert!(ALL.iter().any(|case| case.name == *name), "{input}: {name}"),
                Scenario(name) => {
                    let mut all = GROUPS.iter().flat_map(Group::scenarios);
                    assert!(all.any(|scenario| scenario.name == *name), "{input}: {name}");
                }
                File(path, words) => {
                    let beside = checkout.join(SNAPSHOTS).join(path);
                    let file = if beside.exists() { beside } else { checkout.join(path) };
                    let text = fs::read_to_string(&file).unwrap_or_default();
                    assert!(text.contains(words), "{input}: no `{words}` in {}", file.display());
                }
            }
        }
    }
}

#[test]
fn every_case_is_for_an_input() {
    let named = |name| {
        let tests = INPUTS.iter().flat_map(|(_, tests)| *tests);
        tests.into_iter().any(|test| matches!(test, Case(case) if *case == name))
    };
    for case in ALL {
        assert!(named(case.name), "{}", case.name);
    }
}
