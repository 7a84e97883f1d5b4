//! Faults while the installer works: an object that is refused, an image that no registry has, an API that is unavailable for
//! half a minute, an operator that is killed at random moments. A fault that stays is reported, and healed when its cause is
//! gone.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{Lab, NAMESPACE, PATIENCE, VERSION, with_installer};
use crate::checks;
use crate::context::Context;

/// How often the operator's pod is killed.
const KILLS: u32 = 30;

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    with_installer(ctx, |lab| {
        ctx.kk_ok(&lab.switched(true)?, "create", &[])?;
        lab.names_what_is_refused().context("an object that is refused")?;
        lab.names_an_image_that_nobody_has().context("an image that nobody has")?;
        lab.waits_for_the_api().context("an API that is away")?;
        lab.outlives_its_end().context("an operator that is killed")?;
        // The object was edited by hand: kk detects that by its generation, and applies the file's version once more.
        ctx.kk_ok(&lab.switched(true)?, "create", &[])?;
        lab.nothing_to_do(&lab.switched(true)?)?;
        lab.goes_without_its_operator().context("a delete without an operator")
    })
}

impl Lab<'_> {
    fn names_what_is_refused(&self) -> Result<()> {
        let broken = self.with(&json!({"metrics_server": {"enabled": true, "replicas": "many"}}))?;
        self.fails(&broken, &["KubeSphere is not ready: metrics-server: "])
    }

    fn names_an_image_that_nobody_has(&self) -> Result<()> {
        let image = "docker.io/library/nobody-has-this:1";
        let right = self.object()?["spec"]["stand_in"]["image"].take();
        let stand_in = json!({"core": true, "image": image});
        let broken = self.with(&json!({"metrics_server": {"enabled": true}, "stand_in": stand_in}))?;
        self.fails(&broken, &["KubeSphere is not ready: ", "nobody-has-this"])?;
        ensure!(self.object()?["spec"]["stand_in"]["image"] == right, "the file put right did not arrive");
        Ok(())
    }

    /// A create with this file fails and reports why; a create with the right file repairs it.
    fn fails(&self, broken: &crate::site::Site, words: &[&str]) -> Result<()> {
        let run = self.ctx.kk(broken, "create", &[])?;
        ensure!(run.finished.code == Some(1), "kk ended with {:?}", run.finished.code);
        run.expect_said(words)?;
        self.ctx.kk_ok(&self.switched(true)?, "create", &[])?;
        Ok(())
    }

    /// A change that is made just before the outage takes effect after it.
    fn waits_for_the_api(&self) -> Result<()> {
        let (ctx, site) = (self.ctx, &self.site);
        self.patch(&json!({"metrics_server": {"enabled": true, "replicas": 2}}))?;
        ctx.host(
            site.control_plane(),
            "pkill -STOP -x kube-apiserver; sleep 30; pkill -CONT -x kube-apiserver",
        )?;
        ctx.until("the change arrives", PATIENCE, || {
            let words = "-n ks-stand-in get deployment stand-in-metrics-server -o jsonpath={.spec.replicas}";
            Ok(ctx.kubectl(site, words).is_ok_and(|replicas| replicas.trim() == "2").then_some(()))
        })?;
        self.patch(&json!({"metrics_server": {"enabled": true, "replicas": 1}}))?;
        self.becomes_ready()
    }

    /// Kills the operator at random moments while a component is installed and removed. At the end, the same objects exist as
    /// before.
    fn outlives_its_end(&self) -> Result<()> {
        let before = self.objects()?;
        for number in 0..KILLS {
            self.patch(&json!({"metrics_server": {"enabled": number % 2 == 1}}))?;
            sleep(Duration::from_millis(RandomState::new().hash_one(number) % 4000));
            let delete = format!("-n {NAMESPACE} delete pod -l app=ks-installer --grace-period=0 --force");
            self.ctx.kubectl(&self.site, &delete)?;
        }
        self.patch(&json!({"metrics_server": {"enabled": true}}))?;
        self.becomes_ready()?;
        let after = self.objects()?;
        let differ: Vec<_> = before.symmetric_difference(&after).collect();
        ensure!(differ.is_empty(), "after {KILLS} kills there is something else: {differ:?}");
        Ok(())
    }

    /// A cluster whose operator does not work is deleted, and the possible leftovers are reported.
    fn goes_without_its_operator(&self) -> Result<()> {
        let (ctx, site) = (self.ctx, self.switched(true)?);
        ctx.kubectl(&site, &format!("-n {NAMESPACE} scale deployment ks-installer --replicas=0"))?;
        let gone = format!("-n {NAMESPACE} wait --for=delete pod -l app=ks-installer --timeout=60s");
        ctx.kubectl(&site, &gone)?;
        let run = ctx.kk_ok(&site, "delete", &[])?;
        let said = &run.finished.stdout;
        for words in ["ks-installer has not reported", "the delete continues", "may remain"] {
            ensure!(said.contains(words), "kk did not say `{words}`:\n{said}");
        }
        Ok(())
    }

    fn patch(&self, spec: &serde_json::Value) -> Result<()> {
        let patch = json!({"spec": spec}).to_string();
        let words = format!("-n {NAMESPACE} patch cc ks-installer --type merge -p '{patch}'");
        self.ctx.kubectl(&self.site, &words).map(drop)
    }

    /// The status is about the object's current spec, and everything is ready.
    fn becomes_ready(&self) -> Result<()> {
        let mut last = String::new();
        let found = self.ctx.until("KubeSphere is ready", PATIENCE, || {
            let Ok(object) = self.object() else { return Ok(None) };
            let status = &object["status"];
            last = format!("{status:#}");
            let is_seen = status["observedGeneration"] == object["metadata"]["generation"];
            // The version does not change while a component is being installed.
            let is_ready = status["phase"] == "Ready" && status["core"]["version"] == VERSION;
            Ok((is_seen && is_ready).then_some(()))
        });
        found.with_context(|| format!("its status was last: {last}"))
    }

    /// Names of everything that the payload makes.
    fn objects(&self) -> Result<BTreeSet<String>> {
        let of_namespace = "-n ks-stand-in get deployments,services,serviceaccounts,configmaps,secrets";
        let mut names = BTreeSet::new();
        for words in [of_namespace, "get clusterroles,clusterrolebindings,crds,namespaces"] {
            let list = self.ctx.kubectl_json(&self.site, words)?;
            names.extend(checks::items(&list).map(|object| {
                format!("{} {}", checks::text(&object["kind"]), checks::text(&object["metadata"]["name"]))
            }));
        }
        Ok(names)
    }
}
