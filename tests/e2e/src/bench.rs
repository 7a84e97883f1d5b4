//! Benches: how long `kk` takes, compared with the hand-written script of `benches/` on the same hosts and the same mirror.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kk_test_common::{figure::Figure, line};
use serde_json::Value;

use crate::checks::{self, text};
use crate::context::{Context, Tools};
use crate::core_seconds::Usage;
use crate::site::Site;

/// The least a create can cost, without any check.
const BY_HAND: &str = include_str!("../../../benches/create_3_by_hand.sh");
/// The network plugin of the script.
const FLANNEL: &str = include_str!("../../../benches/flannel.yaml");
const TABLE: Table =
    Table { begin: "<!-- figures: written by `make bench` -->", end: "<!-- end of figures -->" };

/// Names of the measurements.
const BENCHES: [&str; 3] = ["create_3", "again_3", "delete_3"];

/// The lines before and after a table in its file.
pub(crate) struct Table {
    pub(crate) begin: &'static str,
    pub(crate) end: &'static str,
}

/// Measures, prints a line for each result, and writes the table. True: every goal is reached.
pub(crate) fn run(tools: &Tools, only: &[String], repeat: u8, table: Option<&Path>) -> Result<bool> {
    let unknown: Vec<&String> = only.iter().filter(|name| !BENCHES.contains(&name.as_str())).collect();
    ensure!(
        unknown.is_empty(),
        "no bench is called {unknown:?}; there are: {}, {}, {}, {}",
        BENCHES.join(", "),
        crate::bench_day_two::NAME,
        crate::bench_kubesphere::NAME,
        crate::bench_shell_operator::NAME
    );
    let wanted = |name: &str| only.is_empty() || only.iter().any(|other| other == name);
    let shared = RefCell::new(None);
    let limit = Duration::from_mins(60 + 10 * u64::from(repeat));
    let ctx = Context::new(tools, "bench", limit, &shared)?;
    let mut samples: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for round in 1..=repeat {
        measure(&ctx, round, wanted("create_3"), &mut samples)?;
    }
    let figures: Vec<Figure> = figures(&samples)
        .into_iter()
        .filter(|figure| BENCHES.iter().any(|bench| wanted(bench) && figure.name.starts_with(bench)))
        .collect();
    for figure in &figures {
        line(&figure.line());
    }
    if let Some(file) = table {
        write_table(file, &TABLE, &figures.iter().map(Figure::row).collect::<String>())?;
    }
    Ok(figures.iter().all(Figure::is_reached))
}

/// One round: the script, then kk's create, second create and delete, each on hosts in the required state.
fn measure<'a>(
    ctx: &Context<'_>,
    round: u8,
    beside: bool,
    samples: &mut BTreeMap<&'a str, Vec<f64>>,
) -> Result<()> {
    let mut keep = |name: &'a str, value: f64| {
        line(&format!("round {round}: {name} {value:.2}"));
        samples.entry(name).or_default().push(value);
    };
    if beside {
        let site = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
        keep("by_hand", by_hand(ctx, &site)?);
    }
    let site = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    let before = Usage::now(ctx.tools.lab)?;
    let create = ctx.kk_ok(&site, "create", &[])?;
    let used = Usage::now(ctx.tools.lab)?.since(&before);
    checks::cluster_is_complete(ctx, &site)?;
    keep("create_3", create.finished.took.as_secs_f64());
    keep("create_3_core_seconds", used.total());
    keep("create_3_core_seconds_hosts", used.hosts);
    keep("create_3_core_seconds_kk", used.kk);
    keep("create_3_core_seconds_servers", used.servers);
    keep("create_3_bound", used.bound());
    keep("create_3_round_trips", most_round_trips(&create)?);
    let again = ctx.kk_ok(&site, "create", &[])?;
    ensure!(again.events.changes().is_empty(), "the second create changed something");
    keep("again_3", again.finished.took.as_secs_f64());
    keep("again_3_round_trips", most_round_trips(&again)?);
    let delete = ctx.kk_ok(&site, "delete", &["--all"])?;
    keep("delete_3", delete.finished.took.as_secs_f64());
    keep("delete_3_round_trips", most_round_trips(&delete)?);
    Ok(())
}

fn most_round_trips(run: &crate::kk::KkRun) -> Result<f64> {
    let trips = run.events.finished()?.round_trips;
    let most = trips.values().max().copied().context("the run counted no round trips")?;
    Ok(f64::from(u32::try_from(most)?))
}

/// Runs the hand-written script on fresh hosts; its own clock begins when its input is prepared.
fn by_hand(ctx: &Context<'_>, site: &Site) -> Result<f64> {
    let directory = ctx.dir.join("by-hand");
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("create.sh"), BY_HAND)?;
    fs::write(directory.join("flannel.yaml"), FLANNEL)?;
    let mut job = ctx.enter(&["bash"]).args([directory.join("create.sh")]).limit(Duration::from_mins(5));
    for (name, value) in by_hand_settings(&site.read()?)? {
        job = job.env(name, value);
    }
    let said = ctx.run("by-hand", job)?.ok()?;
    by_hand_seconds(&said)
}

/// The seconds that a hand-written script prints.
pub(crate) fn by_hand_seconds(said: &str) -> Result<f64> {
    let seconds = said.lines().find_map(|line| line.strip_prefix("SECONDS "));
    seconds.context("the script printed no line `SECONDS`")?.trim().parse().context("seconds are a number")
}

/// Settings of the hosts that every hand-written script needs.
pub(crate) fn hosts_of(cluster: &Value) -> Result<Vec<(&'static str, String)>> {
    let hosts: Vec<&Value> = cluster["spec"]["hosts"].as_array().into_iter().flatten().collect();
    let of_hosts = |field: &str| hosts.iter().map(|host| text(&host[field])).collect::<Vec<_>>().join(" ");
    Ok(vec![
        ("NAMES", of_hosts("name")),
        ("IPS", of_hosts("address")),
        ("KEY", text(&hosts.first().context("there are hosts")?["privateKeyPath"])),
    ])
}

/// Settings for the script, read from the cluster file that `kk` gets.
pub(crate) fn by_hand_settings(cluster: &Value) -> Result<Vec<(&'static str, String)>> {
    let spec = &cluster["spec"];
    let catalogue = PathBuf::from(text(&spec["download"]["catalogue"]));
    let mirror = catalogue.parent().context("the mirror's catalogue lies in its directory")?;
    let (registry, access) = spec["registry"]["auths"]
        .as_object()
        .and_then(|auths| auths.iter().next())
        .context("the lab has a registry")?;
    let version = |value: &Value| text(value).trim_start_matches('v').to_owned();
    let component = |name: &str| version(&spec["components"][name]);
    let mut settings = hosts_of(cluster)?;
    settings.extend([
        ("MIRROR", mirror.display().to_string()),
        ("REGISTRY", registry.clone()),
        ("CA", format!("{}/ca.crt", text(&access["certsPath"]))),
        ("KUBERNETES", version(&spec["kubernetes"]["version"])),
        ("ETCD", component("etcd")),
        ("CONTAINERD", component("containerd")),
        ("RUNC", component("runc")),
        ("CNI", component("cni")),
        ("CRICTL", component("crictl")),
        ("COREDNS", component("coredns")),
        ("FLANNEL", component("flannel")),
        ("PLUGIN", component("flannelCniPlugin")),
        ("PAUSE", component("pause")),
    ]);
    Ok(settings)
}

/// The one in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Goals are the project's; what KubeKey 3 takes was measured on the same hosts (docs/benchmarks.md).
fn figures(samples: &BTreeMap<&str, Vec<f64>>) -> Vec<Figure> {
    let value = |name: &str| samples.get(name).map(|values| median(values));
    let hand = value("by_hand");
    let bound = value("create_3_bound");
    let shown =
        |name: &str, value: Option<f64>| value.map(|value| format!("{name}:{value:.2},")).unwrap_or_default();
    let beside_create = format!("{}{}kubekey:60", shown("by_hand", hand), shown("bound", bound));
    // The stricter of two goals: the time by hand, and the least time for this machine.
    let goals = [hand.map(|hand| hand * 1.10), bound.map(|bound| bound * 1.20)];
    let goal = goals.into_iter().flatten().min_by(f64::total_cmp);
    let parts = ["hosts", "kk", "servers"]
        .map(|part| shown(part, value(&format!("create_3_core_seconds_{part}"))))
        .concat();
    let all: [(&'static str, &'static str, String, Option<f64>); 7] = [
        ("create_3", "s", beside_create, goal),
        ("create_3_core_seconds", "core_s", parts.trim_end_matches(',').to_owned(), None),
        ("create_3_round_trips", "per_host", "kubekey:313".into(), None),
        ("again_3", "s", "kubekey:8.5".into(), Some(2.0)),
        ("again_3_round_trips", "per_host", "kubekey:192".into(), Some(2.0)),
        ("delete_3", "s", "kubekey:70".into(), Some(10.0)),
        ("delete_3_round_trips", "per_host", "-".into(), None),
    ];
    let figure = |(name, unit, beside, goal): (&str, _, _, _)| {
        Some(Figure { name: name.to_owned(), value: value(name)?, unit, beside, goal })
    };
    all.into_iter().filter_map(figure).collect()
}

/// Replaces the text between the table's lines.
pub(crate) fn write_table(file: &Path, table: &Table, rows: &str) -> Result<()> {
    let Table { begin, end } = table;
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let (head, rest) =
        text.split_once(begin).with_context(|| format!("{} lacks `{begin}`", file.display()))?;
    let (_, tail) = rest.split_once(end).with_context(|| format!("{} lacks `{end}`", file.display()))?;
    let header = "| figure | value | beside | goal | reached |\n| --- | --- | --- | --- | --- |\n";
    let unfinished: PathBuf = file.with_extension("new");
    fs::write(&unfinished, format!("{head}{begin}\n{header}{rows}{end}{tail}"))?;
    fs::rename(&unfinished, file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_says_whether_its_goal_is_reached() {
        let samples = BTreeMap::from([
            ("by_hand", vec![30.0, 50.0, 31.0]),
            ("create_3", vec![34.0]),
            ("create_3_core_seconds", vec![60.0]),
            ("create_3_core_seconds_hosts", vec![50.0]),
            ("create_3_core_seconds_kk", vec![10.0]),
            ("create_3_bound", vec![30.0]),
            ("again_3", vec![2.5]),
        ]);
        let lines: Vec<String> = figures(&samples).iter().map(Figure::line).collect();
        assert_eq!(
            lines,
            [
                "BENCH name=create_3 value=34.00 unit=s beside=by_hand:31.00,bound:30.00,kubekey:60 goal=34.10 ok",
                "BENCH name=create_3_core_seconds value=60.00 unit=core_s beside=hosts:50.00,kk:10.00 goal=- ok",
                "BENCH name=again_3 value=2.50 unit=s beside=kubekey:8.5 goal=2.00 short",
            ]
        );
    }

    #[test]
    fn the_table_replaces_the_one_before() {
        let file = std::env::temp_dir().join(format!("kk-e2e-table-{}.md", std::process::id()));
        fs::write(&file, format!("head\n{}\nold\n{}\ntail\n", TABLE.begin, TABLE.end)).unwrap();
        let samples = BTreeMap::from([("again_3", vec![1.5])]);
        let rows: String = figures(&samples).iter().map(Figure::row).collect();
        write_table(&file, &TABLE, &rows).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert!(text.starts_with("head\n") && text.ends_with("\ntail\n") && !text.contains("old"), "{text}");
        assert!(text.contains("| again_3 | 1.50 s | kubekey:8.5 | 2.00 | yes |"), "{text}");
    }
}
