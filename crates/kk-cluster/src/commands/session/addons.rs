//! Contents of addons, fetched before the first change if the addons have to be installed.

use std::collections::BTreeSet;

use kk_artifact::{Error, Obtained, obtain};
use kk_config::{ChartSource, ManifestSource};
use kk_engine::Finding;

use super::Session;
use crate::{
    base::{
        error::BuildError,
        probed::Probed,
        supply::{self, Wanted, not_fetched},
    },
    capabilities::addons,
    model::inputs::Inputs,
};

/// The charts and manifests that have to be fetched.
#[derive(Default)]
struct Remote {
    charts: BTreeSet<ChartSource>,
    manifests: BTreeSet<ManifestSource>,
}

impl Remote {
    fn add(&mut self, addon: &Wanted) {
        self.charts.extend(addon.chart.iter().filter(|part| part.is_remote).map(|part| part.source.clone()));
        let manifests = addon.manifests.iter().filter(|part| part.is_remote);
        self.manifests.extend(manifests.map(|part| part.source.clone()));
    }
}

impl Session {
    /// Fetches the charts and manifests of addons that have to be installed. A failed download is an error of the plan.
    pub(in crate::commands) async fn fetch_addons(&self, inputs: &mut Inputs<'_>) -> Vec<Finding> {
        let mut wanted = Remote::default();
        addons::needed(inputs).for_each(|addon| wanted.add(addon));
        match self.obtain(&wanted).await {
            Ok(obtained) => {
                take(inputs, &obtained);
                Vec::new()
            }
            Err(errors) => not_fetched(&errors),
        }
    }

    /// The same for a plan that has to be completed, because the cluster was changed already: an addon whose content cannot be
    /// fetched is left out of the plan. Returns a warning for each.
    pub(in crate::commands) async fn fetch_or_leave_addons(&self, inputs: &mut Inputs<'_>) -> Vec<Finding> {
        let mut left_out = Vec::new();
        if !self.fetch_addons(inputs).await.is_empty() {
            // Fetches them one by one to find out which of them fail.
            let needed: Vec<(String, Remote)> = addons::needed(inputs)
                .map(|addon| {
                    let mut wanted = Remote::default();
                    wanted.add(addon);
                    (addon.addon.name.clone(), wanted)
                })
                .collect();
            for (name, wanted) in needed {
                match self.obtain(&wanted).await {
                    Ok(obtained) => take(inputs, &obtained),
                    Err(errors) => left_out.push((name, not_fetched(&errors))),
                }
            }
        }
        let unread = inputs.addons.iter().filter(|addon| !addon.problems.is_empty());
        left_out.extend(unread.map(|addon| (addon.addon.name.clone(), addon.problems.clone())));
        inputs.addons.retain(|addon| left_out.iter().all(|(name, _)| *name != addon.addon.name));
        left_out.iter().flat_map(|(name, problems)| supply::left_out(name, problems)).collect()
    }

    /// Warnings about the addons that a command which ends with [`Session::plan_rest`] would leave unchanged, according to the
    /// answers of the hosts.
    ///
    /// # Errors
    /// As [`Session::plan_create`].
    pub async fn addons_left_out(&self, probed: &Probed) -> Result<Vec<Finding>, BuildError> {
        let mut inputs = self.create_inputs(probed).await?;
        Ok(self.fetch_or_leave_addons(&mut inputs).await)
    }

    async fn obtain(&self, wanted: &Remote) -> Result<Obtained, Vec<Error>> {
        obtain(&wanted.charts, &wanted.manifests, &self.spec.registry, &self.artifacts.store).await
    }
}

/// Stores the fetched contents in their addons.
fn take(inputs: &mut Inputs<'_>, obtained: &Obtained) {
    for addon in &mut inputs.addons {
        for part in addon.chart.iter_mut().filter(|part| part.is_remote) {
            part.content = part.content.take().or_else(|| obtained.charts.get(&part.source).cloned());
        }
        for part in addon.manifests.iter_mut().filter(|part| part.is_remote) {
            part.content = part.content.take().or_else(|| obtained.manifests.get(&part.source).cloned());
        }
    }
}
