//! Commands that ask a running operator, and those for people who write hooks.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::control_plane::shared;
use crate::operator::{Setup, run_program};

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
    fs::write(&hook, text).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let (code, text) = run_program(&["validate", "."], dir.path());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("hook.sh: OnStartup:1") && text.contains("1 hooks are fine"), "{text}");
    fs::write(dir.path().join("context.json"), r#"[{"binding":"onStartup"}]"#).unwrap();
    let (code, text) = run_program(&["run-hook", "hook.sh", "--context", "context.json"], dir.path());
    assert_eq!(code, Some(0), "{text}");
    for expected in ["msg=onStartup", "metric: m Set(1.0)", "patch: Delete ns/Pod/p"] {
        assert!(text.contains(expected), "{expected} is missing in:\n{text}");
    }
    fs::write(&hook, "#!/bin/bash\necho 'nope: 1'\n").unwrap();
    let (code, text) = run_program(&["validate", "."], dir.path());
    assert_eq!(code, Some(1));
    assert!(text.contains("load hook 'hook.sh' config: nope: is a forbidden property"), "{text}");
}
