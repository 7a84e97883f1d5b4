//! Wrong input and hosts in a wrong state: each is reported, with its exit code, soon, and before the first change if it can be
//! known then.

mod cases;
#[cfg(test)]
mod coverage;
mod silence;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::context::Context;
use crate::host_state::{self, HostState};
use crate::lab::SudoUser;
use crate::report;
use crate::site::{Site, files_below};

use cases::{ALL, Case};

/// No wait is longer than this, not even for a host that does not respond.
const PATIENCE: Duration = Duration::from_mins(1);
const USER: SudoUser = SudoUser { name: "ada", password: "right" };

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = Site::fresh(ctx, &ctx.dir.join("site"), 3, Some(USER))?;
    for host in &site.hosts {
        ctx.host(host, "useradd --create-home --shell /bin/sh bob; printf 'bob:right' | chpasswd; cp -r /home/ada/.ssh /home/bob/; chown -R bob: /home/bob/.ssh")?;
    }
    // Files that any connection leaves behind exist before the hosts are compared.
    ctx.kk(&site, "create", &["--dry-run"])?.expect_code(0)?;
    let before = host_state::of_all(ctx, &site.hosts)?;
    let mut wrong = Vec::new();
    for case in ALL {
        let result = one(ctx, &site, case, &before);
        report::line(&format!("  {} {}", if result.is_ok() { "ok    " } else { "FAILED" }, case.name));
        if let Err(error) = result {
            wrong.push(format!("{}: {error:#}", case.name));
        }
    }
    ensure!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), ALL.len(), wrong.join("\n"));
    // The last one: it leaves the hosts half-way.
    silence::in_the_middle(ctx, &site)
}

fn one(ctx: &Context<'_>, site: &Site, case: &Case, before: &BTreeMap<String, HostState>) -> Result<()> {
    let lab = site.read()?;
    let mut edited = lab.clone();
    (case.edit)(&mut edited, &site.dir)?;
    let wrong = site.variant(case.name, |cluster: &mut Value| *cluster = edited)?;
    let known_hosts = site.home().join(".ssh/known_hosts");
    let known = fs::read(&known_hosts).context("kk remembers no host keys")?;
    let broken = ctx.host(case.host, case.breaks).context("cannot break the host");
    let run = broken.and_then(|_| ctx.kk(&wrong, "create", case.args));
    // Whatever failed, the next case begins with healthy hosts.
    fs::write(&known_hosts, known)?;
    let repaired = ctx.host(case.host, case.repairs).context("cannot repair the host");
    let run = run?;
    repaired?;
    run.expect_code(case.code)?.expect_said(case.says)?;
    ensure!(run.finished.took < PATIENCE, "kk took {:?} to say it", run.finished.took);
    nothing_partial(&site.workdir())?;
    if case.changes_nothing {
        let after = host_state::of_all(ctx, &site.hosts)?;
        let mut lines = host_state::differences(before, &after);
        lines.retain(|line| !case.own_traces.iter().any(|trace| line.contains(trace)));
        host_state::expect_none(ctx, "something was changed on a host", &lines)?;
    }
    Ok(())
}

/// A download that finally failed leaves no file under its name: its checksum file would mark it as verified.
fn nothing_partial(directory: &Path) -> Result<()> {
    for path in files_below(directory) {
        let empty = fs::metadata(&path)?.len() == 0 && path.extension().is_none_or(|ending| ending != "lock");
        ensure!(!empty, "an empty file stays: {}", path.display());
    }
    Ok(())
}
