//! A host lies: by its SSH server, or by its programs. `kk` ends with an error about that host, within bounds of time and memory.
//! Nothing that controls a terminal reaches its output and its logs, and the other hosts are repaired where that is possible.

mod lies;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::status::{state_of, status};
use crate::context::Context;
use crate::kk::KkRun;
use crate::site::{Site, files_below};
use crate::{cases, checks, cluster};

use lies::{ALL, Case, Means, PARTLY};

/// Bytes of memory.
const MOST_MEMORY: u64 = 300 << 20;
/// `kk` itself uses more; less means that another process was measured.
const LEAST_MEMORY: u64 = 4 << 20;
/// A file that a create writes again, on a host that does not lie when node3 does.
const FILE: &str = "/etc/sysctl.d/99-kubekey.conf";
const OTHER: &str = "node2";
const LIAR: &str = include_str!("liar.sh");

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    cases::each(ctx, ALL, |case| one(ctx, case))?;
    let site = cluster::ensure(ctx)?.site;
    status_names_the_liar(ctx, &site)?;
    checks::cluster_is_complete(ctx, &site)
}

fn one(ctx: &Context<'_>, case: &Case) -> Result<()> {
    let site = cluster::ensure(ctx)?.site;
    let kubeconfig = site.workdir().join("lab/kubeconfig");
    if case.refuses_kubeconfig {
        // Without this file, the create fetches it.
        fs::remove_file(&kubeconfig).with_context(|| format!("no {}", kubeconfig.display()))?;
    }
    if case.code == PARTLY {
        ctx.host(OTHER, &format!("rm {FILE}"))?;
    }
    if let Some((host, _)) = case.lies.first() {
        ctx.host(host, case.breaks)?;
    }
    let run = lying(ctx, case.lies, || create(ctx, &site, case.patience))?;
    run.expect_code(case.code)?.expect_said(case.says)?;
    for (host, _) in case.lies {
        names_in_headline(&run, host)?;
    }
    for (place, text) in [("stdout", &run.finished.stdout), ("stderr", &run.finished.stderr)] {
        controls_nothing(place, text)?;
    }
    for file in files_below(&site.workdir().join("lab/runs")) {
        let bytes = fs::read(&file)?;
        controls_nothing(&file.display().to_string(), &String::from_utf8_lossy(&bytes))?;
    }
    if case.code == PARTLY {
        ctx.host(OTHER, &format!("test -s {FILE}")).context("the other hosts were not repaired")?;
    }
    let (is_saved, path) = (kubeconfig.exists(), kubeconfig.display());
    ensure!(is_saved != case.refuses_kubeconfig, "is there a {path}: {is_saved}");
    ctx.kk_ok(&site, "create", &[]).context("a create when no host lies any more")?;
    ensure!(kubeconfig.exists(), "no {}", kubeconfig.display());
    Ok(())
}

/// `kk status` shows the state of the other hosts.
fn status_names_the_liar(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let lies = [("node3", Means::Server("escapes"))];
    let (code, shown) = lying(ctx, &lies, || status(ctx, site))?;
    let states: Vec<String> = site.hosts.iter().map(|host| state_of(&shown, host)).collect();
    ensure!(code == 1 && states == ["ready", "ready", "silent"], "code {code}, states {states:?}: {shown:#}");
    ensure!(shown["findings"].to_string().contains("cannot probe node3"), "{:#}", shown["findings"]);
    let lies = [("node3", Means::Server("noise"))];
    let text = lying(ctx, &lies, || ctx.run("kk-status-text", ctx.kk_job(site, &["status"])))?;
    ensure!(text.code == Some(1) && text.stdout.contains("node3"), "{:?}: {}", text.code, text.stdout);
    controls_nothing("stdout of status", &text.stdout)?;
    controls_nothing("stderr of status", &text.stderr)
}

/// Runs `kk create cluster` to its end. Errors: it takes too long or too much memory.
fn create(ctx: &Context<'_>, site: &Site, patience: Duration) -> Result<KkRun> {
    let words = ["create", "cluster", "-y", "--output", "json"];
    let mut kk = ctx.start("kk-create", ctx.kk_job(site, &words).limit(patience))?;
    let mut peak = 0;
    while !kk.has_ended()? {
        peak = peak.max(kk.peak_memory().unwrap_or(0));
        sleep(Duration::from_millis(10));
    }
    ensure!(peak > LEAST_MEMORY, "only {peak} bytes of memory: this is not kk");
    ensure!(peak < MOST_MEMORY, "kk used {} MiB of memory", peak >> 20);
    KkRun::of(kk)
}

/// Calls `act` while hosts lie. They are honest again afterwards, also after a failure.
fn lying<T>(ctx: &Context<'_>, lies: &[(&str, Means)], act: impl FnOnce() -> Result<T>) -> Result<T> {
    let begun = lies.iter().try_for_each(|(host, means)| begin(ctx, host, *means));
    let result = begun.and_then(|()| act());
    let ended = lies.iter().try_for_each(|(host, means)| end(ctx, host, *means));
    let result = result?;
    ended.context("a host still lies")?;
    Ok(result)
}

/// The directory of `liar.sh` and of the honest list of keys.
const PLACE: &str = "/root/hostile";

fn begin(ctx: &Context<'_>, host: &str, means: Means) -> Result<()> {
    let lie = match means {
        Means::Program { replace, .. } => return ctx.host(host, replace).map(drop),
        Means::Server(lie) => lie,
    };
    // sshd reads the list at each log-in.
    let script = format!(
        "mkdir {PLACE}; cat >{PLACE}/liar.sh; cp -p /root/.ssh/authorized_keys {PLACE}/honest
         sed 's|^|command=\"exec sh {PLACE}/liar.sh {lie}\" |' {PLACE}/honest >/root/.ssh/authorized_keys"
    );
    ctx.run(host, ctx.on_host(host, &script).stdin(LIAR))?.ok()?;
    Ok(())
}

fn end(ctx: &Context<'_>, host: &str, means: Means) -> Result<()> {
    let script = match means {
        Means::Program { restore, .. } => restore.to_owned(),
        // The lies that do not end by themselves are programs of sshd's children.
        Means::Server(_) => format!(
            "[ ! -e {PLACE}/honest ] || cp -p {PLACE}/honest /root/.ssh/authorized_keys; rm -rf {PLACE}
             pkill -x -f 'sleep 900' || true"
        ),
    };
    ctx.host(host, &script).map(drop)
}

/// Errors: no error message has the host in its first line.
fn names_in_headline(run: &KkRun, host: &str) -> Result<()> {
    let headlines: Vec<&str> =
        run.finished.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    ensure!(
        headlines.iter().any(|line| line.contains(host)),
        "no headline names {host}: {headlines:?}; stderr:\n{}",
        run.finished.stderr
    );
    Ok(())
}

/// Errors: a character in the text controls a terminal, also after JSON was decoded.
fn controls_nothing(place: &str, text: &str) -> Result<()> {
    let is_control = |c: char| c == '\u{202e}' || (c.is_control() && !matches!(c, '\n' | '\t'));
    let found = text.lines().find(|line| line.contains(is_control) || line.contains("\\u001b"));
    ensure!(found.is_none(), "a line in {place} controls the terminal: {found:?}");
    Ok(())
}
