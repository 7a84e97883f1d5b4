//! One figure with its neighbours and its goal.

use std::fmt;

/// The bound of a value.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

/// A measured value.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The value to compare with, and its name.
    pub(crate) beside: String,
    pub(crate) goal: Goal,
}

impl Figure {
    pub(crate) fn is_reached(&self) -> bool {
        match self.goal {
            Goal::AtMost(goal) => self.value <= goal,
            Goal::AtLeast(goal) => self.value >= goal,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, unit, beside, goal } = self;
        let goal = match goal {
            Goal::AtMost(goal) => format!("{goal:.2}"),
            Goal::AtLeast(goal) => format!(">={goal:.2}"),
        };
        let verdict = if self.is_reached() { "ok" } else { "short" };
        write!(
            formatter,
            "BENCH name={name} value={value:.2} unit={unit} beside={beside} goal={goal} {verdict}"
        )
    }
}

/// The value that `part` of `values` do not exceed; `part` is between 0 and 1.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a position in a short list"
)]
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = (sorted.len() as f64 * part) as usize;
    sorted[position.min(sorted.len() - 1)]
}

pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}
