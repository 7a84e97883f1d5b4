//! Renders the objects of a component from the spec.
//!
//! Templates see only those paths of the spec that the definition lists as inputs. The hash of a component covers the same paths,
//! so it changes with every value that a template can read. [`Renderer`] owns no mutable state except the observed nodes.

mod extension;
mod helm;
mod images;
mod nodes;
mod objects;
mod overlay;
mod release;
mod slice;
mod template;
mod text;
mod variables;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

pub use images::{Registry, images_of};
pub use nodes::Nodes;
pub use objects::{COMPONENT_LABEL, Class, class_of, class_of_kind};
pub use release::Release;

use crate::canonical::canonical;
use crate::payload::{Component, Payload, PayloadError, Source};
use slice::slice;

/// Renders components.
#[derive(Clone)]
pub struct Renderer {
    /// The available components.
    pub payload: Arc<Payload>,
    /// Path of the helm binary.
    pub helm: PathBuf,
    /// Version of Kubernetes, such as `v1.36.0`.
    pub kubernetes: String,
    /// Nodes of the cluster, for templates.
    pub nodes: Nodes,
}

/// Reason why a component could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The payload is invalid.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// A template or chart is invalid, or does not fit the spec.
    #[error("cannot render {part}: {why}")]
    Template {
        /// Name of the template or chart.
        part: String,
        /// The reason.
        why: String,
    },
}

/// Rendered objects and releases of a component.
pub struct Rendering {
    /// The objects in the order in which they are applied.
    pub objects: Vec<Value>,
    /// The charts whose releases are recorded.
    pub releases: Vec<Release>,
}

/// Inputs of a rendering.
pub struct Inputs<'a> {
    /// The whole spec. Templates see only the inputs of the component.
    pub spec: &'a Value,
    /// Generated passwords and certificates.
    pub generated: &'a Map<String, Value>,
}

impl Renderer {
    /// A hash that changes when the component has to be rendered again.
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
        let makers: BTreeSet<&String> =
            component.generated.iter().map(|one| one.of.as_ref().unwrap_or(&component.name)).collect();
        for rotate in makers.into_iter().map(|maker| &spec["rotate"][maker]).filter(|said| !said.is_null()) {
            add(&canonical(rotate).to_string());
        }
        for (part, sum) in component.files().into_iter().flat_map(|part| self.payload.sums(part)) {
            add(part);
            add(sum);
        }
        if !component.variables.is_empty() {
            let seen = self.nodes.seen();
            add(&seen.count.to_string());
            add(seen.runtime);
        }
        kk_util::hex(&hash.finalize()[..16])
    }

    /// The objects of a component, in the order in which they are applied.
    pub async fn objects(
        &self,
        component: &Component,
        inputs: Inputs<'_>,
    ) -> Result<Vec<Value>, RenderError> {
        Ok(self.render(component, inputs, false).await?.objects)
    }

    /// The objects of a component, and its recorded releases.
    pub async fn rendering(
        &self,
        component: &Component,
        inputs: Inputs<'_>,
    ) -> Result<Rendering, RenderError> {
        self.render(component, inputs, false).await
    }

    /// The objects of all sources, regardless of their conditions.
    pub async fn every_object(
        &self,
        component: &Component,
        inputs: Inputs<'_>,
    ) -> Result<Vec<Value>, RenderError> {
        Ok(self.render(component, inputs, true).await?.objects)
    }

    async fn render(
        &self,
        component: &Component,
        inputs: Inputs<'_>,
        every: bool,
    ) -> Result<Rendering, RenderError> {
        let registry = Registry::of(inputs.spec);
        let context = self.context(component, &inputs, &registry)?;
        let (mut objects, mut releases) = (Vec::new(), Vec::new());
        for source in &component.sources {
            let wrong = |why| RenderError::Template { part: source.name().to_owned(), why };
            if let Some(when) = source.when().filter(|_| !every)
                && !when.holds(&minijinja::Value::from_serialize(&context)).map_err(wrong)?
            {
                continue;
            }
            match source {
                Source::Manifests { manifests, plain, except, .. } => {
                    for part in self.payload.parts(manifests) {
                        let name = part.rsplit('/').next().unwrap_or_default();
                        if except.iter().any(|pattern| fits(pattern, name)) {
                            continue;
                        }
                        let mut text = self.payload.text(&part)?;
                        let wrong = |why| RenderError::Template { part: part.clone(), why };
                        if !plain {
                            text = template::render(&text, &context, &registry).map_err(wrong)?;
                        }
                        objects.extend(objects::read(&text).map_err(wrong)?);
                    }
                }
                Source::Chart { chart, release, values, values_from, record, hooks, .. } => {
                    let path = self.payload.chart(chart)?;
                    let mut values = template::render(values, &context, &registry).map_err(wrong)?;
                    if let Some(part) = values_from {
                        let wrong = |why| RenderError::Template { part: part.clone(), why };
                        let below = template::render(&self.payload.text(part)?, &context, &registry);
                        values = merged(&below.map_err(wrong)?, &values).map_err(wrong)?;
                    }
                    let namespace = component.namespace.as_deref().unwrap_or("default");
                    let with_hooks = !hooks.is_empty();
                    let chart = helm::Chart { path: &path, release, namespace, values, hooks: with_hooks };
                    let text = helm::template(&self.helm, &chart, &self.kubernetes).await.map_err(wrong)?;
                    if *record {
                        let values = text::value(&chart.values).map_err(wrong)?;
                        let made = Release::new(release, namespace, path, values);
                        objects.extend(made.objects(&text).map_err(wrong)?);
                        releases.push(made);
                    } else {
                        objects.extend(objects::without_hooks(objects::read(&text).map_err(wrong)?, hooks));
                    }
                }
                Source::Extension { extension, version, config, .. } => {
                    let version = template::render(version, &context, &registry).map_err(wrong)?;
                    let config = template::render(config, &context, &registry).map_err(wrong)?;
                    let texts = extension::Texts { version: &version, config: &config };
                    objects.push(extension::plan(extension, &texts, &context["spec"]).map_err(wrong)?);
                }
            }
        }
        let wrong = |why| RenderError::Template { part: format!("component {}", component.name), why };
        overlay::apply(&mut objects, &component.overlay, &context, &registry).map_err(wrong)?;
        let cluster_wide = objects::cluster_wide(&objects);
        for object in &mut objects {
            objects::complete(object, component, &registry, &cluster_wide).map_err(wrong)?;
        }
        objects.sort_by_key(class_of);
        // Sources with different conditions may contain the same object.
        let twice = if every { Ok(()) } else { objects::check_twice(&objects) };
        twice.map_err(wrong)?;
        Ok(Rendering { objects, releases })
    }

    /// The values that the templates of a component can read.
    fn context(
        &self,
        component: &Component,
        inputs: &Inputs<'_>,
        registry: &Registry,
    ) -> Result<Value, RenderError> {
        let mut context = Map::new();
        context.insert("spec".to_owned(), slice(inputs.spec, &component.inputs));
        context.insert("generated".to_owned(), inputs.generated.clone().into());
        context.insert("cluster".to_owned(), json!({ "version": self.kubernetes }));
        context.insert("namespace".to_owned(), json!(component.namespace));
        if !component.variables.is_empty() {
            let read = |part: &String| Ok((part.clone(), self.payload.text(part)?));
            let files = component.variables.iter().map(read).collect::<Result<Vec<_>, PayloadError>>()?;
            let facts = variables::Facts { kubernetes: &self.kubernetes, nodes: self.nodes.seen() };
            variables::add(&mut context, &files, facts, registry)
                .map_err(|(part, why)| RenderError::Template { part, why })?;
        }
        Ok(Value::Object(context))
    }

    /// Images that the definition of a component lists in addition to the images of its objects.
    pub fn extra_images(&self, component: &Component, spec: &Value) -> Result<Vec<String>, RenderError> {
        let registry = Registry::of(spec);
        let generated = Map::new();
        let context = self.context(component, &Inputs { spec, generated: &generated }, &registry)?;
        let wrong = |why| RenderError::Template { part: format!("images of {}", component.name), why };
        let render = |text: &String| template::render(text, &context, &registry).map_err(wrong);
        let images = component.images.iter().map(render).collect::<Result<Vec<_>, _>>()?;
        Ok(images.iter().map(|image| registry.rewrite(image)).collect())
    }
}

/// Whether a name matches a pattern with at most one `*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.strip_prefix(start).is_some_and(|rest| rest.len() >= end.len() && rest.ends_with(end))
        }
    }
}

/// Merges values of a chart as helm does for several files: `above` overrides `below`.
fn merged(below: &str, above: &str) -> Result<String, String> {
    let mut values = text::value(below)?;
    lay(&mut values, text::value(above)?);
    // JSON is valid YAML.
    Ok(values.to_string())
}

fn lay(below: &mut Value, above: Value) {
    match (below, above) {
        (_, Value::Null) => {}
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                lay(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}

#[cfg(test)]
mod tests;
