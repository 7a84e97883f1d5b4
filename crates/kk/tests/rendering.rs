//! What people and programs read, as snapshots: plain lines, JSON, plan, table, errors, summary.

mod recorded;

use std::path::PathBuf;

use insta::assert_snapshot;
use kk::error::{Error, HostFailure};
use kk::printer::{Paint, Summary, findings, lines, plan};
use kk_cluster::{Finding, Severity};
use kk_engine::{Event, Failure, PlannedTask};

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
    // Progress is left out of the snapshot after the first: they are all alike.
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
    assert_eq!(plan::json_lines(&[]), "");
}

#[test]
fn a_plan_as_json_lines() {
    assert_snapshot!(plan::json_lines(&a_plan()[1..3]));
}

fn finding(host: Option<&str>, severity: Severity, what: &str, hint: &str) -> Finding {
    Finding { severity, host: host.map(str::to_owned), what: what.into(), hint: hint.into() }
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

#[test]
fn findings_as_json_lines() {
    assert_snapshot!(findings::json_lines(&some_findings()[4..]));
}

#[test]
fn errors_among_findings_are_counted() {
    assert_eq!(findings::errors(&some_findings()), 3);
    assert_eq!(findings::render(&[], Paint::PLAIN, 100), "");
}

fn failed(host: &str, title: &str, failure: Failure) -> HostFailure {
    HostFailure { host: host.into(), title: title.into(), failure }
}

fn log() -> PathBuf {
    "./kubekey/prod/runs/20260102-030405-create-cluster".into()
}

#[test]
fn failed_tasks_show_command_code_stderr_and_hint() {
    let failures = vec![
        failed("node1", "Initialise the cluster", recorded::failure()),
        failed("node2", "Start containerd", Failure::new("no end after 60.0 s on node2")),
        failed("node3", "Start containerd", Failure::new("no end after 60.0 s on node2")),
    ];
    assert_snapshot!(Error::Tasks { failures, log: Some(log()) }.render(Paint::PLAIN));
}

#[test]
fn hosts_that_cannot_be_reached_are_all_named() {
    let refused = || Failure::new("cannot reach 10.0.0.3:22: connection refused");
    let login = Failure::new("root cannot log in to 10.0.0.1:22: password refused")
        .hint("check user, password and privateKeyPath of this host in the file");
    let failures = vec![failed("node1", "Connect", login), failed("node3", "Connect", refused())];
    assert_snapshot!(Error::Connection(failures).render(Paint::PLAIN));
}

#[test]
fn other_errors_fit_in_a_line_or_two() {
    let errors = [
        Error::Usage { message: "nobody can answer here".into(), hint: "add --yes".into() },
        Error::config("`v1.36` is not a Kubernetes version", Some("write it as v1.36.4".into())),
        Error::Precheck { errors: 3 },
        Error::Cancelled { changed: false, log: None },
        Error::Cancelled { changed: true, log: Some(log()) },
        Error::other("write config-sample.yaml", "permission denied"),
    ];
    let texts: Vec<String> = errors
        .iter()
        .map(|error| format!("{}exit {}\n", error.render(Paint::PLAIN), error.status().code()))
        .collect();
    assert_snapshot!(texts.join("\n"));
}

#[test]
fn a_summary_names_nodes_endpoint_times_and_log() {
    let node = |name: &str, address: &str, roles: &str| [name.into(), address.into(), roles.into()];
    let summary = Summary {
        headline: "cluster prod is ready".into(),
        changed: 120,
        took_ms: 34_200,
        nodes: vec![node("node1", "10.0.0.1", "control-plane, etcd"), node("node2", "10.0.0.2", "worker")],
        facts: vec![
            ("API".into(), "https://lb.kubesphere.local:6443".into()),
            ("kubeconfig".into(), "./kubekey/prod/kubeconfig".into()),
            ("log".into(), "./kubekey/prod/runs/20260102-030405-create-cluster".into()),
        ],
        modules: vec![("os".into(), 900), ("kubernetes".into(), 14_000)],
        next: Some("export KUBECONFIG=./kubekey/prod/kubeconfig && kubectl get nodes".into()),
    };
    assert_snapshot!(summary.render(Paint::PLAIN, 100));
}

#[test]
fn a_run_without_changes_says_so() {
    let summary = Summary { headline: "cluster prod is ready".into(), took_ms: 1900, ..Summary::default() };
    assert_eq!(summary.render(Paint::PLAIN, 100), "\ncluster prod is ready (nothing had to be done, 1.9s)\n");
}

#[test]
fn colour_only_adds_escape_codes() {
    let error =
        Error::Tasks { failures: vec![failed("node1", "Start etcd", recorded::failure())], log: Some(log()) };
    let coloured = error.render(Paint { colour: true });
    assert!(coloured.contains("\u{1b}[31m"), "{coloured:?}");
    assert_eq!(console::strip_ansi_codes(&coloured), error.render(Paint::PLAIN));
}
