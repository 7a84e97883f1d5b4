//! Code for commands that probe the hosts, change them, and probe again.

use std::time::{Duration, Instant};

use kk_cluster::{Create, Probed, Session};
use kk_engine::{Finding, Severity};

use super::run::{Run, any_answered, refuse_without};
use crate::error::Error;

/// How often an API that does not answer is queried, with pauses of 5 seconds.
const LOOKS: usize = 12;
/// Time limit for all queries together, because each query to a hanging API lasts until its own time limit.
const PATIENCE: Duration = Duration::from_mins(2);

/// Carries out a later plan of a command. Warnings were shown before the first change, except for addons that are left out. An
/// error that occurred since then ends the run.
pub(super) async fn carry_out(plan: Create, run: &mut Run<'_>) -> Result<(), Error> {
    let is_error = |finding: &&Finding| finding.severity == Severity::Error;
    let errors = plan.findings.iter().filter(is_error);
    let shown: Vec<Finding> = errors.chain(&plan.left_out).cloned().collect();
    let verdict = run.report_findings(&shown);
    refuse_without(&plan.needed)?;
    verdict?;
    if plan.plan.changes().is_empty() {
        return Ok(());
    }
    run.report_plan(&plan.plan);
    run.execute(plan.plan).await
}

/// Probes the hosts and waits for an API server that may be just starting: its kubelet has restarted, or a run was interrupted.
pub(super) async fn probe(session: &Session, run: &Run<'_>) -> Result<Probed, Error> {
    let (mut looks, began) = (0, Instant::now());
    loop {
        let probe = session.probe_for_create(run.stop_token(), |host| run.host_probed(host));
        let probed = any_answered(run.unless_stopped(probe).await?)?;
        looks += 1;
        if is_enough(looks, began.elapsed()) || run.unless_stopped(session.api_answers(&probed)).await? {
            return Ok(probed);
        }
        run.note("the API does not answer; trying again in 5 s");
        let pause = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok(())
        };
        run.unless_stopped(pause).await?;
    }
}

fn is_enough(looks: usize, since_the_first: Duration) -> bool {
    looks == LOOKS || since_the_first > PATIENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_that_is_silent_is_asked_for_a_minute_and_one_that_hangs_for_two() {
        for (seconds_a_look, looks) in [(0, 12), (4, 12), (20, 6), (75, 2)] {
            let since = |look: usize| {
                let look = u64::try_from(look).unwrap();
                Duration::from_secs(look * seconds_a_look + (look - 1) * 5)
            };
            let last = (1..=LOOKS).find(|look| is_enough(*look, since(*look)));
            assert_eq!(last, Some(looks), "{seconds_a_look} s a look");
        }
    }
}
