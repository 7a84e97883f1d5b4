//! Durations as Go writes them: `300ms`, `1.5h`, `2h45m`.

use std::time::Duration;

/// Parses a Go duration. `None` when the text is not one, or when it is negative.
///
/// Units are `ns`, `us` (`µs`), `ms`, `s`, `m` and `h`; a plain `0` needs none (Go's `time.ParseDuration`).
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, length) = unit(rest)?;
        seconds += number * unit;
        rest = &rest[length..];
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// Seconds in the unit that `text` starts with, and the length of its name.
fn unit(text: &str) -> Option<(f64, usize)> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("μs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    UNITS.iter().find(|(name, _)| text.starts_with(name)).map(|(name, unit)| (*unit, name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations() {
        for (text, milliseconds) in [
            ("30s", Some(30_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5h", Some(5_400_000)),
            ("300ms", Some(300)),
            ("0", Some(0)),
            ("0.1s", Some(100)),
            ("30ks", None),
            ("30", None),
            ("-1s", None),
            ("often", None),
            ("", None),
            ("1e3s", None),
        ] {
            assert_eq!(parse(text), milliseconds.map(Duration::from_millis), "{text}");
        }
    }
}
