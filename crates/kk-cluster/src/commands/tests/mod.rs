//! Pipelines as users see them in a dry run, and the files that they write on hosts.

mod balancer;
mod create;
mod delete;
mod documents;
mod joined;
mod kube_vip;
mod modules;
mod upgrade;
mod versions;

use kk_engine::Plan;

use crate::{base::probed::Probed, commands::create_cluster, testing};

/// The plan of a create on these hosts: one line for each task and host, followed by the changes.
async fn plan_of(spec: kk_config::Spec, spoil: impl Fn(&mut kk_engine::Facts)) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut probed = testing::fresh(&spec);
    probed.facts.values_mut().for_each(spoil);
    let session = testing::session(spec, directory.path());
    let inputs = session.create_inputs(&probed).await.unwrap();
    let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
    let text = serde_json::to_string_pretty(&plan.changes()).unwrap();
    text.replace(&directory.path().display().to_string(), "<workdir>")
}

/// Fresh hosts that all have this record.
fn recorded(spec: &kk_config::Spec, lines: &[&str]) -> Probed {
    let mut probed = testing::fresh(spec);
    for facts in probed.facts.values_mut() {
        facts.owned = lines.to_vec().into();
    }
    probed
}
