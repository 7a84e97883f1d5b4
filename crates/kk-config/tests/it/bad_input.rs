//! Loads every file of `tests/cases/` and compares the messages for the user with a reviewed snapshot.

use kk_config::{Components, Overrides, load};
use std::path::Path;

/// The replacement for every secret in the cases.
const SENTINEL: &str = "SENTINEL";

#[test]
fn each_case_gets_its_findings() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() > 20, "the cases were not found");
    for path in cases {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let shown = match load(name, &text, &Overrides::default()) {
            Ok(loaded) => {
                assert!(!format!("{loaded:?}").contains(SENTINEL), "{name}");
                let warnings: Vec<String> =
                    loaded.warnings.iter().map(kk_config::Diagnostic::render).collect();
                format!("{}\n\nloaded", warnings.join("\n\n"))
            }
            Err(errors) => errors.to_string(),
        };
        assert!(!shown.contains(SENTINEL), "{name} shows a secret:\n{shown}");
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name.trim_end_matches(".yaml"), shown);
        });
    }
}

#[test]
fn a_version_from_the_command_line_wins() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/version-1.36.yaml"))
        .unwrap();
    let kubernetes_version = Some("1.37.1".parse().unwrap());
    let loaded = load("file", &text, &Overrides { kubernetes_version, ..Overrides::default() });
    assert_eq!(loaded.unwrap().spec.kubernetes.version.to_string(), "v1.37.1");
}

#[test]
fn versions_of_components_from_the_command_line_win() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/version-1.36.yaml"))
        .unwrap();
    let components = Components { etcd: Some("3.6.2".to_owned()), ..Components::default() };
    let kubernetes_version = Some(kk_config::KubeVersion::default());
    let loaded = load("file", &text, &Overrides { kubernetes_version, components, ..Overrides::default() });
    assert_eq!(loaded.unwrap().spec.components.etcd.as_deref(), Some("3.6.2"));
}

#[test]
fn the_findings_of_a_file_that_is_something_else_are_counted_after_the_first_thousand() {
    let lines: Vec<String> = (0..1500).map(|number| format!("key{number}: x")).collect();
    let errors = load("file", &format!("kind: Cluster\n{}", lines.join("\n")), &Overrides::default())
        .unwrap_err()
        .errors;
    assert_eq!(errors.len(), 1001);
    assert_eq!(errors[1000].render(), "error: 500 more are not shown");
}
