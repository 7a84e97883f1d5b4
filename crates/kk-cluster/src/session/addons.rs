//! The content of addons: fetched when they are to be installed, before the first change.

use std::collections::BTreeSet;

use kk_artifact::obtain;
use kk_config::{ChartSource, ManifestSource};
use kk_engine::Finding;

use super::Session;
use crate::{capabilities::addons, inputs::Inputs};

impl Session {
    /// Fetches the charts and manifests of addons that have something to do. What cannot be had is an error of the plan.
    pub(super) async fn fetch_addons(&self, inputs: &mut Inputs<'_>) -> Vec<Finding> {
        let (mut charts, mut manifests) = (BTreeSet::<ChartSource>::new(), BTreeSet::<ManifestSource>::new());
        for addon in addons::needed(inputs) {
            charts.extend(addon.chart.iter().filter(|part| part.is_remote).map(|part| part.source.clone()));
            let remote = addon.manifests.iter().filter(|part| part.is_remote);
            manifests.extend(remote.map(|part| part.source.clone()));
        }
        match obtain(&charts, &manifests, &self.spec.registry, &self.artifacts.store).await {
            Ok(obtained) => {
                for addon in &mut inputs.addons {
                    for part in addon.chart.iter_mut().filter(|part| part.is_remote) {
                        part.content = obtained.charts.get(&part.source).cloned();
                    }
                    for part in addon.manifests.iter_mut().filter(|part| part.is_remote) {
                        part.content = obtained.manifests.get(&part.source).cloned();
                    }
                }
                Vec::new()
            }
            Err(errors) => addons::not_fetched(&errors),
        }
    }
}
