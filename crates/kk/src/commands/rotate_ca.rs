//! `kk certs rotate-ca`: replaces the CAs of a running cluster.

use kk_cluster::{Restarts, Session};
use kk_engine::{Finding, Severity, Summary};

use crate::args::RotateCa;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    create_cluster::kubectl_get_nodes,
    load,
    rounds::{carry_out, probe},
    run::{Run, any_answered, settings},
};

pub(super) async fn run(args: &RotateCa, printer: &Printer) -> Result<ExitStatus, Error> {
    Run::check_consent(&args.run, printer)?;
    let input = load::input(Some(&args.filename), None)?;
    let (session, mut run) = Run::start("certs rotate-ca", input, settings(&args.run), &args.run, printer)?;
    run.expect_rounds();
    let result = Box::pin(rotate(args, &session, &mut run)).await;
    run.finish(result).await
}

async fn rotate(args: &RotateCa, session: &Session, run: &mut Run<'_>) -> Result<Option<Summary>, Error> {
    let restarts = if args.keep_workloads { Restarts::Own } else { Restarts::All };
    let authorities = session.new_authorities(args.ca_dir.as_deref())?;
    let look = session.probe_for_create(run.stop_token(), |host| run.host_probed(host));
    let mut probed = any_answered(run.unless_stopped(look).await?)?;
    let mut rotation = run.unless_stopped(session.rotation(&probed, &authorities)).await?;
    if !rotation.has_begun {
        let create = run.unless_stopped(session.plan_rest(&probed)).await?;
        let is_error = |finding: &Finding| finding.severity == Severity::Error;
        rotation.findings.extend(create.findings.into_iter().filter(is_error));
        rotation.findings.extend(create.left_out);
        if !create.plan.changes().is_empty() {
            rotation.findings.push(Finding {
                severity: Severity::Error,
                host: None,
                message: "the cluster does not match the file".to_owned(),
                hint: "run kk create cluster first".to_owned(),
            });
        }
    }
    let verdict = run.report_findings(&rotation.findings);
    let mut tasks = Vec::new();
    for round in rotation.rounds {
        let plan = session.plan_rotation(&probed, &authorities, *round, restarts);
        tasks.extend(run.report_plan(&run.unless_stopped(plan).await?));
    }
    verdict?;
    if run.is_dry_run() {
        return Ok(None);
    }
    let cluster = &session.spec().name;
    let question = match (rotation.rounds.len(), args.keep_workloads) {
        (0, _) => format!("Remove the old CAs of cluster {cluster} from the control machine?"),
        (1 | 2, _) => {
            format!("Continue with the new CAs of cluster {cluster}? Control planes restart one at a time.")
        }
        (_, true) => format!(
            "Replace the CAs of cluster {cluster}? Control planes restart one at a time, three times."
        ),
        (_, false) => format!(
            "Replace the CAs of cluster {cluster}? Control planes restart one at a time, three times, and workloads once."
        ),
    };
    if !run.confirm(&question, &tasks).await? {
        return Ok(None);
    }
    for round in rotation.rounds {
        let plan = session.plan_rotation(&probed, &authorities, *round, restarts);
        let plan = run.unless_stopped(plan).await?;
        run.execute(plan).await?;
        probed = probe(session, run).await?;
    }
    if rotation.rounds.is_empty() {
        run.execute(session.plan_clean_up(&probed, &authorities)?).await?;
    }
    // Records the changes, and verifies that the cluster works.
    let rest = run.unless_stopped(session.plan_rest(&probed)).await?;
    carry_out(rest, run).await?;
    Ok(Some(Summary {
        message: format!("cluster {cluster} has new CAs"),
        next: Some(kubectl_get_nodes(session)),
        ..Summary::default()
    }))
}
