//! From a component and the spec to objects.
//!
//! Templates see only the paths of the spec that the definition lists as inputs, so that the hash of a component, which
//! is made of the same slice, cannot miss one. [`Renderer`] owns nothing that changes.

mod helm;
mod images;
mod objects;
mod slice;
mod template;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

pub use images::{Registry, images_of};
pub use objects::{COMPONENT_LABEL, Class, class_of, class_of_kind};

use crate::payload::{Component, Payload, PayloadError, Source};
use slice::slice;

/// Makes objects of components.
#[derive(Clone)]
pub struct Renderer {
    /// What can be rendered.
    pub payload: Arc<Payload>,
    /// helm's program.
    pub helm: PathBuf,
    /// Version of Kubernetes, like `v1.36.4`.
    pub kubernetes: String,
}

/// Why a component could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The payload is broken.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// A template or chart is wrong, or does not fit the spec.
    #[error("cannot render {part}: {why}")]
    Template {
        /// Which.
        part: String,
        /// Why.
        why: String,
    },
}

/// What a component is rendered from.
pub struct Inputs<'a> {
    /// The whole spec; templates see the inputs of the component.
    pub spec: &'a Value,
    /// Passwords and certificates.
    pub generated: &'a Map<String, Value>,
}

impl Renderer {
    /// A value that changes when the component has to be rendered again.
    pub fn hash(&self, component: &Component, spec: &Value) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        };
        add(&component.text);
        add(&self.kubernetes);
        add(&canonical(&slice(spec, &component.inputs)).to_string());
        add(&canonical(&Registry::inputs(spec)).to_string());
        let rotate = &spec["rotate"][&component.name];
        if !component.generated.is_empty() && !rotate.is_null() {
            add(&canonical(rotate).to_string());
        }
        for source in &component.sources {
            for (part, sum) in self.payload.sums(source.directory()) {
                add(part);
                add(sum);
            }
        }
        kk_util::hex(&hash.finalize()[..16])
    }

    /// The objects of a component, in the order in which they are applied.
    pub async fn objects(
        &self,
        component: &Component,
        inputs: Inputs<'_>,
    ) -> Result<Vec<Value>, RenderError> {
        self.render(component, inputs, false).await
    }

    /// The same with all sources, also those whose condition does not hold.
    pub async fn every_object(
        &self,
        component: &Component,
        inputs: Inputs<'_>,
    ) -> Result<Vec<Value>, RenderError> {
        self.render(component, inputs, true).await
    }

    async fn render(
        &self,
        component: &Component,
        inputs: Inputs<'_>,
        every: bool,
    ) -> Result<Vec<Value>, RenderError> {
        let registry = Registry::of(inputs.spec);
        let context = json!({
            "spec": slice(inputs.spec, &component.inputs),
            "generated": inputs.generated,
            "cluster": { "version": self.kubernetes },
            "namespace": component.namespace,
        });
        let mut objects = Vec::new();
        for source in &component.sources {
            let wrong = |why| RenderError::Template { part: source.directory().to_owned(), why };
            if let Some(when) = source.when().filter(|_| !every)
                && !when.holds(&minijinja::Value::from_serialize(&context)).map_err(wrong)?
            {
                continue;
            }
            match source {
                Source::Manifests { manifests, .. } => {
                    for part in self.payload.parts(manifests) {
                        let text = self.payload.text(&part)?;
                        let wrong = |why| RenderError::Template { part: part.clone(), why };
                        let text = template::render(&text, &context, &registry).map_err(wrong)?;
                        objects.extend(objects::read(&text).map_err(wrong)?);
                    }
                }
                Source::Chart { chart, release, values, .. } => {
                    let path = self.payload.chart(chart)?;
                    let values = template::render(values, &context, &registry).map_err(wrong)?;
                    let namespace = component.namespace.as_deref().unwrap_or("default");
                    let chart = helm::Chart { path: &path, release, namespace, values };
                    let text = helm::template(&self.helm, &chart, &self.kubernetes).await.map_err(wrong)?;
                    objects.extend(objects::read(&text).map_err(wrong)?);
                }
            }
        }
        let cluster_wide = objects::cluster_wide(&objects);
        for object in &mut objects {
            objects::complete(object, component, &registry, &cluster_wide).map_err(|why| {
                RenderError::Template { part: format!("component {}", component.name), why }
            })?;
        }
        objects.sort_by_key(class_of);
        // Two sources may stand for each other.
        let twice = if every { Ok(()) } else { objects::check_twice(&objects) };
        twice.map_err(|why| RenderError::Template { part: format!("component {}", component.name), why })?;
        Ok(objects)
    }

    /// Images that a component names besides those in its objects.
    pub fn extra_images(&self, component: &Component, spec: &Value) -> Result<Vec<String>, RenderError> {
        let (registry, context) = (Registry::of(spec), json!({ "spec": slice(spec, &component.inputs) }));
        let wrong = |why| RenderError::Template { part: format!("images of {}", component.name), why };
        let render = |text: &String| template::render(text, &context, &registry).map_err(wrong);
        let images = component.images.iter().map(render).collect::<Result<Vec<_>, _>>()?;
        Ok(images.iter().map(|image| registry.rewrite(image)).collect())
    }
}

/// The value with all keys in order: the same for every order in which they were written.
pub fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            keys.into_iter().map(|(key, value)| (key.clone(), canonical(value))).collect()
        }
        Value::Array(list) => list.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
