//! The bench `kubesphere`: the cost of ks-installer with the lab's payload, compared with helm and the same chart.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use kk_test_common::figure::Figure;

use crate::bench::{Table, median, write_table};
use crate::context::{Context, Tools};
use crate::report::line;
use crate::scenarios::kubesphere_full::missing_images;
use crate::scenarios::kubesphere_samples::{Samples, full_samples, samples};

/// As it is called on the command line.
pub(crate) const NAME: &str = "kubesphere";

/// The scenario with the full payload, whose images are built on demand.
const FULL: &str = "kubesphere-full";

const TABLE: Table = Table {
    begin: "<!-- figures of kubesphere: written by `make bench` -->",
    end: "<!-- end of figures of kubesphere -->",
};

/// Measures, prints a line for each result, and writes the table. True: every goal is reached.
pub(crate) fn run(tools: &Tools, repeat: u8, table: Option<&Path>) -> Result<bool> {
    let shared = RefCell::new(None);
    let limit = Duration::from_mins(15 + 3 * u64::from(repeat));
    let ctx = Context::new(tools, NAME, limit, &shared)?;
    let mut samples = samples(&ctx, repeat)?;
    let missing = missing_images(ctx.tools.lab)?;
    if missing.is_empty() {
        let limit = Duration::from_mins(20 + 10 * u64::from(repeat));
        samples.extend(full_samples(&Context::new(tools, FULL, limit, &shared)?, repeat)?);
    } else {
        line(&format!(
            "ks_whole and those of monitoring are not measured: the mirror has no {}; `make e2e ONLY={FULL}` builds these images",
            missing.join(", ")
        ));
    }
    let figures = figures(&samples);
    for figure in &figures {
        line(&figure.line());
    }
    if let Some(file) = table {
        write_table(file, &TABLE, &figures.iter().map(Figure::row).collect::<String>())?;
    }
    Ok(figures.iter().all(Figure::is_reached))
}

/// Goals are the project's. helm is measured on the same cluster; what ks-installer 3.4.1 takes is not known here.
fn figures(samples: &Samples) -> Vec<Figure> {
    let value = |name: &str| samples.get(name).map(|values| median(values));
    let by_helm = |name: &str| {
        let helm = value(&format!("{name}_by_helm"));
        (helm.map_or_else(|| "-".to_owned(), |helm| format!("helm:{helm:.2}")), helm.map(|helm| helm * 0.6))
    };
    let ((enable, enable_goal), (disable, disable_goal)) = (by_helm("enable"), by_helm("disable"));
    let ((whole, whole_goal), (monitoring, monitoring_goal)) =
        (by_helm("whole"), by_helm("enable_monitoring"));
    let (no_monitoring, no_monitoring_goal) = by_helm("disable_monitoring");
    let none = || "-".to_owned();
    let all: [(&str, &'static str, String, Option<f64>); 10] = [
        ("nothing", "s", none(), Some(0.5)),
        ("nothing_requests", "requests", none(), Some(5.0)),
        ("field", "s", none(), Some(1.0)),
        ("enable", "s", enable, enable_goal),
        ("disable", "s", disable, disable_goal),
        ("enable_monitoring", "s", monitoring, monitoring_goal),
        ("disable_monitoring", "s", no_monitoring, no_monitoring_goal),
        ("whole", "s", whole, whole_goal),
        ("memory", "MiB", none(), Some(60.0)),
        ("image", "MiB", none(), Some(120.0)),
    ];
    let figure = |(name, unit, beside, goal): (&str, &'static str, String, Option<f64>)| {
        Some(Figure { name: format!("ks_{name}"), value: value(name)?, unit, beside, goal })
    };
    all.into_iter().filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_stand_beside_what_helm_takes() {
        let names = [
            ("enable", 1.5),
            ("enable_by_helm", 3.0),
            ("memory", 61.0),
            ("whole", 40.0),
            ("whole_by_helm", 60.0),
        ];
        let samples = names.map(|(name, value)| (name.to_owned(), vec![value])).into_iter().collect();
        let lines: Vec<String> = figures(&samples).iter().map(Figure::line).collect();
        assert_eq!(
            lines,
            [
                "BENCH name=ks_enable value=1.50 unit=s beside=helm:3.00 goal=1.80 ok",
                "BENCH name=ks_whole value=40.00 unit=s beside=helm:60.00 goal=36.00 short",
                "BENCH name=ks_memory value=61.00 unit=MiB beside=- goal=60.00 short",
            ]
        );
    }
}
