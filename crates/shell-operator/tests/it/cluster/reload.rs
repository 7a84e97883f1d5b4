//! Hooks that change while the operator runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use crate::cluster::control_plane::{ControlPlane, shared};
use crate::cluster::operator::{Operator, Setup, hook_text, run_program, write_program};

/// Time in which a change would have been taken over twice.
const SETTLED: Duration = Duration::from_secs(4);

fn config(namespace: &str, name: &str) -> String {
    format!(
        "configVersion: v1\nkubernetes:\n- {{name: {name}, apiVersion: v1, kind: ConfigMap, \
         namespace: {{nameSelector: {{matchNames: [{namespace}]}}}}, labelSelector: {{matchLabels: {{t: x}}}}, \
         jqFilter: .data.k, keepFullObjectsInMemory: false}}"
    )
}

fn set(plane: &ControlPlane, namespace: &str, k: &str) {
    plane.apply(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, namespace: {namespace}, labels: {{t: x}}}}, data: {{k: '{k}'}}}}"
    ));
}

/// The reasons for a hook's runs: `binding:Synchronization:results` or `binding:Modified:result`, in order.
fn seen(operator: &Operator, hook: &str) -> Vec<String> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let one = |context: &serde_json::Value| {
        let results = context["objects"].as_array().map_or_else(
            || text(&context["filterResult"]),
            |objects| objects.iter().map(|item| text(&item["filterResult"])).collect::<Vec<_>>().join(","),
        );
        let what = context.get("watchEvent").unwrap_or(&context["type"]);
        format!("{}:{}:{results}", text(&context["binding"]), text(what))
    };
    operator.all_contexts(hook).iter().map(one).collect()
}

fn metric(operator: &Operator, line: &str) -> bool {
    operator.get("/metrics").unwrap().lines().any(|known| known == line)
}

#[test]
fn a_changed_hook_begins_anew_and_the_others_go_on_untouched() {
    let plane = shared();
    plane.kubectl("create ns reload");
    set(plane, "reload", "1");
    let operator = Setup::new(plane)
        .flag("--hooks-reload")
        .hook("changed", &config("reload", "old"), "keep")
        .hook("removed", &config("reload", "removed"), "keep")
        .hook("same", &config("reload", "same"), "keep")
        .start();
    operator.wait_ready();
    let lists = |operator: &Operator| {
        let text = operator.get("/metrics").unwrap();
        let line =
            text.lines().find(|line| line.contains("request_result_total{code=\"200\",component=\"main\""));
        line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
    };
    let asked = lists(&operator);
    operator.put_hook("changed", &config("reload", "new"), "keep");
    operator.put_hook("added", &config("reload", "added"), "keep");
    fs::remove_file(operator.hooks_dir().join("removed")).unwrap();
    operator.wait_for("the new hooks", |operator| {
        seen(operator, "changed").contains(&"new:Synchronization:1".to_owned())
            && seen(operator, "added") == ["added:Synchronization:1"]
    });
    assert!(lists(&operator) <= asked + 2.0, "the watch is shared: only the kind may be asked for again");
    set(plane, "reload", "2");
    operator.wait_for("the event", |operator| {
        [("added", 2), ("changed", 3), ("same", 2)]
            .iter()
            .all(|(hook, runs)| seen(operator, hook).len() >= *runs)
    });
    std::thread::sleep(SETTLED);
    assert_eq!(seen(&operator, "added"), ["added:Synchronization:1", "added:Modified:2"]);
    assert_eq!(
        seen(&operator, "changed"),
        ["old:Synchronization:1", "new:Synchronization:1", "new:Modified:2"]
    );
    assert_eq!(seen(&operator, "same"), ["same:Synchronization:1", "same:Modified:2"], "{}", operator.log());
    assert_eq!(seen(&operator, "removed"), ["removed:Synchronization:1"]);
    // Without the bit it is no hook any more.
    let same = operator.hooks_dir().join("same");
    fs::set_permissions(&same, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let socket = operator.socket().display().to_string();
    operator.wait_for("the end of the hook", |operator| {
        run_program(&["hook", "list", "-o", "json", "--debug-unix-socket", &socket], &operator.out()).1
            == "[\"added\",\"changed\"]\n"
    });
    assert!(operator.get("/readyz").is_ok());
}

#[test]
fn bad_hooks_change_nothing_until_they_are_good() {
    let plane = shared();
    plane.kubectl("create ns reload-bad");
    set(plane, "reload-bad", "1");
    let operator = Setup::new(plane)
        .flag("--hooks-reload")
        .hook("a", &config("reload-bad", "a"), "keep")
        .hook("b", &config("reload-bad", "b"), "keep")
        .start();
    operator.wait_ready();
    // One hook is fine, one is gone, one is wrong: no change is taken over.
    operator.put_hook("a", &config("reload-bad", "new"), "keep; echo new a > $OUT/new-a");
    fs::remove_file(operator.hooks_dir().join("b")).unwrap();
    operator.put_hook("c", "configVersion: v1\nnope: 1", "echo > $OUT/c-ran");
    operator.wait_for("the message", |operator| operator.log().contains("the previous hooks stay active"));
    let socket = operator.socket().display().to_string();
    let queues = || run_program(&["queue", "list", "--debug-unix-socket", &socket], &operator.out()).1;
    assert!(
        queues().contains("are not used, because:\nload hook 'c' config: nope: is a forbidden"),
        "{}",
        queues()
    );
    assert!(metric(&operator, "shell_operator_hooks_reload_failing 1"));
    set(plane, "reload-bad", "2");
    for hook in ["a", "b"] {
        operator.wait_for("the old hook", |operator| {
            seen(operator, hook) == [format!("{hook}:Synchronization:1"), format!("{hook}:Modified:2")]
        });
    }
    assert_eq!((operator.file("new-a"), operator.file("c-ran")), (String::new(), String::new()));
    fs::remove_file(operator.hooks_dir().join("c")).unwrap();
    operator.wait_for("the new hook", |operator| {
        seen(operator, "a").last() == Some(&"new:Synchronization:2".to_owned())
    });
    operator.wait_for("the metric", |operator| metric(operator, "shell_operator_hooks_reload_failing 0"));
    assert!(!queues().contains("are not used"));
    assert_eq!(seen(&operator, "b").len(), 2);
}

#[test]
fn a_config_map_volume_is_taken_over_when_its_link_is_swapped() {
    let plane = shared();
    plane.kubectl("create ns reload-cm");
    set(plane, "reload-cm", "1");
    let setup = Setup::new(plane).flag("--hooks-reload");
    let (dir, out) = (setup.hooks_dir(), setup.out());
    fs::create_dir(&out).unwrap();
    let volume = |version: &str, binding: &str| {
        let to = dir.join(version);
        fs::create_dir(&to).unwrap();
        write_program(&to.join("h"), &hook_text(&out, "h", &config("reload-cm", binding), "keep"));
        write_program(&to.join("same"), &hook_text(&out, "same", &config("reload-cm", "same"), "keep"));
        symlink(version, dir.join("..data_tmp")).unwrap();
        fs::rename(dir.join("..data_tmp"), dir.join("..data")).unwrap();
    };
    volume("..1", "one");
    for name in ["h", "same"] {
        symlink(format!("..data/{name}"), dir.join(name)).unwrap();
    }
    let operator = setup.start();
    operator.wait_ready();
    volume("..2", "two");
    fs::remove_dir_all(dir.join("..1")).unwrap();
    operator.wait_for("the new hook", |operator| seen(operator, "h").len() == 2);
    set(plane, "reload-cm", "2");
    operator.wait_for("the event", |operator| {
        seen(operator, "same").len() == 2 && seen(operator, "h").len() == 3
    });
    std::thread::sleep(SETTLED);
    assert_eq!(seen(&operator, "h"), ["one:Synchronization:1", "two:Synchronization:1", "two:Modified:2"]);
    assert_eq!(seen(&operator, "same"), ["same:Synchronization:1", "same:Modified:2"], "{}", operator.log());
}

#[test]
fn a_hook_that_runs_while_it_is_changed_is_not_run_beside_itself() {
    let plane = shared();
    let body = |version: &str| {
        format!(
            "mkdir $OUT/lock || echo twice >> $OUT/twice\necho {version} >> $OUT/begun\n\
             while [ ! -e $OUT/go ]; do sleep 0.1; done\nrmdir $OUT/lock; echo {version} >> $OUT/ended"
        )
    };
    // Two queues: the worker of one queue would not wait for the other worker.
    let config =
        |queue: &str| format!("configVersion: v1\nschedule: [{{crontab: '* * * * * *', queue: {queue}}}]");
    let operator = Setup::new(plane).flag("--hooks-reload").hook("h", &config("one"), &body("old")).start();
    operator.wait_for("the run", |operator| operator.file("begun") == "old\n");
    operator.put_hook("h", &config("two"), &body("new"));
    operator.wait_for("the change", |operator| operator.log().contains("as it was before"));
    std::thread::sleep(SETTLED);
    assert_eq!((operator.file("begun").as_str(), operator.file("ended").as_str()), ("old\n", ""));
    fs::write(operator.out().join("go"), "").unwrap();
    operator.wait_for("the new runs", |operator| operator.file("ended").contains("new\nnew\n"));
    assert!(operator.file("ended").starts_with("old\nnew\n"), "what waited for the old one is dropped");
    assert_eq!(operator.file("twice"), "");
}

#[test]
fn a_hook_that_fails_is_mended_without_waiting_for_its_next_attempt() {
    let plane = shared();
    let config = "configVersion: v1\nonStartup: 1";
    let operator = Setup::new(plane).flag("--hooks-reload").hook("h", config, "keep; exit 1").start();
    // By then it waits for 21 s or more.
    operator.wait_long_for(Duration::from_mins(2), "failures", |operator| {
        operator.log().matches("Hook failed. Will retry").count() == 6
    });
    let mended = std::time::Instant::now();
    operator.put_hook("h", config, "keep");
    operator.wait_ready();
    assert!(mended.elapsed() < Duration::from_secs(20), "{:?}", mended.elapsed());
    assert!(metric(&operator, "shell_operator_hook_failing{hook=\"h\",queue=\"main\"} 0"));
}

#[test]
fn hooks_stay_as_they_are_unless_a_reload_is_wanted() {
    let plane = shared();
    let operator = Setup::new(plane).hook("h", "configVersion: v1\nonStartup: 1", "keep").start();
    operator.wait_ready();
    operator.put_hook("h", "configVersion: v1\nonStartup: 2", "keep");
    std::thread::sleep(SETTLED);
    assert_eq!(operator.contexts("h").len(), 1);
}
