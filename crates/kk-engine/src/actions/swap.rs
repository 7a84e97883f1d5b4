//! No swap: the kubelet's default.

use super::lines;
use crate::{Action, Apply, Change, Facts, ProbeSpec, Script};

/// The name of the question for swap in `/etc/fstab`.
const FSTAB: &str = "swap in fstab";

/// Ends the use of swap, now and at the next boot. A delete puts it back.
#[derive(Clone, Copy, Debug, Default)]
pub struct SwapOff;

impl Action for SwapOff {
    fn check(&self, facts: &Facts) -> Change {
        let mut changes: Vec<String> =
            facts.swaps.iter().map(|device| format!("end the use of swap {device}")).collect();
        if facts.values.get(FSTAB).is_some_and(|count| count != "0") {
            changes.push("comment swap out of /etc/fstab".into());
        }
        lines(changes)
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Script(Script::new("kk_swap_off\n"))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        let count = "awk '!/^#/ && $3 == \"swap\" { n++ } END { print n + 0 }' /etc/fstab";
        spec.values.insert(FSTAB.into(), count.into());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        stderr.contains("Cannot allocate memory").then(|| {
            "there is not enough free memory to end the use of swap: stop programs first, or add memory"
                .into()
        })
    }
}
