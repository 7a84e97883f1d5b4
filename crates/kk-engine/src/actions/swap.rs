//! Turns swap off, as the kubelet requires by default.

use super::lines;
use crate::{Action, Answer, Apply, Change, Facts, ProbeSpec, Question, Script, question};

/// Whether `/etc/fstab` has swap. A host without the file has none.
const FSTAB: Question<bool> = Question::new(
    "swap in fstab",
    "[ -e /etc/fstab ] || { echo no; exit; }
awk '!/^#/ && $3 == \"swap\" { n++ } END { print n ? \"yes\" : \"no\" }' /etc/fstab",
    question::yes_or_no,
);

/// Ends the use of swap, now and at the next boot. Deleting the cluster restores it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SwapOff;

impl Action for SwapOff {
    fn check(&self, facts: &Facts) -> Change {
        let mut changes: Vec<String> =
            facts.swaps.iter().map(|device| format!("turn off swap {device}")).collect();
        // Without an answer, the file is inspected again when the change is made.
        if !matches!(facts.answer(&FSTAB), Answer::NotAsked | Answer::Answered(false)) {
            changes.push("comment swap out of /etc/fstab".into());
        }
        lines(changes)
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Script(Script::new("kk_swap_off\n"))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.ask(&FSTAB);
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        stderr.contains("Cannot allocate memory").then(|| {
            "there is not enough free memory to turn off swap: stop programs first, or add memory".into()
        })
    }
}
