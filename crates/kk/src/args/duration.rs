//! Time limits as people write them: `20s`, `5m`, `1h30m`, or a number of seconds.

use std::time::Duration;

/// Longest limit: a day.
const LONGEST: u64 = 86_400;

/// Reads a time limit of at least a second and at most a day.
pub(super) fn limit(text: &str) -> Result<Duration, String> {
    let seconds = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        kk_config::go_duration(text)
    };
    seconds
        .filter(|seconds| (1..=LONGEST).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| "write a time such as 20s, 5m or 1h30m, at most 24h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_of_seconds_or_has_units() {
        for (text, seconds) in [
            ("20s", Some(20)),
            ("5m", Some(300)),
            ("1h30m", Some(5400)),
            ("24h", Some(86_400)),
            ("300", Some(300)),
            ("0", None),
            ("0s", None),
            ("25h", None),
            ("5 m", None),
            ("5d", None),
            ("-5s", None),
            ("m", None),
            ("", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(limit(text).ok(), seconds.map(Duration::from_secs), "{text}");
        }
    }
}
