//! Loads every file of `tests/manifests/` and compares the messages for the user with a reviewed snapshot.

use kk_config::load_manifest;
use std::path::Path;

/// The replacement for every secret in the cases.
const SENTINEL: &str = "SENTINEL";

fn text(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests");
    std::fs::read_to_string(directory.join(name)).expect("the file is in the checkout")
}

#[test]
fn each_file_gets_its_findings() {
    for name in ["kubekey", "all-wrong", "empty", "other-documents", "other-distributions", "only-k3s"] {
        let shown = match load_manifest(name, &text(&format!("{name}.yaml"))) {
            Ok((manifest, warnings)) => {
                let warnings: Vec<String> = warnings.iter().map(kk_config::Diagnostic::render).collect();
                format!("{}\n\n{manifest:#?}", warnings.join("\n\n"))
            }
            Err(errors) => errors.to_string(),
        };
        assert!(!shown.contains(SENTINEL), "{name} shows a secret:\n{shown}");
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("manifest-{name}"), shown);
        });
    }
}

#[test]
fn what_is_written_is_read_again_but_for_passwords() {
    let (mut manifest, _) = load_manifest("kubekey", &text("kubekey.yaml")).unwrap();
    let written = manifest.text();
    assert!(!written.contains(SENTINEL), "{written}");
    let (again, warnings) = load_manifest("written", &written).unwrap();
    assert_eq!(warnings, []);
    manifest.registry.auths.values_mut().for_each(|auth| (auth.username, auth.password) = (None, None));
    assert_eq!(again, manifest);
}
