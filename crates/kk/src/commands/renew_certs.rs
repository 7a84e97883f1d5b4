//! `kk certs renew`: renews certificates of a running cluster and distributes them to the components that use them.

use kk_cluster::{RENEWABLE, Session};
use kk_engine::{Output, Summary};

use crate::args::RenewCerts;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    load,
    run::{Run, any_answered, name_left, refuse_without, settings},
};

pub(super) async fn run(args: &RenewCerts, printer: &Printer) -> Result<ExitStatus, Error> {
    Run::check_consent(&args.run, printer)?;
    let input = load::input(Some(&args.filename), None)?;
    let (session, mut run) = Run::start("certs renew", input, settings(&args.run), &args.run, printer)?;
    let result = renew(&args.names, &session, &mut run).await;
    run.finish(result).await
}

async fn renew(names: &[String], session: &Session, run: &mut Run<'_>) -> Result<Option<Summary>, Error> {
    let all = || RENEWABLE.map(str::to_owned).into();
    let names = if names.is_empty() { all() } else { names.iter().cloned().collect() };
    let probe = session.probe_for_create(run.stop_token(), |host| run.host_probed(host));
    let probed = any_answered(run.unless_stopped(probe).await?)?;
    let renew = run.unless_stopped(session.plan_renew(&probed, names)).await?;
    let verdict = run.report_findings(&renew.findings);
    let tasks = run.report_plan(&renew.plan);
    refuse_without(&renew.needed)?;
    verdict?;
    if run.is_dry_run() {
        return name_left(&probed).map(|()| None);
    }
    let cluster = &session.spec().name;
    if !run.confirm(&format!("Renew certificates of cluster {cluster}?"), &tasks).await? {
        return Ok(None);
    }
    run.execute(renew.plan).await?;
    name_left(&probed)?;
    let until = renew.certificates.until(&session.directory().join("kubeconfig"));
    Ok(Some(Summary {
        message: format!("cluster {cluster} has new certificates"),
        outputs: until.into_iter().map(|value| Output { name: "certificates".into(), value }).collect(),
        ..Summary::default()
    }))
}
