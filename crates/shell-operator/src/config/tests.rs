//! The 70 recorded configurations, and the checks that recordings do not show.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Recorded {
    config: String,
    accepted: bool,
}

#[test]
fn recorded_configurations_are_accepted_or_refused_as_by_the_original() {
    let recorded: BTreeMap<String, Recorded> =
        serde_json::from_str(include_str!("../../tests/fixtures/recorded/configs.json")).unwrap();
    assert_eq!(recorded.len(), 70);
    let different: Vec<String> = recorded
        .iter()
        .map(|(name, case)| (name, case, HookConfig::parse(&case.config)))
        .filter(|(_, case, result)| result.is_ok() != case.accepted)
        .map(|(name, case, result)| format!("{name}: recorded accepted={}, now {result:?}", case.accepted))
        .collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn what_is_probably_a_mistake_is_said() {
    for (case, config, expected) in [
        ("two_names", "kubernetes:\n- {kind: Pod}\n- {kind: Secret}", "kubernetes[1]"),
        (
            "both_events",
            "kubernetes:\n- {kind: Pod, executeHookOnEvent: [Added], watchEvent: [Deleted]}",
            "watchEvent",
        ),
        ("duplicate_key", "onStartup: 1\nonStartup: 2", "twice"),
        ("second_document", "onStartup: 1\n---\nonStartup: 2", "more than one YAML document"),
        (
            "bad_period",
            "kubernetes:\n- {kind: Pod, resynchronizationPeriod: often}",
            "resynchronizationPeriod",
        ),
        (
            "both_namespaces",
            "kubernetes:\n- {kind: Pod, namespace: {nameSelector: {matchNames: [a]}, labelSelector: {matchLabels: {a: b}}}}",
            "namespace.nameSelector",
        ),
        ("empty_group", "schedule:\n- {crontab: '* * * * *', group: g}", "no kubernetes binding"),
    ] {
        println!("case {case}");
        let config = HookConfig::parse(&format!("configVersion: v1\n{config}\n")).unwrap();
        assert!(config.warnings.iter().any(|text| text.contains(expected)), "{case}: {:?}", config.warnings);
    }
}

#[test]
fn all_problems_are_reported_at_once_with_their_paths() {
    let text = r"
configVersion: v1
onStartup: e1
nope: 1
schedule:
- {name: a}
kubernetes:
- {kind: Pod, labelSelector: {matchLabels: {a: 1}, matchExpressions: [{key: b, operand: In, operator: Like}]}}
- {apiVersion: v1/12/wqe, executeHookOnEvent: [Created], nameSelector: {matchNames: [20]}, allowFailure: ok}
settings: {executionMinInterval: 30ks}
";
    let error = HookConfig::parse(text).unwrap_err().to_string();
    for path in [
        "nope",
        "onStartup",
        "schedule[0].crontab",
        "kubernetes[0].labelSelector.matchLabels.a",
        "kubernetes[0].labelSelector.matchExpressions[0].operand",
        "kubernetes[0].labelSelector.matchExpressions[0].operator",
        "kubernetes[1].kind",
        "kubernetes[1].apiVersion",
        "kubernetes[1].executeHookOnEvent",
        "kubernetes[1].nameSelector.matchNames[0]",
        "kubernetes[1].allowFailure",
        "settings.executionMinInterval",
    ] {
        assert!(
            error.lines().any(|line| line.starts_with(&format!("{path}: "))),
            "{path} missing in:\n{error}"
        );
    }
}

#[test]
fn a_group_brings_the_snapshots_of_its_bindings() {
    let text = r"
configVersion: v1
schedule: [{crontab: '* * * * *', group: g, includeSnapshotsFrom: [other]}]
kubernetes:
- {name: a, kind: Pod, group: g}
- {name: b, kind: Secret, group: g, includeSnapshotsFrom: [b]}
- {name: other, kind: Node}
kubernetesValidating:
- {name: p.example.com, group: g, rules: [{apiVersions: [v1], apiGroups: [''], resources: [pods], operations: ['*']}]}
";
    let config = HookConfig::parse(text).unwrap();
    assert_eq!(config.schedules[0].include_snapshots_from, ["other", "a", "b"]);
    assert_eq!(config.kubernetes[0].include_snapshots_from, ["a", "b"]);
    assert_eq!(config.kubernetes[1].include_snapshots_from, ["b", "a"]);
    assert!(config.kubernetes[2].include_snapshots_from.is_empty());
    assert_eq!(config.validating[0].include_snapshots_from, ["a", "b"]);
}

#[test]
fn event_lists() {
    let cases: [(&str, &[WatchEvent]); 5] = [
        ("executeHookOnEvent: []", &[]),
        ("watchEvent: []", &[]),
        ("watchEvent: [Added, Modified]", &[WatchEvent::Added, WatchEvent::Modified]),
        ("executeHookOnEvent: [Deleted], watchEvent: [Added]", &[WatchEvent::Deleted]),
        ("name: a", &WatchEvent::ALL),
    ];
    for (keys, expected) in cases {
        println!("case {keys}");
        let config =
            HookConfig::parse(&format!("configVersion: v1\nkubernetes:\n- {{kind: Pod, {keys}}}\n")).unwrap();
        assert_eq!(config.kubernetes[0].events, expected, "{keys}");
    }
}

#[test]
fn the_hook_of_ks_installer_is_understood() {
    let text = r#"{"onKubernetesEvent":[{"name":"Monitor clusterconfiguration","kind":"ClusterConfiguration",
        "event":["add","update"],"objectName":"ks-installer","namespaceSelector":{"matchNames":["kubesphere-system"]},
        "jqFilter":".spec","allowFailure":false}]}"#;
    let config = HookConfig::parse(text).unwrap();
    assert_eq!(config.version, ConfigVersion::V0);
    let binding = &config.kubernetes[0];
    assert_eq!(binding.events, [WatchEvent::Added, WatchEvent::Modified]);
    assert_eq!(binding.names, ["ks-installer"]);
    assert_eq!(binding.namespace, NamespaceSelector::Names(vec!["kubesphere-system".to_owned()]));
    assert!(!binding.on_synchronization);
}

#[test]
fn v0_events_default_to_all() {
    let config = HookConfig::parse("onKubernetesEvent: [{kind: Pod}]").unwrap();
    assert_eq!(config.kubernetes[0].events, WatchEvent::ALL);
    assert_eq!(config.kubernetes[0].name, "onKubernetesEvent");
}

#[test]
fn selectors_are_written_as_the_api_server_reads_them() {
    let text = r"
configVersion: v1
kubernetes:
- kind: Pod
  labelSelector:
    matchLabels: {b: '', a: x}
    matchExpressions:
    - {key: t, operator: In, values: [p, q]}
    - {key: u, operator: NotIn, values: [r]}
    - {key: example.com/v, operator: Exists}
    - {key: w, operator: DoesNotExist}
  fieldSelector:
    matchExpressions:
    - {field: status.phase, operator: NotEquals, value: 'a,b=c'}
    - {field: metadata.namespace, operator: '==', value: x}
";
    let config = HookConfig::parse(text).unwrap();
    let binding = &config.kubernetes[0];
    assert_eq!(
        binding.label_selector.as_ref().unwrap().to_string(),
        "a=x,b=,t in (p,q),u notin (r),example.com/v,!w"
    );
    let fields: Vec<String> = binding.field_selector.iter().map(ToString::to_string).collect();
    assert_eq!(fields, [r"status.phase!=a\,b\=c", "metadata.namespace=x"]);
}

#[test]
fn queues() {
    for (schedule, expected) in
        [("{crontab: '* * * * *'}", "main"), ("{crontab: '* * * * *', queue: own}", "own")]
    {
        println!("case {schedule}");
        let config = HookConfig::parse(&format!("configVersion: v1\nschedule: [{schedule}]\n")).unwrap();
        assert_eq!(config.schedules[0].queue, expected, "{schedule}");
    }
}

#[test]
fn limits() {
    for (settings, seconds, burst) in [
        ("executionMinInterval: 30s, executionBurst: 1", 30, 1),
        ("executionMinInterval: 30s", 30, 1),
        ("executionBurst: 3", 0, 3),
        ("executionMinInterval: 1m, executionBurst: 0", 60, 1),
    ] {
        println!("case {settings}");
        let config =
            HookConfig::parse(&format!("configVersion: v1\nonStartup: 1\nsettings: {{{settings}}}\n"))
                .unwrap();
        assert_eq!(config.settings.execution_min_interval, Duration::from_secs(seconds), "{settings}");
        assert_eq!(config.settings.execution_burst, burst, "{settings}");
    }
}

#[test]
fn bad_validating() {
    for (case, keys) in [
        ("timeout", "timeoutSeconds: 32"),
        ("policy", "failurePolicy: Maybe"),
        ("side_effects", "sideEffects: Some"),
        ("name", "name: two.parts"),
        (
            "wildcards",
            "rules: [{apiVersions: [v1, '*'], apiGroups: [''], resources: [pods], operations: [CREATE]}]",
        ),
        ("no_operations", "rules: [{apiVersions: [v1], apiGroups: [''], resources: [pods]}]"),
        (
            "empty_version",
            "rules: [{apiVersions: [''], apiGroups: [''], resources: [pods], operations: ['*']}]",
        ),
        ("namespace", "namespace: {nameSelector: {matchNames: [a]}}"),
    ] {
        let mut base = String::from("name: policy.example.com");
        if keys.starts_with("name:") {
            base.clear();
        }
        let text = format!("configVersion: v1\nkubernetesValidating:\n- {keys}\n  {base}\n");
        assert!(HookConfig::parse(&text).is_err(), "{case}: {text}");
    }
}

#[test]
fn bad_conversions() {
    for keys in [
        "name: a",
        "name: a, conversions: [{fromVersion: v1, toVersion: v2}]",
        "name: a, crdName: x.example.com, conversions: [{fromVersion: v1, to: v2}]",
        "name: a, crdName: x.example.com, conversions: []",
    ] {
        let text = format!("configVersion: v1\nkubernetesCustomResourceConversion:\n- {{{keys}}}\n");
        assert!(HookConfig::parse(&text).is_err(), "{keys}: {text}");
    }
}
