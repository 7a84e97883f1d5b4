//! Implements `ks-installer plan` and `ks-installer images`: shows changes and required images.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use ks_installer::api::Api;
use ks_installer::engine::{Engine, desired, examples};
use ks_installer::payload::Payload;
use ks_installer::render::{Inputs, Nodes, Renderer, images_of};
use ks_installer::spec;
use serde_json::Value;
use shell_operator::yaml::{self, Dialect};

use super::{ClusterArgs, PayloadArgs, eprint, print};

#[derive(Args)]
pub(super) struct PlanArgs {
    /// File with the ClusterConfiguration
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    payload: PayloadArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Args)]
pub(super) struct ImagesArgs {
    /// File with the ClusterConfiguration
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Kubernetes version that the images are for
    #[arg(long, value_name = "VERSION", default_value = "v1.36.0")]
    kube_version: String,
    #[command(flatten)]
    payload: PayloadArgs,
}

/// Prints one line for each object that would be created (+), changed (~) or deleted (-).
pub(super) async fn plan(args: PlanArgs) -> anyhow::Result<()> {
    let payload = Payload::open(&args.payload.payload).context("cannot use the payload")?;
    let spec = read(&args.file, &payload)?;
    let api = Arc::new(Api::connect(&args.cluster.client()).await?);
    let kubernetes = api.version().await?;
    let nodes = api.nodes(Nodes::MANY).await?;
    let renderer =
        Renderer { payload: Arc::new(payload), helm: args.payload.helm, kubernetes, nodes: Nodes::default() };
    renderer.nodes.see(&nodes);
    let engine = Engine::open(api, renderer, &args.cluster.namespace).await?;
    let plan = engine.plan(&spec).await;
    for (component, changes) in &plan {
        for change in changes {
            print(&format!("{component}: {change}"));
        }
    }
    if plan.is_empty() {
        print("nothing would change");
    }
    Ok(())
}

/// Prints the images of all enabled components.
pub(super) async fn images(args: ImagesArgs) -> anyhow::Result<()> {
    let payload = Arc::new(Payload::open(&args.payload.payload).context("cannot use the payload")?);
    let spec = read(&args.file, &payload)?;
    let renderer = Renderer {
        payload: payload.clone(),
        helm: args.payload.helm,
        kubernetes: args.kube_version,
        nodes: Nodes::default(),
    };
    let desired = desired(&payload, &spec, &renderer.kubernetes);
    if let Some((_, failure)) = desired.refused.first_key_value() {
        bail!("{failure}");
    }
    let mut images = BTreeSet::new();
    for component in desired.wanted.iter().filter_map(|name| payload.components().get(name)) {
        let generated = examples(&payload, component).map_err(anyhow::Error::msg)?;
        let objects = renderer.objects(component, Inputs { spec: &spec, generated: &generated }).await?;
        for object in &objects {
            images_of(object, &mut images);
        }
        images.extend(renderer.extra_images(component, &spec)?);
    }
    for image in &images {
        print(image);
    }
    Ok(())
}

/// The spec of the ClusterConfiguration in a file, as the operator would interpret it.
fn read(file: &Path, payload: &Payload) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let documents = yaml::documents(&text, Dialect::Text).map_err(anyhow::Error::msg)?;
    let documents: Result<Vec<Value>, _> = documents.iter().map(|one| one.to_json(Dialect::Text)).collect();
    let documents = documents.map_err(anyhow::Error::msg)?;
    let found = documents.into_iter().find(|one| one["kind"] == "ClusterConfiguration");
    let object = found.with_context(|| format!("{} has no ClusterConfiguration", file.display()))?;
    let mut spec = object["spec"].clone();
    spec::migrate(&mut spec);
    let problems = spec::check(&spec, &payload.known_paths());
    for key in &problems.unknown {
        eprint(&format!("warning: nothing reads {key}"));
    }
    if !problems.wrong.is_empty() {
        bail!("{}: {}", file.display(), problems.wrong.join("\n"));
    }
    Ok(spec::effective(&spec, &object["status"]))
}
