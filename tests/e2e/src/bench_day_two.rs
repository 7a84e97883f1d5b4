//! The bench `day2`: how long changes of a running cluster take, compared with the same changes by hand.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use kk_test_common::figure::Figure;
use serde_json::json;

use crate::bench::{Table, by_hand_seconds, by_hand_settings, hosts_of, median, write_table};
use crate::checks;
use crate::context::{Context, Tools};
use crate::report::line;
use crate::scenarios::{FROM, TO};
use crate::site::{Site, files_below, keep_hosts};

/// As it is called on the command line.
pub(crate) const NAME: &str = "day2";

const RENEW_BY_HAND: &str = include_str!("../../../benches/renew_3_by_hand.sh");
const UPGRADE_BY_HAND: &str = include_str!("../../../benches/upgrade_3_by_hand.sh");
const TABLE: Table = Table {
    begin: "<!-- figures of day two: written by `make bench` -->",
    end: "<!-- end of figures of day two -->",
};

/// Measures, prints a line for each result, and writes the table. True: every goal is reached.
pub(crate) fn run(tools: &Tools, repeat: u8, table: Option<&Path>) -> Result<bool> {
    let shared = RefCell::new(None);
    let limit = Duration::from_mins(60 + 15 * u64::from(repeat));
    let ctx = Context::new(tools, NAME, limit, &shared)?;
    let mut samples: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for round in 1..=repeat {
        measure(&ctx, round, &mut samples)?;
    }
    upgrade(&ctx, &mut samples)?;
    let figures = figures(&samples);
    for figure in &figures {
        line(&figure.line());
    }
    if let Some(file) = table {
        write_table(file, &TABLE, &figures.iter().map(Figure::row).collect::<String>())?;
    }
    Ok(figures.iter().all(Figure::is_reached))
}

/// One round: three of four hosts form a cluster, and the fourth, a worker, is added and removed.
fn measure(ctx: &Context<'_>, round: u8, samples: &mut BTreeMap<&'static str, Vec<f64>>) -> Result<()> {
    let mut keep = |name: &'static str, value: Duration| {
        line(&format!("round {round}: {name} {:.2}", value.as_secs_f64()));
        samples.entry(name).or_default().push(value.as_secs_f64());
    };
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 4, None)?;
    let [first, second, third, fourth] = &lab.hosts[..] else { bail!("four hosts") };
    let of = |name: &str, workers: &[&String]| -> Result<Site> {
        let members = [first, second, third];
        let all: Vec<&String> = [&[first], workers].concat();
        let mut site = lab.variant(name, |cluster| {
            keep_hosts(cluster, &all);
            cluster["spec"]["roleGroups"] =
                json!({"etcd": members, "control-plane": [first], "worker": workers});
        })?;
        site.hosts = all.into_iter().cloned().collect();
        Ok(site)
    };
    let (three, four) = (of("three", &[second, third])?, of("four", &[second, third, fourth])?);
    ctx.kk_ok(&three, "create", &[])?;

    let status = ctx.run("kk-status", ctx.kk_job(&three, &["status", "--output", "json"]))?;
    ensure!(status.code == Some(0), "kk status ended with {:?}", status.code);
    keep("status_3", status.took);

    let add = ctx.kk_nodes(&four, &["add", "nodes"])?;
    add.expect_code(0)?;
    checks::cluster_is_complete(ctx, &four)?;
    keep("add_worker", add.finished.took);
    let delete = ctx.kk_nodes(&four, &["delete", "node", fourth])?;
    delete.expect_code(0)?;
    keep("delete_worker", delete.finished.took);
    checks::cluster_is_complete(ctx, &three)?;

    let renew = ctx.kk_nodes(&three, &["certs", "renew"])?;
    renew.expect_code(0)?;
    keep("renew_3", renew.finished.took);
    checks::cluster_is_complete(ctx, &three)?;
    keep("renew_3_by_hand", renew_by_hand(ctx, &three)?);

    ctx.kk_ok(&three, "create", &[])?;
    ctx.kk_nodes(&three, &["etcd", "snapshot"])?.expect_code(0)?;
    let snapshots = files_below(&three.workdir());
    let snapshot = snapshots.iter().find(|file| file.extension().is_some_and(|extension| extension == "db"));
    let snapshot = snapshot.context("there is a snapshot")?.display().to_string();
    let restore = ctx.kk_nodes(&three, &["etcd", "restore", "--snapshot", &snapshot])?;
    restore.expect_code(0)?;
    keep("restore_3", restore.finished.took);
    checks::cluster_is_complete(ctx, &three)
}

fn renew_by_hand(ctx: &Context<'_>, site: &Site) -> Result<Duration> {
    by_hand(ctx, "renew", RENEW_BY_HAND, hosts_of(&site.read()?)?)
}

/// Once: by kk, and by hand on another cluster of the same kind.
fn upgrade(ctx: &Context<'_>, samples: &mut BTreeMap<&'static str, Vec<f64>>) -> Result<()> {
    let cluster = || -> Result<Site> {
        let versions = ["--kubernetes", FROM, "--kubernetes", TO];
        let site = Site::booted(ctx, &ctx.dir.join("site"), 3, None, &versions)?;
        ctx.kk_ok(&site, "create", &[])?;
        Ok(site)
    };
    let site = cluster()?;
    let words = ["upgrade", "--with-kubernetes", TO, "-y", "--output", "json"];
    let upgrade = ctx.run("kk-upgrade", ctx.kk_job(&site, &words).limit(Duration::from_mins(10)))?;
    let took = upgrade.took;
    upgrade.ok()?;
    checks::cluster_is_complete(ctx, &site)?;
    let site = cluster()?;
    let mut settings = by_hand_settings(&site.read()?)?;
    settings.retain(|(name, _)| ["NAMES", "IPS", "KEY", "MIRROR"].contains(name));
    settings.push(("KUBERNETES", TO.trim_start_matches('v').to_owned()));
    let hand = by_hand(ctx, "upgrade", UPGRADE_BY_HAND, settings)?;
    checks::cluster_is_complete(ctx, &site)?;
    for (name, value) in [("upgrade_3", took), ("upgrade_3_by_hand", hand)] {
        line(&format!("{name} {:.2}", value.as_secs_f64()));
        samples.entry(name).or_default().push(value.as_secs_f64());
    }
    Ok(())
}

/// Runs a hand-written script on the hosts; returns the time that it prints.
fn by_hand(
    ctx: &Context<'_>,
    name: &str,
    script: &str,
    settings: Vec<(&'static str, String)>,
) -> Result<Duration> {
    let file = ctx.dir.join(format!("{name}-by-hand.sh"));
    fs::write(&file, script)?;
    let mut job = ctx.enter(&["bash"]).args([file]).limit(Duration::from_mins(10));
    for (name, value) in settings {
        job = job.env(name, value);
    }
    let said = ctx.run(&format!("{name}-by-hand"), job)?.ok()?;
    Ok(Duration::from_secs_f64(by_hand_seconds(&said)?))
}

fn figures(samples: &BTreeMap<&'static str, Vec<f64>>) -> Vec<Figure> {
    let value = |name: &str| samples.get(name).map(|values| median(values));
    let hands = |name: &str| {
        let hand = value(&format!("{name}_by_hand"));
        (hand.map_or_else(|| "-".to_owned(), |hand| format!("by_hand:{hand:.2}")), hand)
    };
    let ((renew, renew_hand), (upgrade, upgrade_hand)) = (hands("renew_3"), hands("upgrade_3"));
    let all: [(&str, String, Option<f64>); 6] = [
        ("add_worker", "-".to_owned(), Some(8.0)),
        ("delete_worker", "-".to_owned(), Some(5.0)),
        ("renew_3", renew, renew_hand.map(|hand| hand * 1.2)),
        ("restore_3", "-".to_owned(), Some(20.0)),
        ("status_3", "-".to_owned(), Some(1.0)),
        ("upgrade_3", upgrade, upgrade_hand.map(|hand| hand * 1.15)),
    ];
    let figure = |(name, beside, goal): (&str, String, Option<f64>)| {
        Some(Figure { name: name.to_owned(), value: value(name)?, unit: "s", beside, goal })
    };
    all.into_iter().filter_map(figure).collect()
}
