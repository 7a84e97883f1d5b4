//! Snapshots of the output for people and programs: plain lines, JSON, plan, table, errors, summary.

use insta::assert_snapshot;
use kk::error::{Error, HostFailure};
use kk::exit::ExitStatus;
use kk::printer::{Paint, errors, findings, lines, plan, summary};
use kk_engine::{Event, Failure, Finding, Node, Output, PlannedTask, Severity, Summary, Warning};

use crate::recorded;

fn plain_lines(events: &[Event]) -> String {
    events.iter().map(|event| lines::render(event, Paint::PLAIN)).collect()
}

#[test]
fn a_run_that_succeeds_as_plain_lines() {
    assert_snapshot!(plain_lines(&recorded::succeeding()));
}

#[test]
fn a_run_that_fails_as_plain_lines() {
    assert_snapshot!(plain_lines(&recorded::failing()));
}

#[test]
fn events_as_json_lines_keep_their_form() {
    let events = recorded::failing();
    // After the first, progress is left out of the snapshot, because all progress events are alike.
    let mut progress = 0;
    let lines: Vec<String> = events
        .iter()
        .map(|event| serde_json::to_string(event).unwrap())
        .filter(|line| {
            progress += usize::from(line.contains(r#""progress""#));
            !line.contains(r#""progress""#) || progress == 1
        })
        .collect();
    assert_snapshot!(lines.join("\n"));
}

fn planned(module: &str, task: &str, title: &str, host: &str, changes: &[&str]) -> PlannedTask {
    PlannedTask {
        module: module.into(),
        task: task.into(),
        title: title.into(),
        host: host.into(),
        changes: changes.iter().map(|line| (*line).to_owned()).collect(),
    }
}

fn a_plan() -> Vec<PlannedTask> {
    let files = ["write /etc/sysctl.d/99-kubekey.conf", "load br_netfilter"];
    vec![
        planned("os", "kernel", "Set up the kernel", "node1", &files),
        planned("os", "kernel", "Set up the kernel", "node2", &files[..1]),
        planned("os", "kernel", "Set up the kernel", "node3", &files),
        planned("etcd", "start_etcd", "Start etcd", "node1", &["start etcd"]),
        planned("etcd", "start_etcd", "Start etcd", "node2", &["start etcd"]),
    ]
}

#[test]
fn a_plan_folds_hosts_with_the_same_changes() {
    assert_snapshot!(plan::render(&a_plan(), Paint::PLAIN));
}

#[test]
fn an_empty_plan_says_so() {
    assert_eq!(plan::render(&[], Paint::PLAIN), "nothing to do\n");
}

fn finding(host: Option<&str>, severity: Severity, message: &str, hint: &str) -> Finding {
    Finding { severity, host: host.map(str::to_owned), message: message.into(), hint: hint.into() }
}

fn some_findings() -> Vec<Finding> {
    let [one, two, three] = ["node1", "node2", "node3"].map(Some);
    let (socat, package) = ("the program socat is missing", "install the package socat");
    vec![
        finding(
            one,
            Severity::Warning,
            "swap is on",
            "the kubelet does not count it; turn it off for exact limits",
        ),
        finding(
            two,
            Severity::Error,
            "port 10250 is used by python3, which is not part of a cluster",
            "stop it",
        ),
        finding(one, Severity::Error, socat, package),
        finding(
            three,
            Severity::Adapted,
            "systemd cannot manage cgroups",
            "containerd and kubelet use cgroupfs",
        ),
        finding(two, Severity::Error, socat, package),
        finding(None, Severity::Warning, "clocks are 3.2 s apart", "run a time service on all hosts"),
    ]
}

#[test]
fn findings_are_a_table_with_errors_first() {
    assert_snapshot!(findings::render(&some_findings(), Paint::PLAIN, 100));
}

#[test]
fn a_narrow_terminal_wraps_the_findings() {
    assert_snapshot!(findings::render(&some_findings(), Paint::PLAIN, 80));
}

fn failed(host: &str, title: &str, failure: Failure) -> HostFailure {
    HostFailure { host: host.into(), title: title.into(), failure }
}

const LOG: Option<&str> = Some("./kubekey/prod/runs/20260102-030405-create-cluster");

/// An error as the end of a run shows it.
fn shown(error: &Error, changed: usize, log: Option<&str>, paint: Paint) -> String {
    let problems = error.problems();
    format!("{}\n{}", errors::render(&problems, paint), errors::closing(&problems, changed, log))
}

#[test]
fn failed_tasks_show_command_code_stderr_and_hint() {
    let failures = vec![
        failed("node1", "Initialise the cluster", recorded::failure()),
        failed("node2", "Start containerd", Failure::new("no end after 60.0 s on node2")),
        failed("node3", "Start containerd", Failure::new("no end after 60.0 s on node2")),
    ];
    assert_snapshot!(shown(&Error::Tasks(failures), 0, LOG, Paint::PLAIN));
}

#[test]
fn hosts_that_cannot_be_reached_are_all_named() {
    let refused = || Failure::new("cannot reach 10.0.0.3:22: connection refused");
    let login = Failure::new("root cannot log in to 10.0.0.1:22: password refused")
        .hint("check user, password and privateKeyPath of this host in the file");
    let failures = vec![failed("node1", "Connect", login), failed("node3", "Connect", refused())];
    assert_snapshot!(shown(&Error::Connection(failures), 0, LOG, Paint::PLAIN));
}

#[test]
fn other_errors_fit_in_a_line_or_two() {
    let errors = [
        (Error::Usage { message: "cannot ask".into(), hint: "add --yes".into() }, 0, None),
        (Error::config("`v1.36` is not a Kubernetes version", Some("write it as v1.36.0".into())), 0, LOG),
        (Error::Precheck { errors: 3 }, 0, LOG),
        (Error::Cancelled { changed: false, failures: Vec::new() }, 0, None),
        (Error::Cancelled { changed: true, failures: Vec::new() }, 5, LOG),
        (Error::other("write config-sample.yaml", "permission denied"), 0, None),
    ];
    let texts: Vec<String> = errors
        .iter()
        .map(|(error, changed, log)| {
            format!("{}exit {}\n", shown(error, *changed, *log, Paint::PLAIN), error.status().code())
        })
        .collect();
    assert_snapshot!(texts.join("\n"));
}

#[test]
fn what_fails_after_the_first_change_does_not_say_that_nothing_was_changed() {
    let reset = || failed("node1", "Connect", Failure::new("the connection to node1 was lost: reset"));
    let errors = [
        (Error::Connection(vec![reset()]), "error: failed to connect to node1: the connection"),
        (Error::Precheck { errors: 2 }, "error: failed to continue: 2 problems must be fixed first"),
        (
            Error::Refused { message: "it is foreign".into(), hint: None },
            "error: failed to continue: it is foreign",
        ),
        (Error::Cancelled { changed: false, failures: Vec::new() }, "error: cancelled\n"),
    ];
    for (error, begin) in errors {
        let was = error.status();
        let error = error.after_changes();
        let text = shown(&error, 3, LOG, Paint::PLAIN);
        assert!(text.starts_with(begin) && !text.contains("nothing was changed"), "{text}");
        let may_say_so = [ExitStatus::Connection, ExitStatus::Precheck];
        assert!(!may_say_so.contains(&error.status()), "{was:?} {text}");
    }
}

#[test]
fn a_warning_without_a_place_fits_in_two_lines() {
    let warning = Warning { message: "odd".into(), hint: Some("remove it".into()), place: None };
    assert_eq!(errors::warning(&warning, Paint::PLAIN), "warning: odd\n  hint: remove it\n");
}

#[test]
fn a_summary_names_nodes_endpoint_times_and_log() {
    let node = |name: &str, address: &str, roles: &[&str]| Node {
        name: name.into(),
        address: address.into(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
    };
    let output = |name: &str, value: &str| Output { name: name.into(), value: value.into() };
    let summary = Summary {
        message: "cluster prod is ready".into(),
        nodes: vec![
            node("node1", "10.0.0.1", &["control-plane", "etcd"]),
            node("node2", "10.0.0.2", &["worker"]),
        ],
        outputs: vec![
            output("API", "https://lb.kubesphere.local:6443"),
            output("kubeconfig", "./kubekey/prod/kubeconfig"),
        ],
        next: Some("export KUBECONFIG=./kubekey/prod/kubeconfig && kubectl get nodes".into()),
    };
    let modules = [("os".into(), 900), ("kubernetes".into(), 14_000)];
    let end = summary::End { changed: 120, took_ms: 34_200, log: LOG, modules: &modules };
    assert_snapshot!(summary::render(&summary, &end, Paint::PLAIN, 100));
}

#[test]
fn a_run_without_changes_says_so() {
    let summary = Summary { message: "cluster prod is ready".into(), ..Summary::default() };
    let end = summary::End { took_ms: 1900, ..summary::End::default() };
    let text = summary::render(&summary, &end, Paint::PLAIN, 100);
    assert_eq!(text, "\ncluster prod is ready (nothing had to be done, 1.9s)\n");
}

#[test]
fn colour_only_adds_escape_codes() {
    let error = Error::Tasks(vec![failed("node1", "Start etcd", recorded::failure())]);
    let coloured = shown(&error, 0, LOG, Paint { colour: true });
    assert!(coloured.contains("\u{1b}[31m"), "{coloured:?}");
    assert_eq!(console::strip_ansi_codes(&coloured), shown(&error, 0, LOG, Paint::PLAIN));
}
