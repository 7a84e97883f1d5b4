//! Crontabs, and values that filters get.

use jiff::Zoned;
use jiff::tz::TimeZone;

use super::{Seeds, fuzz};
use crate::jq::{self, Filter};
use crate::json::{self, Numbers};
use crate::schedule::Crontab;

#[test]
fn fuzz_crontabs() {
    let seeds = Seeds::of("crontabs", []);
    let start: Zoned = jiff::Timestamp::from_second(1_770_000_000).unwrap().to_zoned(TimeZone::UTC);
    fuzz("crontabs", |u| {
        let text = seeds.changed_text(u)?;
        let Ok(crontab) = Crontab::parse(&text) else { return Ok(()) };
        if let Some(next) = crontab.next(&start) {
            assert!(next > start, "{text:?}");
            assert!(crontab.next(&next).is_none_or(|later| later > next), "{text:?}");
        }
        Ok(())
    });
}

#[test]
fn fuzz_inputs_of_filters() {
    let sources = [
        ".",
        ".metadata.labels | keys",
        "[..|numbers]",
        "to_entries",
        "tojson | fromjson",
        "del(.a) | length",
        "[paths]",
        ".a[2:5]",
        "[.[]? | tostring | ascii_downcase | test(\"a\")]",
        "with_entries(.value |= tostring)",
    ];
    let filters = sources.map(|source| Filter::compile(source).unwrap());
    let seeds = Seeds::of("objects", []);
    fuzz("jq inputs", |u| {
        let text = seeds.changed(u)?;
        let Ok(value) = json::parse(&text) else { return Ok(()) };
        let Ok(written) = json::to_vec(&value, Numbers::Exact) else { return Ok(()) };
        // What is no UTF-8 is written as an escape, and read as the character that it stands for.
        let again = json::to_vec(&json::parse(&written).unwrap(), Numbers::Exact).unwrap();
        let value_of = |text: &[u8]| serde_json::from_slice(text).ok().map(without_signed_zeros);
        assert_eq!(value_of(&written), value_of(&again), "{}", String::from_utf8_lossy(&text));
        let filter = u.choose(&filters)?;
        if let Ok(result) = filter.filter_result(value) {
            assert!(
                json::parse(&result).is_ok(),
                "{} of {}",
                filter.source(),
                String::from_utf8_lossy(&text)
            );
        }
        Ok(())
    });
}

/// jq writes -0 as 0 or as -0, and both are one number.
fn without_signed_zeros(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) if number.as_f64() == Some(0.0) => 0.into(),
        Value::Array(items) => items.into_iter().map(without_signed_zeros).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, without_signed_zeros(value))).collect()
        }
        other => other,
    }
}

#[test]
fn fuzz_filters() {
    let seeds = Seeds::of("filters", []);
    fuzz("jq filters", |u| {
        let text = seeds.changed_text(u)?;
        if Filter::compile(&text).is_ok() {
            let _ = jq::reads(&text);
        }
        Ok(())
    });
}
