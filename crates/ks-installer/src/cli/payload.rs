//! Implements `ks-installer payload`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use ks_installer::payload::{Payload, build, build_from};
use ks_installer::render::{Nodes, Renderer};
use ks_installer::rights;

use super::{PayloadArgs, print};

#[derive(Subcommand)]
pub(super) enum PayloadCommand {
    /// Write index.yaml with the SHA-256 of each file into a payload directory, or build the directory from a release
    Build {
        /// The directory
        dir: PathBuf,
        /// Version of the payload
        #[arg(long, value_name = "VERSION")]
        version: String,
        /// Version of KubeSphere in the payload, such as v3.4.1
        #[arg(long, value_name = "VERSION", required_unless_present = "from")]
        kubesphere: Option<String>,
        /// Release to build from, combined with built-in definitions: unpacked ks-installer 3.4.1, or chart ks-core of 4.1.3
        #[arg(long, value_name = "DIR", conflicts_with = "kubesphere")]
        from: Option<PathBuf>,
    },
    /// Print the ClusterRoles that the operator needs for a payload: one to read, one to change
    Rights {
        #[command(flatten)]
        payload: PayloadArgs,
        /// Kubernetes version
        #[arg(long, value_name = "VERSION", default_value = "v1.36.0")]
        kube_version: String,
    },
    /// Check each file of a payload against its index.yaml
    Verify {
        /// The directory
        dir: PathBuf,
    },
}

pub(super) async fn run(command: PayloadCommand) -> anyhow::Result<()> {
    let payload = match command {
        PayloadCommand::Build { dir, version, from: Some(from), .. } => build_from(&from, &dir, &version)?,
        PayloadCommand::Build { dir, version, kubesphere, .. } => {
            build(&dir, &version, &kubesphere.unwrap_or_default())?
        }
        PayloadCommand::Verify { dir } => Payload::open(&dir)?,
        PayloadCommand::Rights { payload, kube_version } => {
            let renderer = Renderer {
                payload: Arc::new(Payload::open(&payload.payload)?),
                helm: payload.helm,
                kubernetes: kube_version,
                nodes: Nodes::default(),
            };
            for role in rights::roles(&renderer).await? {
                // JSON is YAML.
                print(&format!("---\n{role}"));
            }
            return Ok(());
        }
    };
    let components: Vec<&str> = payload.components().keys().map(String::as_str).collect();
    let (version, kubesphere) = (payload.version(), payload.kubesphere());
    print(&format!("payload {version} with KubeSphere {kubesphere}: {}", components.join(", ")));
    Ok(())
}
