//! What `kk status` shows of KubeSphere.

use serde::Serialize;

/// KubeSphere by the word of its installer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KubeSphereStatus {
    /// `Ready`, `Installing`, `Failed`, …; `Missing` where it was not deployed, `Unknown` without an answer.
    pub phase: String,
    /// Its version, once all is ready.
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
