//! The limits of a filter for one object: time, steps and stack.
//!
//! Filters run on the thread that reads all watches, and a filter without an end would keep it for ever. An endless program in jq
//! is a recursion, or takes values from a stream: so every call of a definition, and every value of `range`, `..` and `.[]`,
//! counts as a step (`_step`). The state belongs to the thread that a filter runs on.

use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Steps for one object. They bound the memory as well: a step makes a value or two.
const STEPS: u32 = 5_000_000;
/// Steps between reads of the clock.
const LOOK: u32 = 1024;
/// CPU time for one object.
const TIME: Duration = Duration::from_secs(1);
/// Stack in bytes: half of what a thread has.
const STACK: usize = 1 << 20;

#[derive(Clone, Copy, Default)]
struct Budget {
    left: u32,
    ends: Duration,
    stack_begin: usize,
    exceeded: Option<&'static str>,
}

thread_local! {
    static BUDGET: Cell<Budget> = const {
        Cell::new(Budget { left: 0, ends: Duration::ZERO, stack_begin: 0, exceeded: None })
    };
}

/// Begins to count for one object.
pub(super) fn begin() {
    BUDGET.set(Budget {
        left: STEPS,
        ends: cpu_time() + TIME,
        stack_begin: stack_position(),
        exceeded: None,
    });
}

/// Counts a step; returns an error as soon as a bound is exceeded, and from then on.
pub(super) fn step() -> Result<(), &'static str> {
    let mut budget = BUDGET.get();
    if budget.exceeded.is_none() {
        budget.left = budget.left.saturating_sub(1);
        budget.exceeded = budget.look();
        BUDGET.set(budget);
    }
    budget.exceeded.map_or(Ok(()), Err)
}

/// The exceeded bound. A program can catch the error, but its result is still rejected.
pub(super) fn exceeded() -> Option<&'static str> {
    BUDGET.get().exceeded
}

impl Budget {
    fn look(&self) -> Option<&'static str> {
        if self.stack_begin.abs_diff(stack_position()) > STACK {
            Some("its recursion is too deep")
        } else if self.left == 0 {
            Some("it did not end within 5000000 steps")
        } else if self.left.is_multiple_of(LOOK) && cpu_time() > self.ends {
            Some("it did not end within 1 s of CPU time")
        } else {
            None
        }
    }
}

fn cpu_time() -> Duration {
    // Never negative; without it the steps are the bound.
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// About where the stack ends now.
fn stack_position() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(black_box(&here)).addr()
}
