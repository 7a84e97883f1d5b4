//! A figure of a bench, as a line and as a row of a table.

/// One figure with its neighbour and its goal.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The bench and what of it was measured.
    pub name: String,
    /// The measured value.
    pub value: f64,
    /// The unit of the value.
    pub unit: &'static str,
    /// The value to compare with, and its name.
    pub beside: String,
    /// The upper bound; without it, the value is only shown.
    pub goal: Option<f64>,
}

impl Figure {
    /// Whether the goal is reached; without a goal it always is.
    pub fn is_reached(&self) -> bool {
        self.goal.is_none_or(|goal| self.value <= goal)
    }

    fn goal(&self) -> String {
        self.goal.map_or_else(|| "-".to_owned(), |goal| format!("{goal:.2}"))
    }

    /// The line that programs read.
    pub fn line(&self) -> String {
        let verdict = if self.is_reached() { "ok" } else { "short" };
        let Self { name, value, unit, beside, .. } = self;
        format!(
            "BENCH name={name} value={value:.2} unit={unit} beside={beside} goal={} {verdict}",
            self.goal()
        )
    }

    /// The line of the table.
    pub fn row(&self) -> String {
        let verdict = if self.is_reached() { "yes" } else { "no" };
        let Self { name, value, unit, beside, .. } = self;
        format!("| {name} | {value:.2} {unit} | {beside} | {} | {verdict} |\n", self.goal())
    }
}
