//! Comparison of the hosts' clocks with each other and with the clock of the control machine.

use crate::{base::findings::Findings, model::inputs::Inputs};

/// Clocks that differ by more than this are not synchronised, in milliseconds: a warning.
const UNSYNCHRONISED_MS: i64 = 1000;

/// Clocks that differ by more than this break leases and tokens, in milliseconds: an error.
const CLOCK_SKEW_MS: i64 = 30_000;

/// Largest difference to the clock of the control machine, in milliseconds: beyond it, certificates made here are not valid on
/// hosts yet, or no longer.
const OWN_SKEW_MS: i64 = 10 * 60 * 1000;

/// Compares the hosts' clocks with their median, and the median with the clock of the control machine, which may differ more.
pub(super) fn check(inputs: &Inputs, found: &mut Findings) {
    let hosts = inputs.hosts();
    let mut skews: Vec<(i64, i64)> =
        hosts.iter().map(|(_, facts)| (facts.clock_skew_ms, facts.clock_uncertainty_ms)).collect();
    skews.sort_unstable();
    let Some((middle, unsure)) = skews.get(skews.len() / 2).copied() else { return };
    if middle.abs() > OWN_SKEW_MS {
        let way = if middle > 0 { "behind" } else { "ahead of" };
        found.error(
            None,
            format!("the control machine's clock is {} s {way} the hosts'", middle.unsigned_abs() / 1000),
            "correct it: otherwise certificates that are made here are not valid there",
        );
    }
    for (host, facts) in hosts {
        let off = facts.clock_skew_ms - middle;
        let sure = off.abs() - unsure - facts.clock_uncertainty_ms;
        let way = if off > 0 { "ahead of" } else { "behind" };
        let message = format!("its clock is {} ms {way} the other hosts'", off.unsigned_abs());
        let hint = "set up time synchronisation (chrony, systemd-timesyncd)";
        if sure > CLOCK_SKEW_MS {
            found.error(host, message, hint);
        } else if sure > UNSYNCHRONISED_MS {
            found.warning(host, message, hint);
        }
    }
}
