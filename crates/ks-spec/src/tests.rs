use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    row: String,
    spec: Value,
    #[serde(default)]
    status: Value,
    /// What the object becomes; without it, it stays as it is.
    migrated: Option<Value>,
    /// Parts of what templates see.
    #[serde(default)]
    effective: Value,
}

#[test]
fn specs_of_older_versions_become_those_of_today() {
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("../tests/cases/migrations.yaml")).unwrap();
    for case in cases {
        let mut spec = case.spec.clone();
        let done = migrate(&mut spec);
        assert_eq!(spec, case.migrated.clone().unwrap_or(case.spec), "row {}", case.row);
        assert_eq!(done.is_empty(), case.migrated.is_none(), "row {}: {done:?}", case.row);
        let seen = effective(&spec, &case.status);
        assert!(case.effective.is_null() || contains(&seen, &case.effective), "row {}: {seen}", case.row);
        assert_eq!(migrate(&mut spec), [""; 0], "row {}: a second time", case.row);
    }
}

/// Whether a value has all that is wanted.
fn contains(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| value.get(key).map_or(wanted.is_null(), |value| contains(value, wanted))),
        _ => value == wanted,
    }
}

#[test]
fn what_cannot_be_meant_is_named() {
    for (case, spec, expected) in [
        (
            "text_for_object",
            json!({"monitoring": "yes"}),
            "spec.monitoring must be an object, and is a string",
        ),
        (
            "text_for_switch",
            json!({"devops": {"enabled": "true"}}),
            "spec.devops.enabled must be a boolean, and is a string",
        ),
        (
            "nested",
            json!({"network": {"ippool": {"type": 1}}}),
            "spec.network.ippool.type must be a string, and is an integer",
        ),
        ("choice", json!({"mode": "Dry"}), "spec.mode must be one of \"Apply\", \"Plan\", and is \"Dry\""),
    ] {
        assert_eq!(check(&spec, &[]).wrong, [expected], "{case}");
    }
}

#[test]
fn keys_that_nothing_reads_are_named() {
    let spec =
        json!({"monitorin": {"enabled": true}, "etcd": {"prot": 1}, "own": {"x": 1}, "devops": {"any": 1}});
    let problems = check(&spec, &["own.x".to_owned()]);
    assert_eq!(
        problems,
        Problems { wrong: vec![], unknown: vec!["spec.monitorin".into(), "spec.etcd.prot".into()] }
    );
}
