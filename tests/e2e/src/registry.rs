//! Registries of a test's own: a copy of the lab's registry, from which the test may remove images, and an empty one to push
//! into.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};
use kk_test_common::empty;
use serde_json::{Value, json};

use crate::context::Context;
use crate::lab::Lab;
use crate::process::{Job, Running};

/// The lab's own registry listens on 5000.
const PORT: u16 = 5001;

/// The user of the empty registry, and the password.
pub(crate) const USER: (&str, &str) = ("lab", "lab-registry");
/// The same for the registry: bcrypt with few rounds, because every request checks the password.
const PASSWORDS: &str = "lab:$2b$05$G2odEzYCKZVD2ZOGlwJfT.9cV6Sw6hazF3AL9SuUsM1KJvDnkFt1W\n";

/// A registry that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Registry {
    storage: PathBuf,
    _server: Running,
}

impl Registry {
    /// Copies the content of the lab's registry (by hard links) and serves it on another port with the same certificate.
    pub(crate) fn copy(ctx: &Context<'_>) -> Result<Self> {
        let original = lab_registry(ctx.tools.lab)?;
        let dir = ctx.dir.join("registry");
        empty(&dir)?;
        let storage = dir.join("storage");
        ctx.run("copy-registry", Job::new("cp").args(["-al"]).args([&original.storage, &storage]))?.ok()?;
        let mut config = original.config()?;
        config["storage"]["filesystem"]["rootdirectory"] = json!(storage);
        Self::serve(ctx, &dir, storage, &config, &original.program)
    }

    /// An empty one, which takes images from [`USER`] only.
    pub(crate) fn empty(ctx: &Context<'_>) -> Result<Self> {
        let original = lab_registry(ctx.tools.lab)?;
        let dir = ctx.dir.join("registry");
        empty(&dir)?;
        let (storage, passwords) = (dir.join("storage"), dir.join("htpasswd"));
        fs::create_dir(&storage)?;
        fs::write(&passwords, PASSWORDS)?;
        let mut config = original.config()?;
        config["storage"] = json!({"filesystem": {"rootdirectory": storage}});
        config["auth"] = json!({"htpasswd": {"realm": "lab", "path": passwords}});
        Self::serve(ctx, &dir, storage, &config, &original.program)
    }

    fn serve(
        ctx: &Context<'_>,
        dir: &Path,
        storage: PathBuf,
        config: &Value,
        program: &Path,
    ) -> Result<Self> {
        let file = dir.join("config.yaml");
        let mut config = config.clone();
        config["http"]["addr"] = json!(Self::address());
        // JSON is YAML.
        fs::write(&file, config.to_string())?;
        let program = program.to_string_lossy().into_owned();
        let job = ctx.enter(&[&program, "serve"]).args([&file]).limit(Duration::from_hours(1));
        let mut server = ctx.start("registry", job)?;
        let probe = format!("exec 3<>/dev/tcp/172.30.0.1/{PORT}");
        ctx.until("the registry answers", Duration::from_secs(20), || {
            ensure!(!server.has_ended()?, "the registry ended at once");
            Ok(Some(()).filter(|()| {
                ctx.run("probe", ctx.enter(&["bash", "-c", &probe])).is_ok_and(|done| done.code == Some(0))
            }))
        })?;
        Ok(Self { storage, _server: server })
    }

    /// The complete blobs that it holds, each with the time of its arrival.
    pub(crate) fn blobs(&self) -> Result<BTreeMap<PathBuf, SystemTime>> {
        let files = crate::site::files_below(&self.storage.join("docker/registry/v2/blobs"));
        let whole = files.into_iter().filter(|file| file.ends_with("data"));
        whole.map(|file| Ok((file.clone(), fs::metadata(&file)?.modified()?))).collect()
    }

    /// Errors: there is no blob, or a blob does not match its digest.
    pub(crate) fn expect_whole(&self, ctx: &Context<'_>) -> Result<()> {
        let script = "for blob in sha256/*/*; do
                          [ ! -e $blob/data ] || [ \"$(sha256sum <$blob/data)\" = \"${blob##*/}  -\" ] || echo $blob
                      done";
        let blobs = self.storage.join("docker/registry/v2/blobs");
        ensure!(!self.blobs()?.is_empty(), "the registry holds nothing");
        let damaged = ctx.run("verify", Job::new("sh").args(["-euc", script]).directory(&blobs))?.ok()?;
        ensure!(damaged.is_empty(), "blobs of the registry are damaged:\n{damaged}");
        Ok(())
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

    /// Removes all tags of an image; its layers stay.
    pub(crate) fn forget(&self, repository: &str) -> Result<()> {
        let tags =
            self.storage.join("docker/registry/v2/repositories").join(repository).join("_manifests/tags");
        fs::remove_dir_all(&tags)
            .with_context(|| format!("the registry has no image {repository}: {}", tags.display()))
    }
}

/// The digest that a tag of the lab's registry names.
pub(crate) fn digest_of(lab: Lab, repository: &str, tag: &str) -> Result<String> {
    let link = lab_registry(lab)?.storage.join(link_of(repository, tag));
    fs::read_to_string(&link).with_context(|| format!("cannot read {}", link.display()))
}

/// Whether the lab's registry has this tag of an image.
pub(crate) fn holds(lab: Lab, repository: &str, tag: &str) -> Result<bool> {
    Ok(lab_registry(lab)?.storage.join(link_of(repository, tag)).exists())
}

/// The file that contains the digest of a tag.
fn link_of(repository: &str, tag: &str) -> String {
    format!("docker/registry/v2/repositories/{repository}/_manifests/tags/{tag}/current/link")
}

struct Original {
    program: PathBuf,
    config: String,
    storage: PathBuf,
}

impl Original {
    fn config(&self) -> Result<Value> {
        serde_saphyr::from_str(&self.config).context("the registry's configuration is no YAML")
    }
}

/// How the lab runs its registry, read from the running process.
fn lab_registry(lab: Lab) -> Result<Original> {
    let config_file = &lab.state("registry.yaml");
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
