//! The files a run reads and writes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::safe_name;

/// Paths of one run's files. They are removed when this is dropped, unless they are to be kept.
#[derive(Debug)]
pub struct RunFiles {
    /// `$BINDING_CONTEXT_PATH`
    pub context: PathBuf,
    /// `$METRICS_PATH`
    pub metrics: PathBuf,
    /// `$KUBERNETES_PATCH_PATH`
    pub patch: PathBuf,
    /// `$VALIDATING_RESPONSE_PATH` and `$ADMISSION_RESPONSE_PATH`
    pub admission: PathBuf,
    /// `$CONVERSION_RESPONSE_PATH`
    pub conversion: PathBuf,
    keep: bool,
}

impl RunFiles {
    /// Creates empty files for a run of `hook` in `dir` and hands over the context file to be written.
    ///
    /// Contexts and patches may hold Secrets, so only the operator's user may read them.
    pub fn create(dir: &Path, hook: &str, keep: bool) -> io::Result<(Self, BufWriter<File>)> {
        let (hook, id) = (safe_name(hook), unique());
        let path = |what: &str| dir.join(format!("hook-{hook}-{what}-{id}.json"));
        let files = Self {
            context: path("binding-context"),
            metrics: path("metrics"),
            patch: dir.join(format!("{hook}-object-patch-{id}")),
            admission: path("admission-response"),
            conversion: path("conversion-response"),
            keep,
        };
        for path in [&files.metrics, &files.patch, &files.admission, &files.conversion] {
            create(path)?;
        }
        let context = create(&files.context)?;
        Ok((files, BufWriter::new(context)))
    }

    /// The environment of the run.
    pub fn environment(&self) -> [(&'static str, &Path); 6] {
        [
            ("BINDING_CONTEXT_PATH", &self.context),
            ("METRICS_PATH", &self.metrics),
            ("KUBERNETES_PATCH_PATH", &self.patch),
            ("VALIDATING_RESPONSE_PATH", &self.admission),
            ("ADMISSION_RESPONSE_PATH", &self.admission),
            ("CONVERSION_RESPONSE_PATH", &self.conversion),
        ]
    }
}

impl Drop for RunFiles {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        for path in [&self.context, &self.metrics, &self.patch, &self.admission, &self.conversion] {
            // A hook may have removed a file itself.
            let _ = fs::remove_file(path);
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Different for each run of this and of any other process that uses the directory.
fn unique() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let time = jiff::Timestamp::now().as_nanosecond();
    format!("{}-{time}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_exist_during_the_run_and_not_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let (files, _) = RunFiles::create(dir.path(), "a/b.sh", false).unwrap();
        let (other, _) = RunFiles::create(dir.path(), "a/b.sh", true).unwrap();
        let environment = files.environment();
        assert!(environment.iter().all(|(_, path)| path.exists()));
        assert_eq!(environment[3].1, environment[4].1, "both names of the admission response are one file");
        assert_ne!(files.context, other.context);
        drop(files);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5, "those of the other run are kept");
    }

    /// A name of a file has 255 bytes at most, a path 4096.
    #[test]
    fn a_hook_may_have_a_long_path() {
        let dir = tempfile::tempdir().unwrap();
        RunFiles::create(dir.path(), &"directory/".repeat(100), false).unwrap();
    }
}
