//! `kk delete cluster`: removes what kk created and restores what it replaced.

use kk_cluster::{Delete, Options, Session, Settings};
use kk_engine::Summary;

use crate::args::DeleteCluster;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    load,
    run::{Run, any_answered, name_left, settings},
};

pub(super) async fn run(args: &DeleteCluster, printer: &Printer) -> Result<ExitStatus, Error> {
    Run::check_consent(&args.run, printer)?;
    let input = load::input(args.filename.as_deref(), None)?;
    let settings = Settings {
        options: Options {
            remove_runtime: args.all,
            skip_kubesphere: args.skip_kubesphere,
            ..Options::default()
        },
        ..settings(&args.run)
    };
    let (session, mut run) = Run::start("delete cluster", input, settings, &args.run, printer)?;
    let result = delete(&session, &mut run).await;
    run.finish(result).await
}

async fn delete(session: &Session, run: &mut Run<'_>) -> Result<Option<Summary>, Error> {
    let probe = session.probe_for_delete(run.stop_token(), |host| run.host_probed(host));
    let probed = any_answered(run.unless_stopped(async { Ok(probe.await) }).await?)?;
    let Delete { findings, plan } = session.plan_delete(&probed)?;
    run.report_findings(&findings)?;
    let tasks = run.report_plan(&plan);
    let question = format!("Delete cluster {} and everything that runs in it?", session.spec().name);
    if run.is_dry_run() {
        return name_left(&probed).map(|()| None);
    }
    if !run.confirm(&question, &tasks).await? {
        return Ok(None);
    }
    run.execute(plan).await?;
    name_left(&probed)?;
    let message = format!("cluster {} is removed", session.spec().name);
    Ok(Some(Summary { message, ..Summary::default() }))
}
