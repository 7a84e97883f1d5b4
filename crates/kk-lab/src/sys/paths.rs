//! Where things are: the cache (kept, reused by every lab), the state (everything of the running lab, removed by
//! `down`) and the data of the checkout (versions, Go modules).

use std::fs::{File, create_dir_all};
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, Result};

use crate::sys::{instance, say};

/// The directories a command works with.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    /// Programs, root file system, mirror and registry: `$KK_LAB_CACHE`, else `kk-lab` in the user's cache directory.
    pub(crate) cache: PathBuf,
    /// `tests/lab` of the checkout this program was built from, or `$KK_LAB_DATA`.
    pub(crate) data: PathBuf,
}

impl Paths {
    /// Reads the environment. Errors: no home directory and no `KK_LAB_CACHE`.
    pub(crate) fn from_env() -> Result<Self> {
        let dir = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = dir("KK_LAB_CACHE")
            .or_else(|| dir("XDG_CACHE_HOME").map(|base| base.join("kk-lab")))
            .or_else(|| dir("HOME").map(|home| home.join(".cache/kk-lab")))
            .context("no place for the cache: set KK_LAB_CACHE, XDG_CACHE_HOME or HOME")?;
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lab");
        // Go and the hosts get these paths from other directories.
        Ok(Self { cache: absolute(cache)?, data: absolute(dir("KK_LAB_DATA").unwrap_or(checkout))? })
    }

    /// Files that the mirror serves; the layout is upstream's, with the host name as the first directory.
    pub(crate) fn mirror(&self) -> PathBuf {
        self.cache.join("mirror")
    }

    /// Storage of docker-registry.
    pub(crate) fn registry(&self) -> PathBuf {
        self.cache.join("registry")
    }

    /// Finished programs, a directory for each set of sources.
    pub(crate) fn programs(&self) -> PathBuf {
        self.cache.join("programs")
    }

    /// Root file systems, a directory for each recipe.
    pub(crate) fn rootfs(&self) -> PathBuf {
        self.cache.join("rootfs")
    }

    /// Records of the contents of mirror and registry, and of their sources.
    pub(crate) fn published(&self) -> PathBuf {
        self.cache.join("published")
    }

    /// Unfinished files and directories. They may be removed whenever no build runs.
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.cache.join("unfinished")
    }

    /// Waits until no other kk-lab works on the same part of this cache; held until the file is dropped.
    pub(crate) fn lock(&self, part: &str) -> Result<File> {
        lock(&self.lock_file(part)?)
    }

    /// The same without waiting: `None` while another kk-lab works on it.
    pub(crate) fn try_lock(&self, part: &str) -> Result<Option<File>> {
        let file = open(&self.lock_file(part)?)?;
        Ok(file.try_lock().is_ok().then_some(file))
    }

    fn lock_file(&self, part: &str) -> Result<PathBuf> {
        create_dir_all(&self.cache).with_context(|| format!("cannot create {}", self.cache.display()))?;
        Ok(self.cache.join(format!("{part}.lock")))
    }
}

/// Waits until no other kk-lab boots or ends hosts of the same lab, whatever its cache.
pub(crate) fn lock_lab() -> Result<File> {
    lock(&Path::new("/run").join(format!("{}.lock", instance::label())))
}

/// Waits until no lab of this machine changes a setting of the machine that all labs share.
pub(crate) fn lock_machine() -> Result<File> {
    lock(Path::new("/run/kk-lab-machine.lock"))
}

/// The kernel releases the lock when its owner ends, however that happens; the file itself has no meaning.
fn lock(path: &Path) -> Result<File> {
    let file = open(path)?;
    if file.try_lock().is_err() {
        say::progress(&format!("waiting for another kk-lab ({})", path.display()));
        file.lock()?;
    }
    Ok(file)
}

fn open(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot open {}", path.display()))
}

/// A path inside the state directory.
pub(crate) fn state(name: &str) -> PathBuf {
    instance::state_directory().join(name)
}
