//! `kk delete cluster`: removes what `kk` made, gives back what it replaced.

use kk_cluster::{Options, Session, Settings};

use crate::args::DeleteCluster;
use crate::error::Error;
use crate::printer::{Printer, Summary};

use super::{
    load,
    run::{Done, Run, facts},
};

pub(super) async fn run(args: &DeleteCluster, printer: &Printer) -> Result<(), Error> {
    Run::may_ask(&args.run, printer)?;
    let spec = load::spec(args.filename.as_deref(), None, printer)?;
    let session = Session::open(spec, settings(args))?;
    let mut run = Run::begin("delete cluster", &session, &args.run, printer)?;
    let result = delete(args.all, &session, &mut run).await;
    // What happened is on the screen before what came of it.
    let modules = run.end().await;
    if let Some(done) = result? {
        printer.summary(&summary(&session, done, modules));
    }
    Ok(())
}

async fn delete(all: bool, session: &Session, run: &mut Run<'_>) -> Result<Option<Done>, Error> {
    let probe = session.probe_for_delete(run.stop(), |host| run.answered(host));
    let facts = facts(run.unless_stopped(async { Ok(probe.await) }).await?)?;
    let delete = session.delete(&facts, all)?;
    run.planned(&delete.plan).await;
    let tasks = delete.plan.changes();
    let question = format!("Delete cluster {} and all that runs in it?", session.spec().name);
    if run.only_shows(&tasks)? || !run.agree(&question, &tasks).await? {
        return Ok(None);
    }
    run.go(delete.plan, session.connections()).await.map(Some)
}

fn settings(args: &DeleteCluster) -> Settings {
    Settings {
        workdir: args.run.workdir.clone(),
        templates: None,
        host_keys: args.run.host_key_checking.into(),
        options: Options::default(),
    }
}

fn summary(session: &Session, done: Done, modules: Vec<(String, u64)>) -> Summary {
    Summary {
        headline: format!("cluster {} is removed", session.spec().name),
        changed: done.report.changed,
        took_ms: done.took_ms,
        facts: done.log.map(|log| ("log".to_owned(), log.display().to_string())).into_iter().collect(),
        modules,
        ..Summary::default()
    }
}
