//! `kk etcd snapshot`: stores all objects of the cluster in a file on the control machine.

use kk_cluster::Session;
use kk_engine::Summary;

use crate::args::EtcdSnapshot;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    load,
    run::{Run, any_answered, settings},
};

pub(super) async fn run(args: &EtcdSnapshot, printer: &Printer) -> Result<ExitStatus, Error> {
    let input = load::input(Some(&args.filename), None)?;
    let (session, mut run) = Run::start("etcd snapshot", input, settings(&args.run), &args.run, printer)?;
    let result = snapshot(&session, &mut run).await;
    run.finish(result).await
}

async fn snapshot(session: &Session, run: &mut Run<'_>) -> Result<Option<Summary>, Error> {
    let probe = session.probe_for_create(run.stop_token(), |host| run.host_probed(host));
    let probed = any_answered(run.unless_stopped(probe).await?)?;
    let plan = run.unless_stopped(session.plan_snapshot(&probed)).await?;
    let verdict = run.report_findings(&plan.findings);
    run.report_plan(&plan.plan);
    verdict?;
    if run.is_dry_run() {
        return Ok(None);
    }
    run.execute(plan.plan).await?;
    let cluster = &session.spec().name;
    Ok(Some(Summary { message: format!("cluster {cluster} has a new snapshot"), ..Summary::default() }))
}
