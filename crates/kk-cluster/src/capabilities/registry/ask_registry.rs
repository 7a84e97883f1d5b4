//! Ask the registry from the control machine, as a push would.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use kk_config::{OwnRegistry, Registry, Spec};
use kk_engine::{Action, Apply, CONTROL, Change, Context, Facts, Failure, HostWork, Load, Run, Task};

use super::{pushes, trust};
use crate::base::{pki::Pki, slots};

/// With its CA and the accounts for pulls and pushes: so that a certificate or a password which does not fit is seen now.
///
/// `cluster`: the directory of the cluster on the control machine. The plan may have been made before there was a CA.
pub(super) fn task(spec: &Spec, own: &OwnRegistry<'_>, pki: &Pki, cluster: &Path) -> Task {
    let mut settings = Registry { auths: own.auths(&spec.registry), ..spec.registry.clone() };
    pushes::add_access(own, &mut settings, pki);
    let trust = trust::directory(&super::certificates(cluster));
    let ask = |address| Ask { settings: settings.clone(), trust: trust.clone(), address };
    let asks = [own.reached_at(), own.pushed_at()].map(|address| Box::new(ask(address)) as Box<dyn Action>);
    let work = HostWork::new(asks.into()).needs(slots::registry_started_slot());
    Task::new("ask_registry", "Ask the registry").on(CONTROL, work).timeout(Duration::from_mins(3))
}

#[derive(Clone)]
struct Ask {
    settings: Registry,
    trust: PathBuf,
    address: String,
}

impl Action for Ask {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed(format!("ask {}", self.address))
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(self.clone()))
    }

    fn load(&self) -> Load {
        Load::Wait
    }
}

#[async_trait]
impl Run for Ask {
    async fn run(&self, _context: Context) -> Result<(), Failure> {
        let mut settings = self.settings.clone();
        let auth = settings.auths.entry(self.address.clone()).or_default();
        auth.certs_path.get_or_insert_with(|| self.trust.display().to_string());
        kk_artifact::ask_registry(&settings, &self.address).await.map_err(|error| {
            Failure::new(error.to_string()).hint(
                "see \"journalctl -u registry -u registry-push\" on its host, and check whether a firewall \
                 blocks the control machine",
            )
        })
    }
}
