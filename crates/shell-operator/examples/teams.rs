//! An operator in Rust: every namespace with the label `team` has a `ConfigMap` that names the team.
//!
//! Run it with a kubeconfig: `cargo run --example teams`.

use serde::Deserialize;
use serde_json::{Value, json};
use shell_operator::config::{HookConfig, Kubernetes};
use shell_operator::hook::{Effects, Input};
use shell_operator::operator::{Operator, Settings};

#[derive(Deserialize)]
struct Namespace {
    name: String,
    team: String,
}

/// Selects what matters of a namespace: the hook is run when this changes.
fn team_of(object: &Value) -> Value {
    json!({ "name": object["metadata"]["name"], "team": object["metadata"]["labels"]["team"] })
}

async fn name_teams(input: Input) -> anyhow::Result<Effects> {
    let namespaces: Vec<Namespace> = input.objects("namespaces")?;
    let mut effects = Effects::new();
    for Namespace { name, team } in &namespaces {
        effects.create_or_update(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": "team", "namespace": name },
            "data": { "team": team },
        }));
    }
    Ok(effects)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let with_a_team = json!({ "matchExpressions": [{ "key": "team", "operator": "Exists" }] });
    let namespaces = Kubernetes::new("v1", "Namespace")
        .name("namespaces")
        .key("labelSelector", with_a_team)
        .filter(team_of)
        .include_snapshots_from(&["namespaces"]);
    let config = HookConfig::builder().kubernetes(namespaces).build()?;
    let operator = Operator::builder(Settings::default()).hook("teams", config, name_teams).build().await?;
    Ok(operator.wait().await?)
}
