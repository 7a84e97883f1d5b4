//! `kk upgrade`: upgrades a running cluster to another version of Kubernetes, one turn of hosts after the other.

use std::collections::BTreeSet;

use kk_artifact::Component;
use kk_cluster::{Drain, Hops, Options, Probed, Session, Settings};
use kk_config::{KubeVersion, Overrides};
use kk_engine::{Finding, Most, Plan, Summary};

use crate::args::Upgrade;
use crate::error::{Error, HostFailure};
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    bundle,
    create_cluster::kubectl_get_nodes,
    load,
    rounds::{carry_out, probe},
    run::{Run, refuse_without, settings},
};

pub(super) async fn run(args: &Upgrade, printer: &Printer) -> Result<ExitStatus, Error> {
    Run::check_consent(&args.run, printer)?;
    let overrides = Overrides {
        kubernetes_version: args.with_kubernetes,
        kubesphere_version: args.with_kubesphere.clone(),
        components: args.components.given(),
    };
    refuse_held_and_named(args)?;
    let input = load::input_with(Some(&args.filename), &overrides)?;
    let settings = Settings {
        templates: args.source.templates.clone(),
        options: Options {
            bundle: bundle::open(&args.source, &input.spec, printer).await?,
            ..Options::default()
        },
        ..settings(&args.run)
    };
    let (session, mut run) = Run::start("upgrade", input, settings, &args.run, printer)?;
    run.expect_rounds();
    let result = Box::pin(upgrade(args, &session, &mut run)).await;
    run.finish(result).await
}

/// A component must not be in both options.
fn refuse_held_and_named(args: &Upgrade) -> Result<(), Error> {
    let given = args.components.given();
    let is_named =
        |held: &&Component| given.iter().any(|(key, pin)| key == held.version_key() && pin.is_some());
    match args.components.held().iter().find(is_named) {
        None => Ok(()),
        Some(both) => Err(Error::Usage {
            message: format!("--hold {both} and --with-{both} exclude each other"),
            hint: "use only one of them".into(),
        }),
    }
}

async fn upgrade(args: &Upgrade, session: &Session, run: &mut Run<'_>) -> Result<Option<Summary>, Error> {
    let how = Drain { force: args.force, timeout: args.drain_timeout };
    bundle::take(session, run).await?;
    let probed = probe(session, run).await?;
    let file = session;
    let session = &file.hold(&probed, &args.components.held())?;
    let way = run.unless_stopped(session.hops(&probed)).await?;
    run.note(&words(&way, session, &args.components.held()));
    let first = match way.hops.first() {
        Some(hop) => session.at_version(*hop)?,
        None => return Ok(None),
    };
    let turns = batches(session, &way.turns, args.max_unavailable);
    let mut before = session.to_put_back(&probed, &etcd_versions(session, run).await, way.from, &first)?;
    let Ahead { fetches, plans, mut findings } =
        look_ahead(session, &first, &way, &turns, &how, &probed, run).await?;
    if way.hops != [way.from] {
        let missing = async { Ok(before.missing_to_put_back(&probed).await) };
        findings.extend(run.unless_stopped(missing).await?);
    }
    findings.extend(run.unless_stopped(session.addons_left_out(&probed)).await?);
    findings.sort_by_key(|finding| finding.severity);
    let verdict = run.report_findings(&findings);
    let tasks: Vec<_> = plans.iter().flat_map(|plan| run.report_plan(plan)).collect();
    verdict?;
    if run.is_dry_run() {
        return Ok(None);
    }
    let (name, version) = (&session.spec().name, session.spec().kubernetes.version);
    let steps = match &way.components[..] {
        steps @ [_, ..] if way.hops == [way.from] => steps.join(", "),
        _ => format!("{} -> {version}", way.from),
    };
    if !run.confirm(&format!("Upgrade cluster {name} ({steps})?"), &tasks).await? {
        return Ok(None);
    }
    // All downloads are done first, so that no host is left half-upgraded because a download fails.
    for plan in fetches.into_iter().filter(|plan| !plan.changes().is_empty()) {
        run.execute(plan).await?;
    }
    if !tasks.is_empty() {
        // Kubernetes cannot return to an older version; its objects can.
        let snapshot = run.unless_stopped(session.plan_snapshot(&probed)).await?;
        run.report_findings(&snapshot.findings)?;
        run.execute(snapshot.plan).await?;
        run.note("kk etcd restore restores the objects of the cluster from this snapshot");
    }
    let mut from = way.from;
    for hop in &way.hops {
        let next = session.at_version(*hop)?;
        if from != way.from {
            let probed = probe(session, run).await?;
            before = session.to_put_back(&probed, &etcd_versions(session, run).await, from, &next)?;
        }
        step(&before, &next, &turns, &how, run).await?;
        from = *hop;
    }
    // All other differences that a create with this file finds.
    let probed = probe(session, run).await?;
    let rest = run.unless_stopped(session.plan_rest(&probed)).await?;
    carry_out(rest, run).await?;
    Ok(Some(Summary {
        message: format!("cluster {name} has Kubernetes {version}"),
        next: Some(match &lines_for_the_file(args, file, session)[..] {
            [] => kubectl_get_nodes(session),
            lines => format!("write {} into the file, so that it matches the cluster", lines.join(" and ")),
        }),
        ..Summary::default()
    }))
}

/// The versions of the etcd members that answer.
async fn etcd_versions(session: &Session, run: &Run<'_>) -> Vec<String> {
    let members = session.members(&session.probe_etcd(run.stop_token()).await);
    members.into_iter().filter_map(|(_, member)| Some(member?.version)).collect()
}

/// The lines that the file needs so that a create with it changes nothing, and a later upgrade continues from here.
fn lines_for_the_file(args: &Upgrade, file: &Session, session: &Session) -> Vec<String> {
    let version = args.with_kubernetes.as_ref().map(|_| session.spec().kubernetes.version);
    let kubernetes = version.map(|version| format!("spec.kubernetes.version: {version}"));
    let given = args.components.given();
    let given = given.iter().filter_map(|(key, pin)| pin.map(|_| key));
    let differs = |component: &Component| {
        let pin = |session: &Session| {
            let mut pins = session.spec().components.iter();
            pins.find(|(key, _)| *key == component.version_key())?.1.map(str::to_owned)
        };
        pin(file).is_some() && pin(file) != pin(session)
    };
    let held = args.components.held().into_iter().filter(differs).map(Component::version_key);
    let keys: BTreeSet<&str> = given.chain(held).collect();
    let pins = session.spec().components.iter().filter(|(key, _)| keys.contains(key));
    let pins = pins.filter_map(|(key, pin)| Some(format!("spec.components.{key}: {}", pin?)));
    kubernetes.into_iter().chain(pins).collect()
}

/// The planned work of an upgrade, and all blockers.
struct Ahead {
    /// The binaries and images of each version.
    fetches: Vec<Plan>,
    /// The turns of the first version.
    plans: Vec<Plan>,
    findings: Vec<Finding>,
}

/// Plans everything before the first change.
async fn look_ahead(
    session: &Session,
    first: &Session,
    way: &Hops,
    turns: &[BTreeSet<String>],
    how: &Drain,
    probed: &Probed,
    run: &Run<'_>,
) -> Result<Ahead, Error> {
    let (mut found, mut fetches, mut plans) = (Vec::new(), Vec::new(), Vec::new());
    let mut drained = BTreeSet::new();
    for hop in &way.hops {
        let at = session.at_version(*hop)?;
        let fetch = run.unless_stopped(at.plan_fetch(probed)).await?;
        found.push(fetch.findings);
        fetches.push(fetch.plan);
    }
    for names in turns {
        let turn = run.unless_stopped(first.plan_turn(probed, names.clone(), how)).await?;
        refuse_without(&turn.needed)?;
        found.push(turn.findings);
        plans.push(turn.plan);
        drained.extend(turn.drained);
    }
    let asking = session.upgrade_findings(probed, way, drained, how, run.stop_token());
    found.insert(0, run.unless_stopped(asking).await?);
    let mut findings: Vec<Finding> = Vec::new();
    for finding in found.into_iter().flatten() {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    Ok(Ahead { fetches, plans, findings })
}

/// Upgrades by one minor version. Each turn probes the hosts again, so that a run after an interrupted one can resume. If a turn
/// fails, its hosts are rolled back, and no other turn begins.
async fn step(
    before: &Session,
    session: &Session,
    turns: &[BTreeSet<String>],
    how: &Drain,
    run: &mut Run<'_>,
) -> Result<(), Error> {
    let is_worker = |names: &BTreeSet<String>| {
        let spec = session.spec();
        !spec.control_planes().iter().any(|host| names.contains(&host.name))
            && spec.nodes().iter().any(|host| names.contains(&host.name))
    };
    let mut has_add_ons = false;
    for names in turns {
        if is_worker(names) && !has_add_ons {
            add_ons(session, run).await?;
            has_add_ons = true;
        }
        let probed = probe(session, run).await?;
        let mut names = names.clone();
        let turn = run.unless_stopped(session.plan_turn(&probed, names.clone(), how)).await?;
        if let Err(error) = carry_out(turn, run).await {
            let Error::Tasks(failures) = error else { return Err(error) };
            // Hosts that an earlier run has upgraded already are not rolled back.
            if before.spec().kubernetes.version != session.spec().kubernetes.version {
                let there = session.with_version(&probed).await?;
                names.retain(|name| !there.contains(name));
            }
            if names.is_empty() {
                return Err(Error::Tasks(failures));
            }
            return Err(put_back(before, &names, failures, run).await);
        }
    }
    if has_add_ons { Ok(()) } else { add_ons(session, run).await }
}

/// Rolls back the hosts of a failed turn and returns the turn's error.
async fn put_back(
    before: &Session,
    names: &BTreeSet<String>,
    mut failures: Vec<HostFailure>,
    run: &mut Run<'_>,
) -> Error {
    let failed = |name: &String| failures.iter().any(|failure| failure.host == *name);
    let result = async {
        let probed = probe(before, run).await?;
        let names: BTreeSet<String> =
            names.iter().filter(|name| failed(name) || before.is_in_turn(&probed, name)).cloned().collect();
        let version = before.spec().kubernetes.version;
        run.note(&format!("rolling back to {version}: {}", join(&names)));
        let plan = run.unless_stopped(before.plan_put_back(&probed, names.clone())).await?;
        carry_out(plan, run).await?;
        Ok::<_, Error>(format!("{} is rolled back to {version} and works", join(&names)))
    }
    .await;
    let state = result.unwrap_or_else(|error| {
        let why = error.problems().into_iter().next().map_or_else(String::new, |problem| problem.message);
        format!("{} could not be rolled back: {why}", join(names))
    });
    for HostFailure { failure, .. } in &mut failures {
        let hint = failure.hint.take().into_iter();
        let ways = "fix the cause and run kk upgrade again: it resumes with this host".to_owned();
        failure.hint = Some(hint.chain([state.clone(), ways]).collect::<Vec<_>>().join("; "));
    }
    Error::Tasks(failures)
}

fn join(names: &BTreeSet<String>) -> String {
    names.iter().cloned().collect::<Vec<_>>().join(", ")
}

async fn add_ons(session: &Session, run: &mut Run<'_>) -> Result<(), Error> {
    let probed = probe(session, run).await?;
    let plan = run.unless_stopped(session.plan_add_ons(&probed)).await?;
    carry_out(plan, run).await
}

/// Divides turns into batches: one host each, except workers, of which as many as may be unavailable at once.
fn batches(session: &Session, turns: &[String], at_once: Most) -> Vec<BTreeSet<String>> {
    let spec = session.spec();
    let is_worker = |name: &&String| {
        let others = spec.control_planes().into_iter().chain(spec.etcd_hosts());
        !others.into_iter().any(|host| host.name == **name)
    };
    let (workers, others): (Vec<_>, Vec<_>) = turns.iter().partition(is_worker);
    let one = |name: &String| BTreeSet::from([name.clone()]);
    let some = |names: &[&String]| names.iter().map(|name| (*name).clone()).collect();
    others.into_iter().map(one).chain(workers.chunks(at_once.of(workers.len())).map(some)).collect()
}

fn words(way: &Hops, session: &Session, held: &[Component]) -> String {
    let versions: Vec<String> = [way.from].iter().chain(&way.hops).map(KubeVersion::to_string).collect();
    let kubernetes = if way.hops == [way.from] {
        format!("all nodes already have {}", way.from)
    } else {
        versions.join(" -> ")
    };
    let pinned = |component: &Component| {
        let (_, pin) = session.spec().components.iter().find(|(key, _)| *key == component.version_key())?;
        Some(format!("{component} {} held", pin?))
    };
    let turns = || format!("turns: {}", way.turns.join(", "));
    let turns = (way.hops != [way.from] || !way.components.is_empty()).then(turns);
    let held = held.iter().filter_map(pinned);
    [kubernetes]
        .into_iter()
        .chain(way.components.iter().cloned())
        .chain(held)
        .chain(turns)
        .collect::<Vec<_>>()
        .join("; ")
}
