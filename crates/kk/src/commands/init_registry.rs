//! `kk init registry`: sets up a registry on a host of the file.

use kk_cluster::{Delete, Options, Session, Settings};
use kk_engine::{Output, Summary};

use crate::args::InitRegistry;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    bundle, load,
    run::{Run, any_answered, settings},
};

pub(super) async fn run(args: &InitRegistry, printer: &Printer) -> Result<ExitStatus, Error> {
    Run::check_consent(&args.run, printer)?;
    let input = load::input(Some(&args.filename), None)?;
    let settings = Settings {
        templates: args.source.templates.clone(),
        options: Options {
            bundle: bundle::open(&args.source, &input.spec, printer).await?,
            ..Options::default()
        },
        ..settings(&args.run)
    };
    let (session, mut run) = Run::start("init registry", input, settings, &args.run, printer)?;
    let result = Box::pin(init(&session, &mut run)).await;
    run.finish(result).await
}

async fn init(session: &Session, run: &mut Run<'_>) -> Result<Option<Summary>, Error> {
    let own = session.own_registry()?;
    bundle::take(session, run).await?;
    let probe = session.probe_for_registry(run.stop_token(), |host| run.host_probed(host));
    let probed = any_answered(run.unless_stopped(probe).await?)?;
    let Delete { findings, plan } = run.unless_stopped(session.plan_init_registry(&probed)).await?;
    let verdict = run.report_findings(&findings);
    let tasks = run.report_plan(&plan);
    verdict?;
    if run.is_dry_run() {
        return Ok(None);
    }
    if !run.confirm(&format!("Set up the registry {} on {}?", own.address, own.host.name), &tasks).await? {
        return Ok(None);
    }
    run.execute(plan).await?;
    let output = |name: &str, value: String| Output { name: name.into(), value };
    let directory = session.directory().join("registry");
    Ok(Some(Summary {
        message: format!("the registry {} runs on {}", own.address, own.host.name),
        outputs: vec![
            output("reached at", own.reached_at()),
            output("pushes at", own.pushed_at()),
            output("certificates", directory.display().to_string()),
        ],
        next: Some("kk artifact images push -f FILE -a BUNDLE".to_owned()),
        ..Summary::default()
    }))
}
