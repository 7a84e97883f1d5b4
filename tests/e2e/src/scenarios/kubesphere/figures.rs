//! The cost of ks-installer on real nodes, compared with helm and the same chart: samples for the bench `kubesphere`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{COREDNS, Lab, full, with_installer};
use crate::context::Context;
use crate::report::line;

/// These run on a control plane, the first one before each other.
const LIBRARY: &str = include_str!("../../../../../benches/kubesphere_lib.sh");
const MEASURE: &str = include_str!("../../../../../benches/kubesphere.sh");
const MEASURE_FULL: &str = include_str!("../../../../../benches/kubesphere_full.sh");
/// One round, on a busy machine.
const MEASURE_LIMIT: Duration = Duration::from_mins(15);
/// Resident memory of the operator in KiB, on the host that runs it.
const MEMORY: &str = "ps -C ks-installer -o rss= || :";

/// Measured values by name, one for each round.
pub(crate) type Samples = BTreeMap<String, Vec<f64>>;

pub(crate) fn samples(ctx: &Context<'_>, rounds: u8) -> Result<Samples> {
    let mut samples = Samples::new();
    with_installer(ctx, |lab| {
        let mut keep = |name: &str, value: f64| {
            line(&format!("{name} {value:.2}"));
            samples.entry(name.to_owned()).or_default().push(value);
        };
        let site = lab.switched(true)?;
        ctx.kk_ok(&site, "create", &[])?;
        let image = ctx.kubectl(&site, COREDNS)?;
        for round in 1..=rounds {
            let script = format!("STAND_IN={} NUMBER={round}\n{LIBRARY}{MEASURE}", image.trim());
            for (name, value) in measured(lab, &script)? {
                keep(&name, if name.ends_with("_requests") { value } else { value / 1000.0 });
            }
            for host in &site.hosts {
                for kib in ctx.host(host, MEMORY)?.split_whitespace() {
                    keep("memory", kib.parse::<f64>()? / 1024.0);
                }
            }
        }
        let archive = std::fs::metadata(lab.archive()?)?.len();
        keep("image", f64::from(u32::try_from(archive / 1024)?) / 1024.0);
        Ok(())
    })?;
    Ok(samples)
}

/// The same with the full payload, on fresh hosts.
pub(crate) fn full_samples(ctx: &Context<'_>, rounds: u8) -> Result<Samples> {
    let mut samples = Samples::new();
    full::on_fresh_hosts(ctx, |lab| {
        lab.installs_all()?;
        for _ in 1..=rounds {
            for (name, value) in measured(lab, &format!("{LIBRARY}{MEASURE_FULL}"))? {
                line(&format!("{name} {:.2}", value / 1000.0));
                samples.entry(name).or_default().push(value / 1000.0);
            }
        }
        Ok(())
    })?;
    Ok(samples)
}

/// Names and numbers that a script on the control plane measures.
fn measured(lab: &Lab<'_>, script: &str) -> Result<Vec<(String, f64)>> {
    let job = lab.ctx.on_host(lab.site.control_plane(), script).limit(MEASURE_LIMIT);
    let said = lab.ctx.run("measure", job)?.ok()?;
    let figure = |text: &str| {
        let (name, value) = text.split_once(' ').with_context(|| format!("no figure: {text}"))?;
        Ok((name.to_owned(), value.trim().parse().with_context(|| format!("no number: {text}"))?))
    };
    said.lines().map(figure).collect()
}
