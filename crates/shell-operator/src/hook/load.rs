//! From a directory to hooks with their configurations.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tempfile::TempDir;

use super::ask::{ConfigTime, ask_for_config};
use super::{Body, Hook, ProgramFile, Source, discover};
use crate::config::HookConfig;
use crate::limiter::Limiter;

/// How long hooks may take to print their configurations: interpreters need long where CPU time is scarce.
const CONFIG_TIME: ConfigTime =
    ConfigTime { expected: Duration::from_secs(30), longest: Duration::from_mins(10) };

/// Names of directories with copies of hooks begin so.
pub(crate) const COPIES: &str = "shell-operator-hooks-";

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
    /// There is no place for copies of the hooks.
    #[error("cannot keep copies of the hooks in {}: {why}", .dir.display())]
    Copies {
        /// The directory for temporary files.
        dir: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// Some hooks are wrong; each with its name and what is wrong with it.
    #[error("{}", .0.join("\n"))]
    Hooks(Vec<String>),
}

/// Finds the hooks in `dir` and queries their configurations. Nothing is kept of them.
pub async fn load_all(dir: &Path) -> Result<Vec<Arc<Hook>>, LoadError> {
    Loader { dir: absolute(dir)?, copies: None }.load(&[]).await
}

fn absolute(dir: &Path) -> Result<PathBuf, LoadError> {
    std::path::absolute(dir).map_err(|why| LoadError::Directory { dir: dir.to_owned(), why })
}

/// Loads the hooks of a directory, again and again.
#[derive(Debug)]
pub struct Loader {
    dir: PathBuf,
    copies: Option<TempDir>,
}

impl Loader {
    /// For the hooks in `dir`, of which copies are kept in a new directory of `tmp`.
    pub fn with_copies(dir: &Path, tmp: &Path) -> Result<Self, LoadError> {
        let copies = tempfile::Builder::new().prefix(COPIES).tempdir_in(tmp);
        let copies = copies.map_err(|why| LoadError::Copies { dir: tmp.to_owned(), why })?;
        Ok(Self { dir: absolute(dir)?, copies: Some(copies) })
    }

    /// For the hooks in `dir`, which are never loaded again.
    pub fn without_copies(dir: &Path) -> Result<Self, LoadError> {
        Ok(Self { dir: absolute(dir)?, copies: None })
    }

    /// All hooks, sorted by path. Those that are in `known` and have not changed are the same values.
    ///
    /// A hook is queried for its configuration when its file has another stamp. It has changed when its contents or its
    /// configuration have. Warnings are logged. All wrong hooks are reported together.
    pub async fn load(&self, known: &[Arc<Hook>]) -> Result<Vec<Arc<Hook>>, LoadError> {
        let found = discover(&self.dir).map_err(|why| LoadError::Directory { dir: self.dir.clone(), why })?;
        for warning in &found.warnings {
            tracing::warn!("{warning}");
        }
        let loads = found.hooks.into_iter().map(|path| {
            let known = known.iter().find(|hook| hook.program().is_some_and(|program| program.path == path));
            self.load_one(path, known)
        });
        let results: Vec<Result<Arc<Hook>, String>> =
            futures::stream::iter(loads).buffered(at_once()).collect().await;
        let (mut hooks, mut problems) = (Vec::new(), Vec::new());
        for result in results {
            match result {
                Ok(hook) => hooks.push(hook),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(hooks) } else { Err(LoadError::Hooks(problems)) }
    }

    async fn load_one(&self, path: PathBuf, known: Option<&Arc<Hook>>) -> Result<Arc<Hook>, String> {
        let is_current =
            |hook: &&Arc<Hook>| hook.program().is_some_and(|program| program.source.is_current());
        if let Some(hook) = known.filter(is_current) {
            return Ok(hook.clone());
        }
        let hook = self.ask(path).await?;
        let is_same = |known: &Hook| match (known.program(), hook.program()) {
            (Some(old), Some(new)) => known.config == hook.config && old.source.take_stamp_of(&new.source),
            _ => false,
        };
        match known {
            Some(known) if is_same(known) => Ok(known.clone()),
            _ => {
                let value = hook.config.summary();
                tracing::info!(hook = &*hook.name, phase = "config", value, "Loaded config");
                Ok(Arc::new(hook))
            }
        }
    }

    async fn ask(&self, path: PathBuf) -> Result<Hook, String> {
        let name: Arc<str> = path.strip_prefix(&self.dir).unwrap_or(&path).to_string_lossy().into();
        let fail = |why: String| format!("load hook '{name}': {why}");
        let read = {
            let (path, name) = (path.clone(), name.clone());
            let copies = self.copies.as_ref().map(|dir| dir.path().to_owned());
            move || Source::read(&path, &name, copies.as_deref())
        };
        let source = tokio::task::spawn_blocking(read).await.map_err(|panic| fail(panic.to_string()))?;
        let source = source.map_err(|error| fail(format!("cannot read or copy it: {error}")))?;
        let output = ask_for_config(&path, &self.dir, CONFIG_TIME).await.map_err(fail)?;
        let config = HookConfig::parse(&output).map_err(|error| {
            format!("load hook '{name}' config: {error}\nthe hook printed:\n{}", short(&output))
        })?;
        for warning in &config.warnings {
            tracing::warn!(hook = &*name, "hook config: {warning}");
        }
        let limiter = Limiter::new(config.settings.execution_min_interval, config.settings.execution_burst);
        Ok(Hook { name, config, limiter, body: Body::Program(ProgramFile { path, source }) })
    }
}

/// Hooks that are queried at the same time: more than there are cores would only make each of them slower.
fn at_once() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn short(output: &str) -> String {
    let text: String = output.trim_end().chars().take(2000).collect();
    if text.is_empty() { "(nothing)".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::testing::program;

    #[tokio::test]
    async fn hooks_are_loaded_in_the_order_of_their_paths() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.sh", "a/x.sh", "c.sh"] {
            program(dir.path(), name, "#!/bin/sh\necho '{\"configVersion\":\"v1\",\"onStartup\":1}'\n");
        }
        let hooks = load_all(dir.path()).await.unwrap();
        let names: Vec<&str> = hooks.iter().map(|hook| &*hook.name).collect();
        assert_eq!(names, ["a/x.sh", "b.sh", "c.sh"]);
    }

    #[tokio::test]
    async fn all_bad_hooks_are_reported_together() {
        let dir = tempfile::tempdir().unwrap();
        program(dir.path(), "bad-config", "#!/bin/sh\necho 'configVersion: v1\nnope: 1'\n");
        program(dir.path(), "fails", "#!/bin/sh\necho why >&2; exit 4\n");
        program(dir.path(), "no-shebang", "echo\n");
        program(dir.path(), "good", "#!/bin/sh\necho 'onStartup: 1'\n");
        let error = load_all(dir.path()).await.unwrap_err().to_string();
        for expected in
            ["'bad-config' config: nope: is a forbidden", "'fails'", "stderr: why", "'no-shebang'"]
        {
            assert!(error.contains(expected), "{expected} missing in:\n{error}");
        }
        assert!(!error.contains("'good'"));
    }

    #[tokio::test]
    async fn hooks_that_have_not_changed_stay_the_same_values() {
        let (dir, tmp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let text = |order: u32, body: &str| {
            format!(
                "#!/bin/sh\necho asked >> $0.md\necho 'configVersion: v1'; echo 'onStartup: {order}'\n#{body}"
            )
        };
        for name in ["config", "contents", "gone", "same", "touched"] {
            program(dir.path(), name, &text(1, ""));
        }
        let loader = Loader::with_copies(dir.path(), tmp.path()).unwrap();
        let first = loader.load(&[]).await.unwrap();
        program(dir.path(), "config", &text(2, ""));
        program(dir.path(), "contents", &text(1, "other"));
        program(dir.path(), "touched", &text(1, ""));
        program(dir.path(), "new", &text(1, ""));
        std::fs::remove_file(dir.path().join("gone")).unwrap();
        let second = loader.load(&first).await.unwrap();
        let kept = |hook: &&Arc<Hook>| first.iter().any(|known| Arc::ptr_eq(known, hook));
        let names =
            |hooks: Vec<&Arc<Hook>>| hooks.iter().map(|hook| hook.name.to_string()).collect::<Vec<_>>();
        let (same, other): (Vec<_>, Vec<_>) = second.iter().partition(kept);
        assert_eq!(
            (names(same), names(other)),
            (
                vec!["same".to_owned(), "touched".to_owned()],
                vec!["config".to_owned(), "contents".to_owned(), "new".to_owned()],
            )
        );
        let asked = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap().lines().count();
        assert_eq!((asked("same.md"), asked("touched.md")), (1, 2), "only what may have changed is asked");
        program(dir.path(), "same", "#!/bin/sh\nexit 3\n");
        assert!(loader.load(&second).await.is_err());
        let same = second.iter().find(|hook| &*hook.name == "same").unwrap();
        let same = same.program().unwrap();
        assert_ne!(same.source.program(), same.path, "the one that was loaded goes on");
    }
}
