//! The library for hooks in bash.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

/// Runs a hook that sources the library, with these handlers and contexts.
fn run(handlers: &str, contexts: &str, argument: &str) -> (bool, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/shell/shell_lib.sh");
    let hook = format!(
        "#!/bin/bash\nsource {library}\n__config__() {{ echo 'onStartup: 1'; }}\n{handlers}\nhook::run \"$@\"\n"
    );
    std::fs::write(dir.path().join("hook.sh"), hook).unwrap();
    std::fs::write(dir.path().join("context.json"), contexts).unwrap();
    let output = Command::new("bash")
        .arg("hook.sh")
        .args((!argument.is_empty()).then_some(argument))
        .current_dir(dir.path())
        .env("BINDING_CONTEXT_PATH", dir.path().join("context.json"))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

const EVENT: &str = r#"[{"binding":"pods","type":"Event","watchEvent":"Added","object":{"metadata":{"name":"p","labels":{"a.b/c":"x"}},"flag":false,"none":null,"list":[{"v":7}],"data":{"0":"zero"}}}]"#;

#[test]
fn each_context_has_its_handler() {
    for (case, contexts, handler) in [
        ("startup", r#"[{"binding":"onStartup"}]"#, "__on_startup"),
        (
            "synchronization",
            r#"[{"binding":"p","type":"Synchronization","objects":[]}]"#,
            "__on_kubernetes::p::synchronization",
        ),
        (
            "synchronization_base",
            r#"[{"binding":"p","type":"Synchronization","objects":[]}]"#,
            "__on_kubernetes::p",
        ),
        ("added", r#"[{"binding":"p","type":"Event","watchEvent":"Added"}]"#, "__on_kubernetes::p::added"),
        (
            "added_or_modified",
            r#"[{"binding":"p","type":"Event","watchEvent":"Modified"}]"#,
            "__on_kubernetes::p::added_or_modified",
        ),
        (
            "deleted",
            r#"[{"binding":"p","type":"Event","watchEvent":"Deleted"}]"#,
            "__on_kubernetes::p::deleted",
        ),
        ("group", r#"[{"binding":"p","type":"Group","groupName":"g"}]"#, "__on_group::g"),
        ("schedule", r#"[{"binding":"s","type":"Schedule"}]"#, "__on_schedule::s"),
        ("validating", r#"[{"binding":"v.x","type":"Validating"}]"#, "__on_validating::v.x"),
        ("mutating", r#"[{"binding":"v.x","type":"Mutating"}]"#, "__on_mutating::v.x"),
        (
            "conversion",
            r#"[{"binding":"c","type":"Conversion","fromVersion":"g/v1","toVersion":"v2"}]"#,
            "__on_conversion::c::g.v1::v2",
        ),
        ("any_name", r#"[{"binding":"* a b","type":"Schedule"}]"#, "__main__"),
        ("main", r#"[{"binding":"c","type":"Schedule"}]"#, "__main__"),
    ] {
        let handlers = format!(
            "{handler}() {{ echo \"$BINDING_CONTEXT_CURRENT_INDEX $BINDING_CONTEXT_CURRENT_BINDING\"; }}"
        );
        let (success, out, err) = run(&handlers, contexts, "");
        assert!(success, "{case}: {err}");
        assert!(out.starts_with("0 "), "{case}: {out}");
    }
}

#[test]
fn values_are_read_by_their_paths() {
    for (line, expected) in [
        ("context::get object.metadata.name", "p"),
        ("context::get --required object.list.0.v", "7"),
        (r#"context::get 'object.metadata.labels."a.b/c"'"#, "x"),
        (r#"context::get 'object.data."0"'"#, "zero"),
        ("context::has object.none && echo yes", "yes"),
        ("context::has object.more || echo no", "no"),
        ("context::is_false object.flag && context::is_null object.none && echo yes", "yes"),
        ("context::is_true object.flag || echo no", "no"),
        ("context::jq -r .watchEvent", "Added"),
        ("context::global::jq length", "1"),
    ] {
        let (success, out, err) = run(&format!("__main__() {{ {line}; }}"), EVENT, "");
        assert!(success, "{line}: {err}");
        assert_eq!(out, expected, "{line}");
    }
}

#[test]
fn the_configuration_is_printed() {
    let (success, out, _) = run("", "", "--config");
    assert!(success);
    assert_eq!(out, "onStartup: 1");
}

#[test]
fn a_failing_handler_fails_the_hook_and_says_where() {
    let (success, _, err) = run("__main__() {\n  false\n}", EVENT, "");
    assert!(!success);
    assert!(
        err.contains("Traceback (most recent call last):") && err.contains("Exiting with status 1"),
        "{err}"
    );
    let (success, _, err) = run("__main__() { context::get --required object.more; }", EVENT, "");
    assert!(!success && err.contains("there is no 'object.more'"), "{err}");
}

#[test]
fn a_context_without_handler_is_an_error() {
    let (success, _, err) = run("", EVENT, "");
    assert!(!success);
    assert!(err.contains("no handler for 'pods'") && err.contains("__on_kubernetes::pods::added"), "{err}");
}
