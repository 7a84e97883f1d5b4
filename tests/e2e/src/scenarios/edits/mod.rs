//! The file of a running cluster is edited: changes that the cluster cannot accept are refused before the first change, the
//! others are rolled out.

mod list;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::cases::{self, Case};
use crate::checks;
use crate::cluster;
use crate::context::Context;
use crate::host_state::{self, HostState};
use crate::site::Site;

use list::{REFUSED, Refused, TAKEN, Taken};

/// Exit codes of `kk` (docs/cli.md): a wrong file, or a finding about the hosts.
const REFUSALS: [Option<i32>; 2] = [Some(3), Some(5)];

/// State by host.
type States = BTreeMap<String, HostState>;

/// kube-proxy writes its rules a moment after it is ready.
const REACHED: Duration = Duration::from_secs(30);

impl Case for Refused {
    fn name(&self) -> &'static str {
        self.name
    }
}

impl Case for Taken {
    fn name(&self) -> &'static str {
        self.name
    }
}

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    // The state of the hosts after one refusal is their state before the next.
    let mut last = None;
    let wrong = cases::each(ctx, REFUSED, |edit| {
        let before = last.take();
        last = Some(refused(ctx, &cluster::ensure(ctx)?.site, edit, before)?);
        Ok(())
    });
    let right = cases::each(ctx, TAKEN, |edit| taken(ctx, &cluster::ensure(ctx)?.site, edit));
    wrong.context("edits that are to be refused")?;
    right.context("edits that are to be rolled out")
}

fn refused(ctx: &Context<'_>, site: &Site, edit: &Refused, before: Option<States>) -> Result<States> {
    let wrong = site.variant(edit.name, edit.edit)?;
    let units = checks::invocations(ctx, site)?;
    let before = match before {
        Some(states) => states,
        None => host_state::of_all(ctx, &site.hosts)?,
    };
    let run = ctx.kk(&wrong, "create", &[])?;
    ensure!(
        REFUSALS.contains(&run.finished.code),
        "kk ended with {:?}, not with a refusal",
        run.finished.code
    );
    run.expect_said(edit.says)?;
    let after = host_state::of_all(ctx, &site.hosts)?;
    let differences = host_state::differences(&before, &after);
    // A running cluster changes its own data and the kernel's tables all the time.
    let settings = ["/etc/", "/usr/", "/opt/", "unit-file", "user ", "hostname"];
    let changed = |line: &String| {
        let own_data = ["/etc/kubekey/sums", " /var/lib/"];
        settings.iter().any(|part| line.contains(part)) && !own_data.iter().any(|part| line.contains(part))
    };
    let lines: Vec<String> = differences.into_iter().filter(changed).collect();
    host_state::expect_none(ctx, "something was changed on a host", &lines)?;
    ensure!(checks::invocations(ctx, site)? == units, "a unit was restarted");
    Ok(after)
}

fn taken(ctx: &Context<'_>, site: &Site, edit: &Taken) -> Result<()> {
    let changed = site.variant(edit.name, edit.edit)?;
    ctx.kk_ok(&changed, "create", &[])?;
    checks::cluster_is_complete(ctx, site)?;
    for host in &site.hosts {
        ctx.until(&format!("{} reaches {host}", edit.name), REACHED, || sees(ctx, host, edit, true))?;
    }
    ctx.kk_ok(site, "create", &[]).context("back to the file of before")?;
    checks::cluster_is_complete(ctx, site)?;
    ctx.until(&format!("{} is taken back", edit.name), REACHED, || {
        sees(ctx, site.control_plane(), edit, false)
    })
}

fn sees(ctx: &Context<'_>, host: &str, edit: &Taken, wanted: bool) -> Result<Option<()>> {
    let there = ctx.try_host(host, edit.seen)?.code == Some(0);
    Ok((there == wanted).then_some(()))
}
