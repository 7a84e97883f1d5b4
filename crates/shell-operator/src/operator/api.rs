//! Reading and writing single objects.

use http::{Method, Request};
use kube::Client;
use serde_json::Value;

use crate::cluster::explain;

/// Objects by their paths. Cheap to clone.
#[derive(Clone)]
pub(super) struct ObjectApi(pub(super) Client);

impl ObjectApi {
    /// The object at `path`; `None` when it is not there.
    pub(super) async fn get(&self, path: &str) -> Result<Option<Value>, String> {
        let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
        match self.0.request::<Value>(request).await {
            Ok(value) => Ok(Some(value)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(explain(&error)),
        }
    }

    /// Creates or replaces an object.
    pub(super) async fn send(&self, method: Method, path: &str, object: &Value) -> Result<(), String> {
        let request = Request::builder().method(method).uri(path).header("Content-Type", "application/json");
        let request = request.body(object.to_string().into_bytes()).map_err(|error| error.to_string())?;
        self.0.request::<Value>(request).await.map(drop).map_err(|error| explain(&error))
    }
}
