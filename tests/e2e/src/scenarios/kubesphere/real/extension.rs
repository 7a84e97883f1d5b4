//! An extension of KubeSphere 4.1.3: installed and removed by its `InstallPlan`.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{PATIENCE, Real};
use crate::checks;

impl Real<'_> {
    /// Switches an extension on and off again, with the extensions that it requires. Returns the namespaces that KubeSphere has
    /// created for them and keeps.
    pub(super) fn extends(&self, name: &str) -> Result<Vec<String>> {
        let (ctx, lab) = (self.lab.ctx, &self.lab);
        let on = self.with("extension", &json!({"extensions": {name: {"enabled": true}}}))?;
        let before = self.namespaces()?;
        self.create(&on)?;
        let plans = ctx.kubectl_json(&lab.site, "get installplans.kubesphere.io")?;
        let names: Vec<String> =
            checks::items(&plans).map(|plan| checks::text(&plan["metadata"]["name"])).collect();
        ensure!(names.iter().any(|one| one == name), "there is no InstallPlan of it, only of {names:?}");
        for plan in checks::items(&plans) {
            ensure!(plan["status"]["state"] == "Installed", "an InstallPlan is not installed: {plan}");
        }
        let release = format!("get secrets -A -l owner=helm,status=deployed,name={name} -o name");
        ensure!(!ctx.kubectl(&lab.site, &release)?.trim().is_empty(), "helm has no release of it");
        lab.nothing_to_do(&on)?;
        let mut created = self.namespaces()?;
        created.retain(|namespace| !before.contains(namespace));

        let core = self.core()?;
        self.create(&core)?;
        let left = ctx.kubectl(&lab.site, "get installplans.kubesphere.io -o name")?;
        ensure!(left.trim().is_empty(), "these plans are left: {left}");
        for name in &names {
            ctx.until(&format!("the extension {name} is uninstalled"), PATIENCE, || {
                let releases =
                    ctx.kubectl(&lab.site, &format!("get secrets -A -l owner=helm,name={name} -o name"))?;
                let kinds = "deployments,statefulsets,daemonsets,services";
                let words = format!("get {kinds} -A -l kubesphere.io/extension-ref={name} -o name");
                let objects = ctx.kubectl(&lab.site, &words)?;
                Ok((releases.trim().is_empty() && objects.trim().is_empty()).then_some(()))
            })?;
        }
        lab.nothing_to_do(&core)?;
        Ok(created)
    }

    fn namespaces(&self) -> Result<Vec<String>> {
        let list = self.lab.ctx.kubectl_json(&self.lab.site, "get namespaces")?;
        Ok(checks::items(&list).map(|one| checks::text(&one["metadata"]["name"])).collect())
    }
}
