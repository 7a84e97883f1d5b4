//! Rewrites the names of images to another registry, and lists the images of objects.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The registry for `zone: cn`, and its namespace for all images.
const CN: (&str, &str) = ("registry.cn-beijing.aliyuncs.com", "kubesphereio");

/// Registry of images. The same rule applies to all sources of objects.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// Registry that replaces all other registries.
    address: Option<String>,
    /// Namespace that replaces all other namespaces.
    namespace: Option<String>,
}

impl Registry {
    /// The registry that a spec specifies.
    pub fn of(spec: &Value) -> Self {
        let text = |key: &str| spec[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let mut registry = Self { address: text("local_registry"), namespace: text("namespace_override") };
        if registry.address.is_none() && spec["zone"] == "cn" {
            registry.address = Some(CN.0.to_owned());
        }
        if registry.address.as_deref() == Some(CN.0) && registry.namespace.is_none() {
            registry.namespace = Some(CN.1.to_owned());
        }
        registry
    }

    /// The values of the spec that determine the registry.
    pub(super) fn inputs(spec: &Value) -> Value {
        json!([spec["local_registry"], spec["namespace_override"], spec["zone"]])
    }

    /// The name of the image in this registry.
    pub fn rewrite(&self, image: &str) -> String {
        let (host, path) = split(image);
        if self.address.is_none() && self.namespace.is_none() {
            return image.to_owned();
        }
        let address = self.address.as_deref().or(host);
        if host.is_some() && host == self.address.as_deref() {
            return image.to_owned();
        }
        let path = match (&self.namespace, path.rsplit_once('/')) {
            (Some(namespace), Some((_, name))) => format!("{namespace}/{name}"),
            (Some(namespace), None) => format!("{namespace}/{path}"),
            (None, _) => path.to_owned(),
        };
        address.map_or_else(|| path.clone(), |address| format!("{address}/{path}"))
    }

    /// Rewrites the images of all containers in an object.
    pub(super) fn rewrite_containers(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                for (key, value) in map.iter_mut() {
                    if let (true, Value::Array(containers)) = (is_containers(key), &mut *value) {
                        for image in containers.iter_mut().filter_map(|container| container.get_mut("image"))
                        {
                            if let Some(name) = image.as_str() {
                                *image = self.rewrite(name).into();
                            }
                        }
                    }
                    self.rewrite_containers(value);
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.rewrite_containers(value)),
            _ => {}
        }
    }
}

/// All images in the containers of an object and in the `image` of its spec.
pub fn images_of(object: &Value, found: &mut BTreeSet<String>) {
    if let Some(image) = object["spec"]["image"].as_str() {
        found.insert(image.to_owned());
    }
    collect(object, found);
}

fn collect(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if let (true, Value::Array(containers)) = (is_containers(key), value) {
                    found.extend(containers.iter().filter_map(|c| c["image"].as_str()).map(str::to_owned));
                }
                collect(value, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

fn is_containers(key: &str) -> bool {
    key == "containers" || key == "initContainers"
}

/// The host of a registry, if the name begins with one, and the remaining name.
fn split(image: &str) -> (Option<&str>, &str) {
    match image.split_once('/') {
        Some((host, path)) if host == "localhost" || host.contains(['.', ':']) => (Some(host), path),
        _ => (None, image),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn images_are_pulled_from_where_the_spec_says() {
        for (case, spec, image, expected) in [
            ("as_it_is", json!({}), "quay.io/a/b:1", "quay.io/a/b:1"),
            ("registry", json!({"local_registry": "r:5000"}), "quay.io/a/b:1", "r:5000/a/b:1"),
            ("no_host", json!({"local_registry": "r:5000"}), "a/b:1", "r:5000/a/b:1"),
            ("library", json!({"local_registry": "r:5000"}), "redis:5", "r:5000/redis:5"),
            (
                "namespace",
                json!({"local_registry": "r:5000", "namespace_override": "ks"}),
                "quay.io/a/b/c:1",
                "r:5000/ks/c:1",
            ),
            ("namespace_only", json!({"namespace_override": "ks"}), "quay.io/a/b:1", "quay.io/ks/b:1"),
            ("cn", json!({"zone": "cn"}), "redis:5", "registry.cn-beijing.aliyuncs.com/kubesphereio/redis:5"),
            (
                "already",
                json!({"local_registry": "r:5000", "namespace_override": "ks"}),
                "r:5000/ks/b:1",
                "r:5000/ks/b:1",
            ),
            ("empty", json!({"local_registry": "", "namespace_override": ""}), "a/b:1", "a/b:1"),
        ] {
            assert_eq!(Registry::of(&spec).rewrite(image), expected, "{case}");
        }
    }
}
