//! Crontabs, and values that filters get.

use jiff::Zoned;
use jiff::tz::TimeZone;

use super::{Seeds, are_equal, fuzz};
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
        // Invalid UTF-8 is written as an escape, and read as the character that the escape stands for.
        let again = json::to_vec(&json::parse(&written).unwrap(), Numbers::Exact).unwrap();
        // serde_json refuses what is nested too deeply.
        let same = match (serde_json::from_slice(&written), serde_json::from_slice(&again)) {
            (Ok(one), Ok(other)) => are_equal(&one, &other),
            (one, other) => one.is_err() && other.is_err(),
        };
        assert!(same, "{}", String::from_utf8_lossy(&text));
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
