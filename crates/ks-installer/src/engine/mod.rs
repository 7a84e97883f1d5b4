//! Desired set → render → difference to the inventory and the cluster → server-side apply → ready → prune.
//!
//! [`Engine`] owns what is known of the cluster between passes: the inventories, the objects as rendered, and how often
//! something failed. All of that can be made again from the cluster, so a pass may be dropped or killed anywhere.

mod adopted;
mod apply;
mod backoff;
mod desired;
mod extension;
mod failure;
mod federation;
mod generated;
mod inventory;
mod packed;
mod pass;
mod plan;
mod prune;
mod release;
mod removal_order;
mod remove;
mod repair;
mod requirements;
mod traces;
mod uninstall;
mod wait;
mod workspaces;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

pub use backoff::Backoff;
pub use desired::{Desired, desired};
pub use extension::{DELETED as DELETED_FOR_EXTENSIONS, LOOKED_AT as LOOKED_AT_FOR_EXTENSIONS};
pub use failure::{Failure, Reason};
pub use generated::examples;
pub use inventory::{Entry, Inventories, Inventory, Origin, ReleaseName};
pub use pass::{Goal, Phase, Report, Suspects};
pub use plan::Change;

use pass::Progress;

use crate::api::{Api, ApiError};
use crate::payload::Component;
use crate::render::{Nodes, Release, Renderer};

/// Objects of one component that are written at once.
const AT_ONCE: usize = 8;

/// What was rendered.
#[derive(Clone)]
struct Rendered {
    /// For this hash.
    hash: String,
    objects: Arc<Vec<Value>>,
    releases: Arc<Vec<Release>>,
    /// When something in them has to be renewed.
    due: Option<i64>,
}

/// Brings components to what a spec asks for.
pub struct Engine {
    api: Arc<Api>,
    renderer: Renderer,
    inventories: Inventories,
    backoff: Backoff,
    retries: repair::Retries,
    /// How long something may be stuck until that is a failure.
    patience: Duration,
    /// How long helm may be at work on an extension.
    helm_limit: Duration,
    /// The name of this cluster among those of KubeSphere, as the spec of the last pass says it.
    own_cluster: Mutex<String>,
    certificate_life: Duration,
    /// By component.
    rendered: Mutex<BTreeMap<String, Rendered>>,
}

impl Engine {
    /// An engine that keeps its inventories in `namespace`. Reads those that are there.
    pub async fn open(api: Arc<Api>, renderer: Renderer, namespace: &str) -> Result<Self, Failure> {
        let inventories = Inventories::load(api.clone(), namespace).await?;
        Ok(Self {
            api,
            renderer,
            inventories,
            backoff: Backoff::default(),
            retries: repair::Retries::default(),
            patience: wait::STUCK,
            helm_limit: repair::HELM_LIMIT,
            own_cluster: Mutex::default(),
            certificate_life: generated::LIFE,
            rendered: Mutex::default(),
        })
    }

    /// The same with other pauses after failures.
    #[must_use]
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// The same with another time until what is stuck has failed.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The same with another time within which helm has done whatever it began.
    #[must_use]
    pub fn with_helm_limit(mut self, limit: Duration) -> Self {
        self.helm_limit = limit;
        self
    }

    /// The same with certificates that are valid for another time.
    #[must_use]
    pub fn with_certificate_life(mut self, life: Duration) -> Self {
        self.certificate_life = life;
        self
    }

    /// What is known to be in the cluster.
    pub fn inventories(&self) -> &Inventories {
        &self.inventories
    }

    /// What can be installed.
    pub fn renderer(&self) -> &Renderer {
        &self.renderer
    }

    /// Looks at the nodes, where templates ask about them.
    pub async fn count_nodes(&self) -> Result<(), ApiError> {
        let mut components = self.renderer.payload.components().values();
        if components.any(|component| !component.variables.is_empty()) {
            self.renderer.nodes.see(&self.api.nodes(Nodes::MANY).await?);
        }
        Ok(())
    }

    /// Failures before a change of the spec say nothing about what comes after it.
    pub fn forget_failures(&self) {
        self.backoff.forget();
        self.retries.forget_all();
    }

    /// The objects of a component, with what the cluster knows of them. Without `progress` nothing is written or waited for.
    async fn objects(
        &self,
        component: &Component,
        spec: &Value,
        hash: &str,
        progress: Option<&Progress<'_>>,
    ) -> Result<Rendered, Failure> {
        let rendered = self.rendered(component, spec, hash, progress.is_none()).await?;
        let objects = self.complete_plans(component, spec, rendered.objects, progress).await?;
        Ok(Rendered { objects, ..rendered })
    }

    /// The objects of a component as they are rendered: once for the same inputs, until something in them is due.
    async fn rendered(
        &self,
        component: &Component,
        spec: &Value,
        hash: &str,
        dry_run: bool,
    ) -> Result<Rendered, Failure> {
        let known =
            self.rendered.lock().unwrap_or_else(PoisonError::into_inner).get(&component.name).cloned();
        let is_as_it_was =
            |known: &Rendered| known.hash == hash && known.due.is_none_or(|due| due > generated::now());
        if let Some(known) = known.filter(is_as_it_was) {
            return Ok(known);
        }
        let generated = self.generated(component, spec, dry_run).await?;
        let inputs = crate::render::Inputs { spec, generated: &generated };
        let rendering = self.renderer.rendering(component, inputs).await;
        let rendering = rendering.map_err(|error| Failure::new(Reason::RenderFailed, error.to_string()))?;
        let due = generated::first_due(&generated);
        let (objects, releases) = (Arc::new(rendering.objects), Arc::new(rendering.releases));
        let now = Rendered { hash: hash.to_owned(), objects, releases, due };
        if !dry_run {
            let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
            rendered.insert(component.name.clone(), now.clone());
        }
        Ok(now)
    }
}
