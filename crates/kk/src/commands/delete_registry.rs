//! `kk delete registry`: removes the registry that `kk init registry` set up.

use kk_cluster::{Delete, Session};
use kk_engine::Summary;

use crate::args::DeleteRegistry;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    load,
    run::{Run, any_answered, settings},
};

pub(super) async fn run(args: &DeleteRegistry, printer: &Printer) -> Result<ExitStatus, Error> {
    Run::check_consent(&args.run, printer)?;
    let input = load::input(Some(&args.filename), None)?;
    let (session, mut run) = Run::start("delete registry", input, settings(&args.run), &args.run, printer)?;
    let result = delete(args, &session, &mut run).await;
    run.finish(result).await
}

async fn delete(
    args: &DeleteRegistry,
    session: &Session,
    run: &mut Run<'_>,
) -> Result<Option<Summary>, Error> {
    let own = session.own_registry()?;
    let probe = session.probe_registry_to_delete(run.stop_token(), |host| run.host_probed(host));
    let probed = any_answered(run.unless_stopped(probe).await?)?;
    let plan = session.plan_delete_registry(&probed, args.with_data);
    let Delete { findings, plan } = run.unless_stopped(plan).await?;
    let data = session.registry_data(&probed)?;
    let verdict = run.report_findings(&findings);
    let tasks = run.report_plan(&plan);
    verdict?;
    if run.is_dry_run() {
        return Ok(None);
    }
    let images = if args.with_data { " and all its images" } else { "" };
    let question = format!("Remove the registry {} from {}{images}?", own.address, own.host.name);
    if !run.confirm(&question, &tasks).await? {
        return Ok(None);
    }
    run.execute(plan).await?;
    let message = if args.with_data {
        format!("the registry {} is removed", own.address)
    } else {
        format!("the registry {} is removed; its images are in {data} on {}", own.address, own.host.name)
    };
    Ok(Some(Summary { message, ..Summary::default() }))
}
