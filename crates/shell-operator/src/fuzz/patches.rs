//! Random patches: whatever a hook writes, an operation addresses only its object.

use super::{Seeds, are_equal, fuzz};
use crate::patch;
use crate::yaml::{self, Dialect};

#[test]
fn fuzz_patches() {
    let recorded = include_str!("../../tests/fixtures/recorded/cases/patches/hook.body");
    let yaml = recorded.split_once("<<M\n").unwrap().1;
    let documents: Vec<Vec<u8>> = yaml.split("---\n").map(|text| text.as_bytes().to_vec()).collect();
    let seeds = Seeds::of("patches", documents);
    fuzz("patches", |u| {
        let text = seeds.changed_text(u)?;
        // A text may be refused as a value, but must not cause a panic.
        let _ = yaml::value(&text, Dialect::Text);
        for operation in patch::parse(&text).unwrap_or_default() {
            let parts = [&operation.namespace, &operation.name].into_iter().chain(&operation.subresource);
            for part in parts {
                assert!(!part.contains(['/', '%', '?', '#', ' ']) && part != "..", "{part:?} of {text:?}");
            }
            assert!(!operation.kind.is_empty(), "{text:?}");
        }
        Ok(())
    });
}

/// YAML holds JSON, so both readers must see the same in it.
#[test]
fn fuzz_json_as_yaml() {
    let seeds = Seeds::of("objects", []);
    fuzz("json as yaml", |u| {
        let text = seeds.changed_text(u)?;
        let Ok(expected) = serde_json::from_str::<serde_json::Value>(&text) else { return Ok(()) };
        let found = yaml::value(&text, Dialect::Structured);
        // Repeated keys are refused, and some escapes of JSON are not YAML's.
        if let (Ok(found), false) = (found, text.contains(['.', 'e', 'E', '\\'])) {
            assert!(are_equal(&found, &expected), "{text:?}: {found}");
        }
        Ok(())
    });
}
