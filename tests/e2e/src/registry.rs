//! A copy of the lab's registry from which a test may take images away.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::context::{Context, empty};
use crate::process::{Job, Running};

/// The lab's own registry listens on 5000.
const PORT: u16 = 5001;

/// A registry that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Registry {
    storage: PathBuf,
    _server: Running,
}

impl Registry {
    /// Copies what the lab's registry serves (by hard links) and serves it on another port with the same certificate.
    pub(crate) fn copy(ctx: &Context<'_>) -> Result<Self> {
        let original = lab_registry()?;
        let dir = ctx.dir.join("registry");
        empty(&dir)?;
        let storage = dir.join("storage");
        ctx.run("copy-registry", Job::new("cp").args(["-al"]).args([&original.storage, &storage]))?.ok()?;
        let config = dir.join("config.yaml");
        fs::write(
            &config,
            original
                .config
                .replace(&original.storage.display().to_string(), &storage.display().to_string())
                .replace(":5000", &format!(":{PORT}")),
        )?;
        let program = original.program.to_string_lossy().into_owned();
        let job = ctx.enter(&[&program, "serve"]).args([&config]).limit(Duration::from_hours(1));
        let mut server = ctx.start("registry", job)?;
        let probe = format!("exec 3<>/dev/tcp/172.30.0.1/{PORT}");
        ctx.until("the copied registry answers", Duration::from_secs(20), || {
            ensure!(!server.has_ended()?, "the copied registry ended at once");
            Ok(Some(()).filter(|()| {
                ctx.run("probe", ctx.enter(&["bash", "-c", &probe])).is_ok_and(|done| done.code == Some(0))
            }))
        })?;
        Ok(Self { storage, _server: server })
    }

    /// Where it is, for a cluster file.
    pub(crate) fn address() -> String {
        format!("172.30.0.1:{PORT}")
    }

    /// Lets a cluster file use this registry in place of the lab's.
    pub(crate) fn use_in(cluster: &mut Value) {
        let registry = &mut cluster["spec"]["registry"];
        for mirror in
            registry["remoteMirrors"].as_object_mut().into_iter().flat_map(|mirrors| mirrors.values_mut())
        {
            *mirror = json!({"endpoint": [format!("https://{}", Self::address())]});
        }
        let auths = registry["auths"].as_object().and_then(|auths| auths.values().next().cloned());
        registry["auths"] = json!({ Self::address(): auths });
    }

    /// Takes all tags of an image away; its layers stay.
    pub(crate) fn forget(&self, repository: &str) -> Result<()> {
        let tags =
            self.storage.join("docker/registry/v2/repositories").join(repository).join("_manifests/tags");
        fs::remove_dir_all(&tags)
            .with_context(|| format!("the registry has no image {repository}: {}", tags.display()))
    }
}

struct Original {
    program: PathBuf,
    config: String,
    storage: PathBuf,
}

/// How the lab runs its registry, read from the running process.
fn lab_registry() -> Result<Original> {
    let config_file = Path::new("/var/lib/kk-lab/registry.yaml");
    let config =
        fs::read_to_string(config_file).with_context(|| format!("cannot read {}", config_file.display()))?;
    let parsed: Value = serde_saphyr::from_str(&config).context("the registry's configuration is no YAML")?;
    let storage =
        parsed["storage"]["filesystem"]["rootdirectory"].as_str().context("the registry has no storage")?;
    for entry in fs::read_dir("/proc")?.flatten() {
        let words = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&str> = words.split('\0').collect();
        if words.get(1) == Some(&"serve") && words.get(2).is_some_and(|file| Path::new(file) == config_file) {
            let program = fs::read_link(entry.path().join("exe"))?;
            return Ok(Original { program, storage: storage.into(), config: config.clone() });
        }
    }
    anyhow::bail!("the lab's registry does not run")
}
