//! From a directory to hooks with their configurations.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use super::process::ask_for_config;
use super::{Hook, Limiter, discover};
use crate::config::HookConfig;

/// How long a hook may take to print its configuration.
const CONFIG_TIMEOUT: Duration = Duration::from_secs(30);
/// Hooks that are asked at the same time.
const AT_ONCE: usize = 16;

/// Why hooks could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The directory cannot be read.
    #[error("cannot read the hooks directory {}: {why}\nhint: set --hooks-dir or SHELL_OPERATOR_HOOKS_DIR", .dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// Some hooks are wrong; each with its name and what is wrong with it.
    #[error("{}", .0.join("\n"))]
    Hooks(Vec<String>),
}

/// Finds the hooks in `dir` and asks all of them for their configurations.
///
/// The hooks are sorted by path. Warnings go to the log. All hooks that are wrong are reported together.
pub async fn load_all(dir: &Path) -> Result<Vec<Arc<Hook>>, LoadError> {
    let fail = |why| LoadError::Directory { dir: dir.to_owned(), why };
    let dir = std::path::absolute(dir).map_err(fail)?;
    let found = discover(&dir).map_err(fail)?;
    for warning in &found.warnings {
        tracing::warn!("{warning}");
    }
    let loads = found.hooks.into_iter().map(|path| load(path, &dir));
    let results: Vec<Result<Hook, String>> = futures::stream::iter(loads).buffered(AT_ONCE).collect().await;
    let (mut hooks, mut problems) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(hook) => hooks.push(Arc::new(hook)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(hooks) } else { Err(LoadError::Hooks(problems)) }
}

async fn load(path: PathBuf, dir: &Path) -> Result<Hook, String> {
    let name: Arc<str> = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().into();
    let output = ask_for_config(&path, dir, CONFIG_TIMEOUT)
        .await
        .map_err(|why| format!("load hook '{name}': {why}"))?;
    let config = HookConfig::parse(&output).map_err(|error| {
        format!("load hook '{name}' config: {error}\nthe hook printed:\n{}", short(&output))
    })?;
    for warning in &config.warnings {
        tracing::warn!(hook = &*name, "hook config: {warning}");
    }
    tracing::info!(hook = &*name, phase = "config", value = config.summary(), "Loaded config");
    let limiter = Limiter::new(config.settings.execution_min_interval, config.settings.execution_burst);
    Ok(Hook { name, path, config, limiter })
}

fn short(output: &str) -> String {
    let text: String = output.trim_end().chars().take(2000).collect();
    if text.is_empty() { "(nothing)".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn write(dir: &Path, name: &str, text: &str) {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[tokio::test]
    async fn hooks_are_loaded_in_the_order_of_their_paths() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.sh", "a/x.sh", "c.sh"] {
            write(dir.path(), name, "#!/bin/sh\necho '{\"configVersion\":\"v1\",\"onStartup\":1}'\n");
        }
        let hooks = load_all(dir.path()).await.unwrap();
        let names: Vec<&str> = hooks.iter().map(|hook| &*hook.name).collect();
        assert_eq!(names, ["a/x.sh", "b.sh", "c.sh"]);
    }

    #[tokio::test]
    async fn all_bad_hooks_are_reported_together() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "bad-config", "#!/bin/sh\necho 'configVersion: v1\nnope: 1'\n");
        write(dir.path(), "fails", "#!/bin/sh\necho why >&2; exit 4\n");
        write(dir.path(), "no-shebang", "echo\n");
        write(dir.path(), "good", "#!/bin/sh\necho 'onStartup: 1'\n");
        let error = load_all(dir.path()).await.unwrap_err().to_string();
        for expected in
            ["'bad-config' config: nope: is a forbidden", "'fails'", "stderr: why", "'no-shebang'"]
        {
            assert!(error.contains(expected), "{expected} missing in:\n{error}");
        }
        assert!(!error.contains("'good'"));
    }
}
