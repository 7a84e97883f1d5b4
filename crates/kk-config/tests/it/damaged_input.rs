//! Damages a file that is full of secrets in one or two places: loading must neither panic nor show a secret.

use std::ops::Range;

use arbtest::arbitrary::{Result, Unstructured};
use kk_config::{Overrides, load};

const FULL: &str = include_str!("../kubekey-full.yaml");
const SENTINEL: &str = "SENTINEL";
/// Number of damaged files.
const CASES: u64 = 400;
/// Bytes of randomness for each file: more than two edits use.
const SIZE: u64 = 32;
/// Spreads the numbers of cases over all seeds: the golden ratio, as a fraction of 2^32.
const SPREAD: u64 = 0x9e37_79b9;

/// Typical inserts of typing mistakes.
const INSERTS: [&str; 17] =
    ["", "", " ", "  ", "\n", "\t", ":", ": ", "- ", "'", "\"", "{", "]", "#", "|", "&", "*"];

/// The damage is the same in every run: a rare new finding must not fail an unrelated change. A failure prints its seed.
#[test]
fn no_damage_panics_or_shows_a_secret() {
    for case in 1..=CASES {
        // The upper half seeds the generator, the lower half is the size.
        arbtest::arbtest(damage).seed((case * SPREAD) << 32 | SIZE).run();
    }
}

fn damage(random: &mut Unstructured<'_>) -> Result<()> {
    let mut text = FULL.to_owned();
    for _ in 0..random.int_in_range(1..=2)? {
        let (at, removed) = (random.int_in_range(0..=FULL.len() - 1)?, random.int_in_range(0..=2)?);
        let insert = random.choose(&INSERTS)?;
        let (at, end) = (at.min(text.len()), (at + removed).min(text.len()));
        if text.is_char_boundary(at) && text.is_char_boundary(end) && !names_a_secret(&text, at..end) {
            text.replace_range(at..end, insert);
        }
    }
    let shown = match load("file.yaml", &text, &Overrides::default()) {
        Ok(loaded) => format!("{loaded:?}"),
        Err(errors) => errors.to_string(),
    };
    assert!(!shown.contains(SENTINEL), "{shown}");
    Ok(())
}

/// Whether the range overlaps the name of a secret: without a recognisable name, the value is not known to be a secret. (A single
/// mistake in a name is recognised; `mask` has its cases.)
fn names_a_secret(text: &str, range: Range<usize>) -> bool {
    ["assword", "rivateKey"].iter().flat_map(|name| text.match_indices(name)).any(|(start, name)| {
        let end = start + name.len();
        start <= range.end && range.start <= end
    })
}
