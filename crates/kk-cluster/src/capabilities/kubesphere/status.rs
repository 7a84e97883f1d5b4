//! Defines the status of KubeSphere in `kk status`.

use serde::Serialize;

/// The status of KubeSphere as its installer reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KubeSphereStatus {
    /// `Ready`, `Installing`, `Failed`, …; `Missing` if it was not deployed, `Unknown` if there is no answer.
    pub phase: String,
    /// Its version, once all components are ready.
    pub version: Option<String>,
    /// Its components by name.
    pub components: Vec<ComponentStatus>,
}

/// A component of KubeSphere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComponentStatus {
    /// Its name.
    pub name: String,
    /// `Ready`, `Failed`, `Installing`, …
    pub phase: String,
    /// Why it waits or fails; may be empty.
    pub message: String,
}
