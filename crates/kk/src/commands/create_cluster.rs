//! `kk create cluster`: from a file to a cluster, or back to what the file says.

use kk_cluster::{Options, Session, Settings};
use kk_config::{Host, Spec};

use crate::args::CreateCluster;
use crate::error::Error;
use crate::printer::{Printer, Summary};

use super::{
    load,
    run::{Done, Run, facts},
};

pub(super) async fn run(args: &CreateCluster, printer: &Printer) -> Result<(), Error> {
    Run::may_ask(&args.run, printer)?;
    let spec = load::spec(args.filename.as_deref(), args.with_kubernetes.as_deref(), printer)?;
    let session = Session::open(spec, settings(args))?;
    let mut run = Run::begin("create cluster", &session, &args.run, printer)?;
    let result = create(&session, &mut run).await;
    // What happened is on the screen before what came of it.
    let modules = run.end().await;
    if let Some(done) = result? {
        printer.summary(&summary(&session, done, modules));
    }
    Ok(())
}

async fn create(session: &Session, run: &mut Run<'_>) -> Result<Option<Done>, Error> {
    let probe = session.probe_for_create(run.stop(), |host| run.answered(host));
    let facts = facts(run.unless_stopped(probe).await?)?;
    let create = run.unless_stopped(session.create(&facts)).await?;
    create.notes.iter().for_each(|note| run.note(note));
    run.planned(&create.plan).await;
    let (verdict, tasks) = (run.check(&create.findings), create.plan.changes());
    if run.only_shows(&tasks)? {
        return verdict.map(|()| None);
    }
    verdict?;
    if !run.agree("Create this cluster?", &tasks).await? {
        return Ok(None);
    }
    run.go(create.plan, session.connections()).await.map(Some)
}

fn settings(args: &CreateCluster) -> Settings {
    Settings {
        workdir: args.run.workdir.clone(),
        templates: args.templates.clone(),
        host_keys: args.run.host_key_checking.into(),
        options: Options { skip_pull_images: args.skip_pull_images },
    }
}

fn summary(session: &Session, done: Done, modules: Vec<(String, u64)>) -> Summary {
    let spec = session.spec();
    let kubeconfig = session.folder().join("kubeconfig").display().to_string();
    let mut facts = vec![("API".to_owned(), endpoint(spec)), ("kubeconfig".to_owned(), kubeconfig.clone())];
    facts.extend(done.log.map(|log| ("log".to_owned(), log.display().to_string())));
    Summary {
        headline: format!("cluster {} is ready: Kubernetes {}", spec.name, spec.kubernetes.version),
        changed: done.report.changed,
        took_ms: done.took_ms,
        nodes: spec.nodes().into_iter().map(node).collect(),
        facts,
        modules,
        next: Some(format!("kubectl --kubeconfig {kubeconfig} get nodes")),
    }
}

fn endpoint(spec: &Spec) -> String {
    let endpoint = &spec.control_plane_endpoint;
    let address = endpoint.address.map_or_else(String::new, |address| format!(" ({address})"));
    format!("https://{}:{}{address}", endpoint.domain, endpoint.port)
}

fn node(host: &Host) -> [String; 3] {
    let roles: Vec<String> = host.roles.iter().map(ToString::to_string).collect();
    [host.name.clone(), host.internal_address.to_string(), roles.join(", ")]
}
