//! Installs, changes and removes components: desired set → render → difference to the inventory and the cluster → server-side
//! apply → ready → prune.
//!
//! [`Engine`] owns the state between passes: the inventories, the rendered objects, and the number of failures. Everything
//! except the failures can be restored from the cluster, so a pass may be dropped or killed at any time.

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

/// Number of objects of one component that are written concurrently.
const AT_ONCE: usize = 8;

/// Result of a rendering.
#[derive(Clone)]
struct Rendered {
    /// Hash of its inputs.
    hash: String,
    objects: Arc<Vec<Value>>,
    releases: Arc<Vec<Release>>,
    /// Time at which a generated value in the objects has to be renewed.
    due: Option<i64>,
}

/// Brings components to the state that a spec specifies.
pub struct Engine {
    api: Arc<Api>,
    renderer: Renderer,
    inventories: Inventories,
    backoff: Backoff,
    retries: repair::Retries,
    /// Time after which a stuck object is a failure.
    patience: Duration,
    /// Maximum time for a helm operation on an extension.
    helm_limit: Duration,
    /// Name of this cluster among the clusters of KubeSphere, from the spec of the last pass.
    own_cluster: Mutex<String>,
    certificate_life: Duration,
    /// Results by component.
    rendered: Mutex<BTreeMap<String, Rendered>>,
}

impl Engine {
    /// Creates an engine that stores its inventories in `namespace`, and reads the existing inventories.
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

    /// Sets the pauses after failures.
    #[must_use]
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets the time after which a stuck object is a failure.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the time within which every helm operation ends.
    #[must_use]
    pub fn with_helm_limit(mut self, limit: Duration) -> Self {
        self.helm_limit = limit;
        self
    }

    /// Sets the validity of certificates.
    #[must_use]
    pub fn with_certificate_life(mut self, life: Duration) -> Self {
        self.certificate_life = life;
        self
    }

    /// The inventories of all components.
    pub fn inventories(&self) -> &Inventories {
        &self.inventories
    }

    /// The renderer with the payload.
    pub fn renderer(&self) -> &Renderer {
        &self.renderer
    }

    /// Reads the nodes if a component has variables, because their templates use data of the nodes.
    pub async fn count_nodes(&self) -> Result<(), ApiError> {
        let mut components = self.renderer.payload.components().values();
        if components.any(|component| !component.variables.is_empty()) {
            self.renderer.nodes.see(&self.api.nodes(Nodes::MANY).await?);
        }
        Ok(())
    }

    /// Removes all recorded failures, because they do not apply to a changed spec.
    pub fn forget_failures(&self) {
        self.backoff.forget();
        self.retries.forget_all();
    }

    /// The objects of a component, completed with values from the cluster. Without `progress`, it writes nothing and waits for
    /// nothing.
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

    /// The rendered objects of a component. They are rendered once for the same inputs, until a value in them is due.
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
