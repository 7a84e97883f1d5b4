//! `kk delete node`: removes nodes from a cluster that keeps running without them.

use std::collections::BTreeMap;

use kk_cluster::{Drain, Leaving, Options, Probed, Session, Settings};
use kk_engine::{Failure, Summary};

use crate::args::DeleteNode;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    load,
    run::{Run, any_answered, name_left, refuse_without, settings},
};

pub(super) async fn run(args: &DeleteNode, printer: &Printer) -> Result<ExitStatus, Error> {
    Run::check_consent(&args.run, printer)?;
    let input = load::input(Some(&args.filename), None)?;
    let settings = Settings {
        options: Options { remove_runtime: args.all, ..Options::default() },
        ..settings(&args.run)
    };
    let (session, mut run) = Run::start("delete node", input, settings, &args.run, printer)?;
    let leaving = Leaving {
        names: args.names.iter().cloned().collect(),
        drain: Drain { force: args.force, timeout: args.drain_timeout },
        gone: args.gone,
    };
    run.expect_rounds();
    let result = Box::pin(delete(&session, &leaving, &mut run)).await;
    run.finish(result).await
}

/// Works in two rounds: the nodes leave, then the other nodes remove their data about them.
async fn delete(session: &Session, leaving: &Leaving, run: &mut Run<'_>) -> Result<Option<Summary>, Error> {
    let (name, names) = (&session.spec().name, leaving.names.iter().cloned().collect::<Vec<_>>().join(", "));
    session.knows(leaving)?;
    let probe = session.probe_for_create(run.stop_token(), |host| run.host_probed(host));
    let probed = any_answered(run.unless_stopped(probe).await?)?;
    let leave = run.unless_stopped(session.plan_leave(&probed, leaving)).await?;
    let verdict = run.report_findings(&leave.findings);
    let tasks = run.report_plan(&leave.plan);
    refuse_without(&silent(&probed, leaving))?;
    verdict?;
    if run.is_dry_run() {
        return Ok(None);
    }
    if !run.confirm(&format!("Remove {names} from cluster {name}?"), &tasks).await? {
        return Ok(None);
    }
    run.execute(leave.plan).await?;

    let rest = session.without(leaving)?;
    let probe = rest.probe_for_create(run.stop_token(), |host| run.host_probed(host));
    let probed = any_answered(run.unless_stopped(probe).await?)?;
    let forget = run.unless_stopped(Box::pin(rest.plan_forget(&probed))).await?;
    let verdict = run.report_findings(&forget.findings);
    run.report_plan(&forget.plan);
    refuse_without(&forget.needed)?;
    verdict?;
    run.execute(forget.plan).await?;
    name_left(&probed)?;
    Ok(Some(Summary {
        message: format!("removed {names} from cluster {name}"),
        next: Some(format!("remove {names} from the file: the next create would add {names} again")),
        ..Summary::default()
    }))
}

/// Leaving hosts that did not answer. They cannot be cleaned, so the user must specify `--gone`.
fn silent(probed: &Probed, leaving: &Leaving) -> BTreeMap<String, Failure> {
    let silent = |(host, failure): (&String, &Failure)| {
        let hint = failure.hint.iter().map(String::as_str);
        let gone = "if the host is permanently lost, use --gone, which only removes it from the cluster";
        let hint = Some(hint.chain([gone]).collect::<Vec<_>>().join("; "));
        (host.clone(), Failure { hint, ..failure.clone() })
    };
    let leaves = |host: &String| !leaving.gone && leaving.names.contains(host);
    probed.failures.iter().filter(|(host, _)| leaves(host)).map(silent).collect()
}
