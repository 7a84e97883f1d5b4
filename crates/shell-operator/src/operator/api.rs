//! Reading and writing single objects.

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

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

    /// The object of this name in a collection; `None` when it does not exist. Roles written for the original may allow `list`
    /// but not `get`: then the object is searched in the list.
    pub(super) async fn find(&self, collection: &str, name: &str) -> Result<Option<Value>, String> {
        let request = |path: String| Request::get(path).body(Vec::new()).map_err(|error| error.to_string());
        let got = self.0.request::<Value>(request(format!("{collection}/{name}"))?).await;
        let refused = match got {
            Ok(value) => return Ok(Some(value)),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(kube::Error::Api(status)) if status.code == 403 => kube::Error::Api(status),
            Err(error) => return Err(explain(&error)),
        };
        let list = request(format!("{collection}?fieldSelector=metadata.name%3D{name}"))?;
        match self.0.request::<Value>(list).await {
            Ok(list) => Ok(first_of(list)),
            // The error names the missing right to get, not the right to list.
            Err(kube::Error::Api(status)) if status.code == 403 => Err(explain(&refused)),
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

/// The first object of a list, with the kind and version that the list names for all its objects.
fn first_of(mut list: Value) -> Option<Value> {
    let kind = list["kind"].as_str()?.strip_suffix("List")?.to_owned();
    let version = list["apiVersion"].take();
    let mut first = list["items"].as_array_mut()?.drain(..).next()?;
    (first["kind"], first["apiVersion"]) = (json!(kind), version);
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_a_list_gets_its_kind_and_version() {
        let list = |items: Value| json!({"kind": "ThingList", "apiVersion": "v1", "items": items});
        assert_eq!(
            first_of(list(json!([{"metadata": {"name": "a"}}]))),
            Some(json!({"kind": "Thing", "apiVersion": "v1", "metadata": {"name": "a"}}))
        );
        assert_eq!(first_of(list(json!([]))), None);
    }
}
