//! `kk etcd defrag`: members of etcd give back space, one after the other.

use kk_cluster::Session;
use kk_engine::Summary;

use crate::args::EtcdDefrag;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    load,
    run::{Run, any_answered, settings},
};

pub(super) async fn run(args: &EtcdDefrag, printer: &Printer) -> Result<ExitStatus, Error> {
    Run::check_consent(&args.run, printer)?;
    let input = load::input(Some(&args.filename), None)?;
    let (session, mut run) = Run::start("etcd defrag", input, settings(&args.run), &args.run, printer)?;
    let result = defrag(&session, &mut run).await;
    run.finish(result).await
}

async fn defrag(session: &Session, run: &mut Run<'_>) -> Result<Option<Summary>, Error> {
    let look = session.probe_for_create(run.stop_token(), |host| run.host_probed(host));
    let probed = any_answered(run.unless_stopped(look).await?)?;
    let mut members = session.members(&session.probe_etcd(run.stop_token()).await);
    members.sort_by_key(|(_, member)| member.as_ref().is_some_and(|member| member.leader));
    let order: Vec<String> = members.iter().map(|(host, _)| host.clone()).collect();
    let plan = run.unless_stopped(session.plan_defragment(&probed, &order)).await?;
    let verdict = run.report_findings(&plan.findings);
    let tasks = run.report_plan(&plan.plan);
    verdict?;
    if run.is_dry_run() {
        return Ok(None);
    }
    let cluster = &session.spec().name;
    if !run.confirm(&format!("Defragment etcd of cluster {cluster}?"), &tasks).await? {
        return Ok(None);
    }
    let bytes = |members: &[(String, Option<kk_cluster::MemberDetail>)]| -> u64 {
        members.iter().filter_map(|(_, member)| Some(member.as_ref()?.db_bytes)).sum()
    };
    let before = bytes(&members);
    run.execute(plan.plan).await?;
    let after = bytes(&session.members(&session.probe_etcd(run.stop_token()).await));
    let freed = before.saturating_sub(after) >> 10;
    Ok(Some(Summary {
        message: format!("etcd of cluster {cluster} has given back {freed} KiB"),
        ..Summary::default()
    }))
}
