//! `kk etcd restore`: restores the cluster from a snapshot of etcd.

use kk_cluster::{Probed, Session, Settings, Snapshot};
use kk_engine::Summary;

use crate::args::EtcdRestore;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    create_cluster::kubectl_get_nodes,
    load,
    rounds::{carry_out, probe},
    run::{Run, any_answered, name_left, settings},
};

pub(super) async fn run(args: &EtcdRestore, printer: &Printer) -> Result<ExitStatus, Error> {
    Run::check_consent(&args.run, printer)?;
    let input = load::input(Some(&args.filename), None)?;
    let settings = Settings { templates: args.templates.clone(), ..settings(&args.run) };
    let (session, mut run) = Run::start("etcd restore", input, settings, &args.run, printer)?;
    run.expect_rounds();
    let result = restore(args, &session, &mut run).await;
    run.finish(result).await
}

async fn restore(args: &EtcdRestore, session: &Session, run: &mut Run<'_>) -> Result<Option<Summary>, Error> {
    let named = args.snapshot.as_deref().map(Snapshot::open).transpose()?;
    let look = session.probe_for_create(run.stop_token(), |host| run.host_probed(host));
    let probed = any_answered(run.unless_stopped(look).await?)?;
    let snapshot = match named {
        Some(snapshot) => snapshot,
        None => match newest(session, &probed, run).await? {
            Some(snapshot) => snapshot,
            None => return Ok(None),
        },
    };
    let send = run.unless_stopped(session.plan_send(&probed, &snapshot, args.force)).await?;
    let comparing = session.compare(&probed, &snapshot, args.force, run.stop_token());
    let comparison = run.unless_stopped(comparing).await?;
    let left_out = run.unless_stopped(session.addons_left_out(&probed)).await?;
    let verdict = run.report_findings(&[send.findings, comparison.findings, left_out].concat());
    let mut tasks = run.report_plan(&send.plan);
    let restore = run.unless_stopped(session.plan_restore(&probed, &snapshot)).await?;
    tasks.extend(run.report_plan(&restore.plan));
    verdict?;
    if run.is_dry_run() {
        return name_left(&probed).map(|()| None);
    }
    let (cluster, file) = (&session.spec().name, snapshot.path.display());
    let question = format!(
        "Restore cluster {cluster} from {file} of {} ({})? All later changes are lost.",
        snapshot.time, comparison.loss
    );
    if !run.confirm(&question, &tasks).await? {
        return Ok(None);
    }
    let back = run.unless_stopped(session.plan_take_back(&probed, &snapshot)).await?;
    // A damaged snapshot is found before anything is stopped.
    if let Err(error) = run.execute(send.plan).await {
        if let Err(second) = run.take_back(back.plan).await {
            let why =
                second.problems().into_iter().next().map_or_else(String::new, |problem| problem.message);
            run.note(&format!("copies of the snapshot may remain on hosts: {why}"));
        }
        return Err(error);
    }
    run.execute(restore.plan).await?;
    // Hosts that were not involved, and all other differences that a create finds.
    let probed = probe(session, run).await?;
    let rest = run.unless_stopped(session.plan_rest(&probed)).await?;
    carry_out(rest, run).await?;
    name_left(&probed)?;
    Ok(Some(Summary {
        message: format!("cluster {cluster} is restored from {file}"),
        next: Some(kubectl_get_nodes(session)),
        ..Summary::default()
    }))
}

/// Fetches the newest backup of the hosts. `None` in a dry run.
async fn newest(session: &Session, probed: &Probed, run: &mut Run<'_>) -> Result<Option<Snapshot>, Error> {
    let backup = run.unless_stopped(session.newest_backup(probed)).await?;
    run.note(&format!("the newest backup is {} of {}", backup.name, backup.host));
    let verdict = run.report_findings(&backup.fetch.findings);
    run.report_plan(&backup.fetch.plan);
    verdict?;
    if run.is_dry_run() {
        return Ok(None);
    }
    run.execute(backup.fetch.plan).await?;
    Ok(Some(Snapshot::open(&backup.path)?))
}
