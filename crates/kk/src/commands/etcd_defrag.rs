//! `kk etcd defrag`: defragments the members of etcd one after the other to release space.

use std::collections::BTreeMap;

use kk_cluster::{MemberDetail, Session};
use kk_engine::Summary;

use crate::args::EtcdDefrag;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    load,
    run::{Run, any_answered, settings},
};

pub(super) async fn run(args: &EtcdDefrag, printer: &Printer) -> Result<ExitStatus, Error> {
    Run::check_consent(&args.run, printer)?;
    let input = load::input(Some(&args.filename), None)?;
    let (session, mut run) = Run::start("etcd defrag", input, settings(&args.run), &args.run, printer)?;
    let result = defrag(&session, &mut run).await;
    run.finish(result).await
}

async fn defrag(session: &Session, run: &mut Run<'_>) -> Result<Option<Summary>, Error> {
    let look = session.probe_for_create(run.stop_token(), |host| run.host_probed(host));
    let probed = any_answered(run.unless_stopped(look).await?)?;
    let mut members = session.members(&session.probe_etcd(run.stop_token()).await);
    members.sort_by_key(|(_, member)| member.as_ref().is_some_and(|member| member.leader));
    let order: Vec<String> = members.iter().map(|(host, _)| host.clone()).collect();
    let plan = run.unless_stopped(session.plan_defragment(&probed, &order)).await?;
    let verdict = run.report_findings(&plan.findings);
    let tasks = run.report_plan(&plan.plan);
    verdict?;
    if run.is_dry_run() {
        return Ok(None);
    }
    let cluster = &session.spec().name;
    if !run.confirm(&format!("Defragment etcd of cluster {cluster}?"), &tasks).await? {
        return Ok(None);
    }
    let before = sizes(&members);
    run.execute(plan.plan).await?;
    let again = session.members(&session.probe_etcd(run.stop_token()).await);
    let message = match freed(&before, &sizes(&again)) {
        Some(bytes) => format!("defragmenting etcd of cluster {cluster} released {} KiB", bytes >> 10),
        None => format!("etcd of cluster {cluster} is defragmented; the released size is not known"),
    };
    Ok(Some(Summary { message, ..Summary::default() }))
}

/// The sizes of the databases of members that answered, by host.
fn sizes(members: &[(String, Option<MemberDetail>)]) -> BTreeMap<&str, u64> {
    members.iter().filter_map(|(host, member)| Some((host.as_str(), member.as_ref()?.db_bytes))).collect()
}

/// The space that was released. `None` if a member did not answer again, because its size is then unknown.
fn freed(before: &BTreeMap<&str, u64>, after: &BTreeMap<&str, u64>) -> Option<u64> {
    before.iter().map(|(host, bytes)| Some(bytes.saturating_sub(*after.get(host)?))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_does_not_answer_afterwards_has_not_given_back_all() {
        let before = BTreeMap::from([("node1", 100), ("node2", 80)]);
        assert_eq!(freed(&before, &BTreeMap::from([("node1", 40), ("node2", 90)])), Some(60));
        assert_eq!(freed(&before, &BTreeMap::from([("node1", 40)])), None);
    }
}
