//! Renews the certificates of control planes by a timer (`spec.kubernetes.autoRenewCerts`), without kk.
//!
//! The script on the host consists of the scripts by which kk renews certificates, so that kk and the timer can resume each
//! other's renewals. It does not renew CAs, the certificates that kk creates for etcd (valid as long as their CA), and the
//! certificates that kubelets renew themselves.

mod check;
mod program;
mod schedule_renewals;
mod stop_renewals;

use kk_config::{Host, Role};
use kk_engine::{Facts, ProbeSpec, Task};

use crate::{
    base::{error::BuildError, findings::Findings},
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
    },
};

/// The timer, its service and its script; the names are KubeKey's.
const PROGRAM: &str = "/usr/local/bin/kube-scripts/k8s-certs-renew.sh";
const SERVICE: &str = "/etc/systemd/system/k8s-certs-renew.service";
const TIMER: &str = "/etc/systemd/system/k8s-certs-renew.timer";

/// The renewal by a timer.
pub(crate) struct AutoRenew;

impl Capability for AutoRenew {
    fn name(&self) -> &'static str {
        "auto-renew"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn skipped(&self, cluster: &Cluster) -> Option<&'static str> {
        let is_off = !cluster.spec.kubernetes.auto_renew_certs;
        let is_gone = cluster.control_planes().iter().all(|(_, facts)| !is_there(facts));
        (is_off && is_gone).then_some("spec.kubernetes.autoRenewCerts is off")
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        if host.has_role(&Role::ControlPlane) {
            probe.files.extend([PROGRAM, SERVICE, TIMER].map(str::to_owned));
            if inputs.spec.kubernetes.auto_renew_certs {
                probe.ask(&check::LAST);
            }
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        check::findings(inputs, found);
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        let task = if inputs.spec.kubernetes.auto_renew_certs {
            schedule_renewals::task(inputs)?
        } else {
            stop_renewals::task(inputs, is_there)
        };
        Ok(vec![task])
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![stop_renewals::task(inputs, was_made)]
    }
}

/// Whether one of these files is on the host and kk has created it.
fn is_there(facts: &Facts) -> bool {
    [PROGRAM, SERVICE, TIMER].iter().any(|path| facts.files.contains_key(*path) && facts.owns(path))
}

/// Whether kk has created one of these files. A delete does not probe files.
fn was_made(facts: &Facts) -> bool {
    [PROGRAM, SERVICE, TIMER].iter().any(|path| facts.owns(path))
}

#[cfg(test)]
mod tests {
    use kk_engine::{Facts, FileFact, Plan};

    use super::*;
    use crate::{commands::create_cluster, testing};

    /// The tasks of a create and the number of findings on control planes with these facts.
    async fn create(on: bool, spoil: impl Fn(&mut Facts)) -> (Vec<String>, usize) {
        let (mut spec, directory) = (testing::sample("all-in-one.yaml"), tempfile::tempdir().unwrap());
        spec.kubernetes.auto_renew_certs = on;
        let mut probed = testing::fresh(&spec);
        probed.facts.values_mut().for_each(spoil);
        let session = testing::session(spec, directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let mut found = Findings::default();
        AutoRenew.findings(&inputs, &mut found);
        let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
        let changes = plan.changes().into_iter().filter(|task| task.module == "auto-renew");
        (changes.map(|task| task.task).collect(), found.0.len())
    }

    fn has_it(facts: &mut Facts) {
        facts.files.insert(TIMER.into(), FileFact::default());
    }

    #[tokio::test]
    async fn switched_off_it_goes_where_kk_has_made_it() {
        assert_eq!(create(true, |_| {}).await.0, ["schedule_renewals"]);
        assert_eq!(create(false, |_| {}).await.0, [""; 0]);
        assert_eq!(create(false, has_it).await.0, [""; 0], "somebody else's");
        let made = |facts: &mut Facts| {
            has_it(facts);
            facts.owned = vec![format!("made\t{TIMER}")].into();
        };
        assert_eq!(create(false, made).await.0, ["stop_renewals"]);
    }

    #[tokio::test]
    async fn a_renewal_that_failed_is_a_warning() {
        for (answer, warned) in [("success", 0), ("", 0), ("exit-code", 1), ("timeout", 1)] {
            assert_eq!(create(true, |facts| facts.reply(&check::LAST, answer)).await.1, warned, "{answer}");
        }
    }
}
