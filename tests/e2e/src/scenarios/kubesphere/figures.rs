//! What ks-installer costs on real nodes, beside helm with the same chart: samples for the bench `kubesphere`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use super::{COREDNS, with_installer};
use crate::context::Context;
use crate::report::line;

/// Runs on a control plane.
const MEASURE: &str = include_str!("../../../../../benches/kubesphere.sh");
/// Resident memory of the operator in KiB, on the host that runs it.
const MEMORY: &str = "ps -C ks-installer -o rss= || :";

/// What was measured by its name, once for each round.
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
            let script = format!("STAND_IN={} NUMBER={round}\n{MEASURE}", image.trim());
            for text in ctx.host(site.control_plane(), &script)?.lines() {
                let (name, value) = text.split_once(' ').with_context(|| format!("no figure: {text}"))?;
                let value: f64 = value.trim().parse().with_context(|| format!("no number: {text}"))?;
                keep(name, if name.ends_with("_requests") { value } else { value / 1000.0 });
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
