//! Metrics files, and the text that scrapers get.

use super::*;

#[test]
fn the_recorded_report_gives_the_recorded_text() {
    let body = include_str!("../../tests/fixtures/recorded/cases/metrics/hook.body");
    let lines: Vec<&str> = body.lines().filter(|line| line.starts_with('{')).collect();
    let operations = parse(lines.join("\n").as_bytes()).unwrap();
    let registry = Registry::default();
    assert_eq!(apply(&registry, "hook.sh", &operations), Vec::<String>::new());
    let recorded = include_str!("../../tests/fixtures/recorded/after/metrics-hooks.txt");
    assert_eq!(registry.text(), recorded);
}

fn report(registry: &Registry, text: &str) {
    assert_eq!(apply(registry, "h", &parse(text.as_bytes()).unwrap()), Vec::<String>::new());
}

#[test]
fn a_group_shows_the_last_report_and_the_rest_stays() {
    let registry = Registry::default();
    report(&registry, r#"{"group":"g","name":"a","set":1,"labels":{"x":"1"}}{"name":"b","add":2}"#);
    report(&registry, r#"{"group":"g","name":"a","set":2,"labels":{"x":"2"}}{"name":"b","add":2}"#);
    assert_eq!(
        registry.text(),
        "# TYPE a gauge\na{hook=\"h\",x=\"2\"} 2\n# TYPE b counter\nb{hook=\"h\"} 4\n"
    );
    report(&registry, r#"{"group":"g","action":"expire"}"#);
    assert_eq!(registry.text(), "# TYPE b counter\nb{hook=\"h\"} 4\n");
    report(&registry, "");
    assert_eq!(registry.text(), "# TYPE b counter\nb{hook=\"h\"} 4\n", "an empty file changes nothing");
}

#[test]
fn null_is_the_same_as_missing() {
    let text = br#"{"name":"a","set":1,"add":null,"group":null,"labels":null,"buckets":null,"action":null}"#;
    assert_eq!(parse(text).unwrap(), parse(br#"{"name":"a","set":1}"#).unwrap());
}

#[test]
fn a_metric_has_one_kind() {
    let registry = Registry::default();
    report(&registry, r#"{"name":"a","set":1}"#);
    let problems = apply(&registry, "h", &parse(br#"{"name":"a","add":1}{"name":"c","add":1}"#).unwrap());
    assert_eq!(problems, ["the metric 'a' is a gauge already, it cannot be a counter as well"]);
    assert!(registry.text().contains("c{hook=\"h\"} 1"), "the other operations are applied");
}

#[test]
fn the_label_hook_is_the_operators() {
    let registry = Registry::default();
    report(&registry, r#"{"name":"a","set":1,"labels":{"hook":"other","q":"a\nb\\"}}"#);
    assert_eq!(registry.text(), "# TYPE a gauge\na{hook=\"h\",q=\"a\\nb\\\\\"} 1\n");
}

#[test]
fn bad_reports() {
    for (case, text, expected) in [
        ("not_json", "name: a", "operation 1"),
        ("no_action", r#"{"name":"a"}"#, "needs an 'action'"),
        ("no_name", r#"{"set":1}"#, "'name' is required"),
        ("no_value", r#"{"name":"a","action":"set"}"#, "needs a 'value'"),
        ("no_buckets", r#"{"name":"a","action":"observe","value":1}"#, "needs 'buckets'"),
        ("expire_without_group", r#"{"name":"a","action":"expire"}"#, "needs a 'group'"),
        ("unknown_action", r#"{"name":"a","action":"expired","group":"g"}"#, "unknown action 'expired'"),
        ("both", r#"{"name":"a","set":1,"add":1}"#, "both 'add' and 'set'"),
        ("bad_name", r#"{"name":"a b","set":1}"#, "'a b' is not a metric's name"),
        ("bad_label", r#"{"name":"a","set":1,"labels":{"a-b":"1"}}"#, "'a-b' is not a label's name"),
        (
            "label_of_histograms",
            r#"{"name":"a","action":"observe","value":1,"buckets":[1],"labels":{"le":"1"}}"#,
            "'le' of a histogram",
        ),
        ("down", r#"{"name":"a","add":-1}"#, "cannot go down"),
        ("label_type", r#"{"name":"a","set":1,"labels":{"a":1}}"#, "operation 1"),
        (
            "all_at_once",
            r#"{"name":"a"}{"name":"b","set":1}{"set":1}"#,
            "operation 1: metric 'a' needs an 'action', 'add' or 'set'; operation 3",
        ),
    ] {
        println!("case {case}");
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(error.contains(expected), "{case}: {error}");
    }
}

#[test]
fn of_a_hook_that_is_gone_only_counters_stay() {
    let metrics = OperatorMetrics::new("p_");
    for hook in ["gone.sh", "stays.sh"] {
        metrics.snapshot_objects(hook, "b", "main", 3);
        metrics.task_waited(hook, "b", "main", std::time::Duration::from_secs(1));
    }
    metrics.forget_state("gone.sh");
    let text = metrics.text();
    let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        series,
        [
            "p_kube_snapshot_objects{binding=\"b\",hook=\"stays.sh\",queue=\"main\"} 3",
            "p_task_wait_in_queue_seconds_total{binding=\"b\",hook=\"gone.sh\",queue=\"main\"} 1",
            "p_task_wait_in_queue_seconds_total{binding=\"b\",hook=\"stays.sh\",queue=\"main\"} 1",
        ]
    );
}

#[test]
fn a_run_too_short_to_be_looked_at_does_not_hide_what_an_earlier_one_used() {
    let metrics = OperatorMetrics::new("p_");
    for max_rss_bytes in [4096, 0] {
        let usage = RunUsage { max_rss_bytes, ..RunUsage::default() };
        metrics.hook_ran("h", "b", "main", &usage, RunResult::Success);
    }
    assert!(
        metrics.text().contains("p_hook_run_max_rss_bytes{binding=\"b\",hook=\"h\",queue=\"main\"} 4096")
    );
}

/// The first text in each call that names a metric.
fn names_in(source: &str) -> Vec<&str> {
    let calls = ["self.set(", "self.add(", "self.observe(", "histogram("];
    let code = source.split("#[cfg(test)]").next().unwrap();
    let after = calls.iter().flat_map(|call| code.split(call).skip(1));
    after.filter_map(|text| text.trim_start().strip_prefix('"')?.split('"').next()).collect()
}

#[test]
fn every_metric_is_in_the_reference() {
    let reference = include_str!("../../../../docs/shell-operator/reference.md");
    let names = [names_in(include_str!("own.rs")), names_in(include_str!("client.rs"))].concat();
    assert!(names.contains(&"live_ticks") && names.len() > 20, "{names:?}");
    let missing: Vec<&&str> = names.iter().filter(|name| !reference.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in docs/shell-operator/reference.md: {missing:?}");
}
