//! Commands that query a running operator, and commands for authors of hooks.

use std::fs;

use crate::cluster::control_plane::shared;
use crate::cluster::operator::{Setup, run_program, write_program};

#[test]
fn queues_hooks_snapshots_and_the_log_level_can_be_seen_and_changed() {
    let plane = shared();
    plane.kubectl("create ns commands");
    plane.kubectl("-n commands create cm a --from-literal=k=1");
    let config = "configVersion: v1\nkubernetes:\n- {name: cms, kind: ConfigMap, queue: q1, namespace: {nameSelector: {matchNames: [commands]}}, nameSelector: {matchNames: [a]}, jqFilter: .data.k}\nschedule: [{crontab: '0 0 1 1 *', queue: q2}]";
    let operator = Setup::new(plane).hook("hook.sh", config, "keep\nexit 1").start();
    operator.wait_for("the failure", |operator| operator.log().contains("Hook failed. Will retry"));
    let socket = operator.socket().display().to_string();
    let ask = |arguments: &[&str]| {
        let all: Vec<&str> = arguments.iter().copied().chain(["--debug-unix-socket", &socket]).collect();
        let (code, text) = run_program(&all, &operator.out());
        assert_eq!(code, Some(0), "{text}");
        text
    };
    let text = ask(&["queue", "list", "--show-empty"]);
    assert!(text.starts_with("Queue 'main': length 2, status: 'sleep after fail for 5s ("), "{text}");
    for line in [
        " 1. HookRun:main:kubernetes:hook.sh:cms:failures 1:hook.sh FAILED: cmd run: exit status 1",
        " 2. EnableScheduleBindings:::hook.sh:EnableScheduleBindings",
        "Empty queues (2):",
        "- 2 other queues (0 active, 2 empty): 0 tasks.",
        "- total 2 tasks to handle.",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is missing in:\n{text}");
    }
    assert_eq!(ask(&["hook", "list", "-o", "json"]), "[\"hook.sh\"]\n");
    let snapshot = ask(&["hook", "snapshot", "hook.sh", "-o", "json"]);
    assert!(
        snapshot.contains(r#""sinceStart":{"count":1,"added":1,"deleted":0,"modified":0,"cleaned":0}"#),
        "{snapshot}"
    );
    assert!(snapshot.contains(r#""snapshot":[{"filterResult":"1","object":{"#), "{snapshot}");
    ask(&["config", "set", "log.level", "debug", "10m"]);
    assert!(ask(&["config", "list", "-o", "json"]).contains(r#""value":"debug""#));
    assert!(
        operator
            .get("/metrics")
            .unwrap()
            .contains("shell_operator_hook_failing{hook=\"hook.sh\",queue=\"main\"} 1")
    );
    let (code, text) =
        run_program(&["config", "set", "log.level", "loud", "--debug-unix-socket", &socket], &operator.out());
    assert_eq!(code, Some(1));
    assert!(text.contains("unknown log level 'loud'"), "{text}");
}

#[test]
fn no_operator_is_said() {
    let (code, text) = run_program(&["queue", "list", "--debug-unix-socket", "/none"], &std::env::temp_dir());
    assert_eq!(code, Some(1));
    assert!(text.contains("cannot reach an operator at /none"), "{text}");
}

#[test]
fn hooks_can_be_checked_and_run_without_a_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let hook = dir.path().join("hook.sh");
    let text = "#!/bin/bash\nif [ \"$1\" = --config ]; then echo 'configVersion: v1'; echo 'onStartup: 1'; exit; fi\n\
        jq -r '.[0].binding' $BINDING_CONTEXT_PATH\necho '{\"name\":\"m\",\"set\":1}' > $METRICS_PATH\n\
        echo '{operation: Delete, kind: Pod, namespace: ns, name: p}' > $KUBERNETES_PATCH_PATH\n";
    write_program(&hook, text);
    let (code, text) = run_program(&["validate", "."], dir.path());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("hook.sh: OnStartup:1") && text.contains("1 hook is fine"), "{text}");
    fs::write(dir.path().join("context.json"), r#"[{"binding":"onStartup"}]"#).unwrap();
    let (code, text) = run_program(&["run-hook", "hook.sh", "--context", "context.json"], dir.path());
    assert_eq!(code, Some(0), "{text}");
    for expected in ["msg=onStartup", "metric: m Set(1.0)", "patch: Delete ns/Pod/p"] {
        assert!(text.contains(expected), "{expected} is missing in:\n{text}");
    }
    write_program(&hook, "#!/bin/bash\necho 'nope: 1'\n");
    let (code, text) = run_program(&["validate", "."], dir.path());
    assert_eq!(code, Some(1));
    assert!(text.contains("load hook 'hook.sh' config: nope: is a forbidden property"), "{text}");
}

#[test]
fn completions_are_printed() {
    let (code, text) = run_program(&["completion", "bash"], &std::env::temp_dir());
    assert_eq!(code, Some(0));
    assert!(text.contains("run-hook") && text.contains("complete -F"), "{text}");
}

#[test]
fn old_hooks_find_their_directory_and_what_has_no_effect_is_said() {
    let plane = shared();
    let setup = Setup::new(plane)
        .program("h", "#!/bin/bash\n[ \"$1\" = --config ] && { echo '{onStartup: 1}'; exit; }\necho \"hooks are in $WORKING_DIR\"\n");
    let hooks = setup.hooks_dir().display().to_string();
    let operator = setup.flag("--jq-library-path=/lib/jq").flag("--debug-http-addr=127.0.0.1:0").start();
    operator.wait_for("the run", |operator| operator.log().contains(&format!("hooks are in {hooks}")));
    let log = operator.log();
    assert!(log.contains("--jq-library-path is not used"), "{log}");
    assert!(log.contains("can read all snapshots"), "{log}");
    let text = "#!/bin/bash\n[ \"$1\" = --config ] && { echo '{onStartup: 1}'; exit; }\necho \"found $WORKING_DIR\"\n";
    let operator = Setup::new(plane).program("h", text).wrapper(&["env", "WORKING_DIR=/own"]).start();
    operator.wait_for("the user's variable", |operator| operator.log().contains("found /own"));
}

#[test]
fn the_debug_endpoint_may_have_a_port() {
    let plane = shared();
    let port = crate::cluster::control_plane::free_port();
    let hook = "#!/bin/bash\n[ \"$1\" = --config ] && echo '{configVersion: v1, onStartup: 1}'\nexit 0\n";
    let operator =
        Setup::new(plane).program("h", hook).flag(&format!("--debug-http-addr=127.0.0.1:{port}")).start();
    operator.wait_ready();
    let answer = std::process::Command::new("curl")
        .args(["-sf", &format!("http://127.0.0.1:{port}/hook/list.json")])
        .output();
    assert_eq!(String::from_utf8(answer.unwrap().stdout).unwrap(), "[\"h\"]\n");
}

#[test]
fn requests_to_the_api_are_counted_and_limited() {
    let plane = shared();
    let config = "configVersion: v1\nkubernetes:\n- {name: a, kind: Secret}\n- {name: b, kind: Pod}\n- {name: c, kind: Service}";
    let operator = Setup::new(plane)
        .hook("h", config, "keep")
        .flag("--kube-client-qps=2")
        .flag("--kube-client-burst=1")
        .start();
    operator.wait_ready();
    let text = operator.get("/metrics").unwrap();
    let value = |start: &str, part: &str| {
        let found = text.lines().filter(|line| line.starts_with(start) && line.contains(part));
        found.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum::<f64>()
    };
    let prefix = "shell_operator_kubernetes_client_";
    assert!(
        value(&format!("{prefix}request_result_total"), r#"code="200",component="main""#) >= 4.0,
        "{text}"
    );
    let lists = r#"verb="GET""#;
    assert!(value(&format!("{prefix}request_latency_seconds_count"), lists) >= 4.0, "{text}");
    // Three lists at two a second, with one at once: the second and third wait, and the discovery before them.
    assert!(value(&format!("{prefix}rate_limiter_latency_seconds_sum"), lists) > 1.0, "{text}");
}
