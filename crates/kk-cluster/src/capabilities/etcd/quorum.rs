//! Finds restarts that would cost etcd its quorum.

use super::start_etcd;
use crate::{base::findings::Findings, model::inputs::Inputs};

/// If a host does not answer, the other members may be just enough for the quorum; then none of them may restart. A member that
/// answers and is not healthy is repaired before the turns of other members.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    let (all, present) = (inputs.spec.etcd_hosts(), inputs.etcd_hosts());
    let absent = all.iter().filter(|host| inputs.facts(host).is_none());
    let absent: Vec<&str> = absent.map(|host| host.name.as_str()).collect();
    if absent.is_empty() || (present.len() - present.len().min(1)) * 2 > all.len() {
        return;
    }
    for (host, facts) in present {
        // A template that cannot be rendered ends the run before any restart.
        if start_etcd::unit(inputs, host, facts).is_ok_and(|unit| unit.restarts(facts)) {
            let absent = absent.join(", ");
            found.error(
                host,
                format!(
                    "etcd must restart on this host, but without {absent} the remaining members have no \
                         quorum"
                ),
                format!("start {absent} first, or revert the changed etcd settings"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use kk_engine::{Failure, UnitFact};

    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn no_member_restarts_while_one_that_is_needed_does_not_answer() {
        // Running members restart, because their files differ. Members that do not run only start.
        for (runs, absent, refused) in [(true, 0, 0), (true, 1, 2), (false, 1, 0)] {
            let spec = testing::sample("three-nodes.yaml");
            let (mut probed, directory) = (testing::fresh(&spec), tempfile::tempdir().unwrap());
            for facts in probed.facts.values_mut() {
                let unit = UnitFact { active: runs, ..UnitFact::default() };
                facts.units.insert("etcd.service".into(), unit);
            }
            let session = testing::session(spec.clone(), directory.path());
            for host in spec.etcd_hosts().into_iter().take(absent) {
                probed.facts.remove(&host.name);
                probed.failures.insert(host.name.clone(), Failure::new("no route to host"));
            }
            let inputs = session.create_inputs(&probed).await.unwrap();
            let mut found = Findings::default();
            findings(&inputs, &mut found);
            assert_eq!(found.0.len(), refused, "{runs} {absent} {:?}", found.0);
        }
    }
}
