//! `kk add nodes`: joins the nodes that are in the file but not in its cluster.

use kk_cluster::{Options, Session, Settings};
use kk_engine::Summary;

use crate::args::AddNodes;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    bundle,
    create_cluster::{kubectl_get_nodes, node},
    load,
    run::{Run, any_answered, name_left, refuse_without, settings},
};

pub(super) async fn run(args: &AddNodes, printer: &Printer) -> Result<ExitStatus, Error> {
    Run::check_consent(&args.run, printer)?;
    let input = load::input(Some(&args.filename), None)?;
    let settings = Settings {
        templates: args.source.templates.clone(),
        options: Options {
            skip_pull_images: args.skip_pull_images,
            bundle: bundle::open(&args.source, &input.spec, printer).await?,
            with_packages: args.with_packages,
            ..Options::default()
        },
        ..settings(&args.run)
    };
    let (session, mut run) = Run::start("add nodes", input, settings, &args.run, printer)?;
    let result = Box::pin(add(&session, &mut run)).await;
    run.finish(result).await
}

async fn add(session: &Session, run: &mut Run<'_>) -> Result<Option<Summary>, Error> {
    bundle::take(session, run).await?;
    let probe = session.probe_for_create(run.stop_token(), |host| run.host_probed(host));
    let probed = any_answered(run.unless_stopped(probe).await?)?;
    let add = run.unless_stopped(session.plan_add(&probed)).await?;
    add.notes.iter().for_each(|note| run.note(note));
    let verdict = run.report_findings(&add.findings);
    let tasks = run.report_plan(&add.plan);
    refuse_without(&add.needed)?;
    verdict?;
    if run.is_dry_run() {
        return name_left(&probed).map(|()| None);
    }
    let names: Vec<&str> = add.joining.iter().map(|host| host.name.as_str()).collect();
    let cluster = &session.spec().name;
    let (question, message) = match names.join(", ") {
        names if names.is_empty() => (
            "No new node joins. Apply the other changes?".to_owned(),
            format!("all nodes of the file are already in cluster {cluster}"),
        ),
        names => (
            format!("Add {names} to cluster {cluster}?"),
            format!("cluster {cluster} has new nodes: {names}"),
        ),
    };
    if !run.confirm(&question, &tasks).await? {
        return Ok(None);
    }
    let nodes = add.joining.iter().map(node).collect();
    run.execute(add.plan).await?;
    name_left(&probed)?;
    Ok(Some(Summary { message, nodes, next: Some(kubectl_get_nodes(session)), ..Summary::default() }))
}
