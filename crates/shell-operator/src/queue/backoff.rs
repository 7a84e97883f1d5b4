//! How long a failed task waits.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(32);

/// Time before the next attempt after `failures` earlier ones, with `chance` between 0 and 1.
///
/// 5 s after the first failure, then 5 s + 1, 2, 4, 8, 16 s and up to a second by chance, at most 32 s, in steps
/// of 100 ms: the numbers of the original.
pub fn delay(failures: u32, chance: f64) -> Duration {
    let delay = match failures {
        0 => FIRST,
        1..=5 => {
            FIRST + Duration::from_secs(1 << (failures - 1)) + Duration::from_secs_f64(chance.clamp(0.0, 1.0))
        }
        _ => LONGEST,
    };
    let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis - millis % 100).min(LONGEST)
}
