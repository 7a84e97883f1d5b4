//! Damages a file that is full of secrets in one or two places: loading must neither panic nor show a secret.

use kk_config::{Overrides, load};
use proptest::prelude::*;

const FULL: &str = include_str!("kubekey-full.yaml");
const SENTINEL: &str = "SENTINEL";

/// What typing mistakes are made of.
const INSERTS: [&str; 16] =
    ["", "", " ", "  ", "\n", "\t", ":", ": ", "- ", "'", "\"", "{", "]", "#", "|", "x: &a [*a, !!str]"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_panics_or_shows_a_secret(
        edits in prop::collection::vec((0..FULL.len(), 0..3_usize, prop::sample::select(&INSERTS[..])), 1..3)
    ) {
        let mut text = FULL.to_owned();
        for (at, removed, insert) in edits {
            let (at, end) = (at.min(text.len()), (at + removed).min(text.len()));
            if text.is_char_boundary(at) && text.is_char_boundary(end) {
                text.replace_range(at..end, insert);
            }
        }
        let shown = match load("file.yaml", &text, &Overrides::default()) {
            Ok(loaded) => format!("{loaded:?}"),
            Err(errors) => errors.to_string(),
        };
        // A secret that was split is shown neither.
        prop_assert!(!shown.contains(SENTINEL), "{shown}");
    }
}
