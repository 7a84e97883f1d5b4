//! A component is switched off and on again: nothing of it is left, nothing else is touched, and it is installed again. `kk` and
//! the operator's pod are killed during the removal and during the installation. At the end KubeSphere is removed, and everything
//! is as before its installation.

use anyhow::{Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::remove::differences;
use super::{Lab, NAMESPACE, PATIENCE, with_installer};
use crate::checks;
use crate::context::Context;
use crate::kk::KkRun;

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    with_installer(ctx, |lab| {
        let before_all = lab.before_kubesphere()?;
        ctx.kk_ok(&lab.switched(true)?, "create", &[])?;
        ctx.kk_ok(&lab.controlled(true)?, "create", &[])?;
        lab.marks_all_namespaces()?;
        let core = uids(lab, "core-stand-in")?;
        for killed in [None, Some(Victim::Operator), Some(Victim::Kk)] {
            let before = uids(lab, "stand-in-metrics-server")?;
            lab.switch(false, killed)?;
            let status = lab.object()?["status"].take();
            ensure!(status["metricsServer"].is_null(), "its entry stays: {status}");
            ensure!(uids(lab, "stand-in-metrics-server")?.is_empty(), "something of it is left");
            lab.switch(true, killed)?;
            lab.sees_its_kinds()?;
            let after = uids(lab, "stand-in-metrics-server")?;
            ensure!(after.len() == before.len(), "it has other parts: {before:?} -> {after:?}");
            ensure!(
                after.iter().all(|uid| !before.contains(uid)),
                "it was not removed: {before:?} -> {after:?}"
            );
            ensure!(uids(lab, "core-stand-in")? == core, "another component was made again");
        }
        lab.nothing_to_do(&lab.controlled(true)?)?;
        lab.removes(|after| differences(&before_all, after))
    })
}

/// The process that is killed while `kk` waits for the operator.
#[derive(Clone, Copy)]
enum Victim {
    Kk,
    Operator,
}

impl Lab<'_> {
    fn switch(&self, on: bool, killed: Option<Victim>) -> Result<()> {
        let (ctx, site) = (self.ctx, self.controlled(on)?);
        let Some(victim) = killed else { return ctx.kk_ok(&site, "create", &[]).map(drop) };
        let mut kk = ctx.kk_start(&site, "create", &[])?;
        ctx.await_task(&mut kk, "kubesphere/wait_until_ready")?;
        match victim {
            Victim::Operator => {
                let delete =
                    format!("-n {NAMESPACE} delete pod -l app=ks-installer --grace-period=0 --force");
                ctx.kubectl(&site, &delete)?;
                KkRun::of(kk)?.expect_code(0)?;
            }
            Victim::Kk => {
                kk.signal(Signal::KILL)?;
                KkRun::of(kk)?;
                ctx.kk_ok(&site, "create", &[])?;
            }
        }
        Ok(())
    }

    /// The binary that reads the kinds once, when it starts, was started after the kinds existed.
    fn sees_its_kinds(&self) -> Result<()> {
        self.ctx.until("the controller sees the kinds of what was switched on", PATIENCE, || {
            let seen = "-n ks-stand-in get configmap seen -o jsonpath={.data}";
            Ok(self.ctx.kubectl(&self.site, seen)?.contains("gauges.stand-in.example.com").then_some(()))
        })
    }

    /// The site with metrics-server on or off.
    pub(super) fn switched(&self, on: bool) -> Result<crate::site::Site> {
        self.with(&json!({"metrics_server": {"enabled": on}}))
    }
}

/// Identities of all objects with this text in their name, of the kinds that the payload creates.
fn uids(lab: &Lab<'_>, name: &str) -> Result<Vec<String>> {
    let kinds = "get deployments,services,serviceaccounts,clusterroles,clusterrolebindings -A";
    let list = lab.ctx.kubectl_json(&lab.site, kinds)?;
    let named = |object: &&Value| checks::text(&object["metadata"]["name"]).contains(name);
    Ok(checks::items(&list).filter(named).map(|object| checks::text(&object["metadata"]["uid"])).collect())
}
