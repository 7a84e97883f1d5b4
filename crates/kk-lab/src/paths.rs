//! Where things are: the cache (kept, reused by every lab), the state (everything of the running lab, removed by
//! `down`) and the data of the checkout (versions, Go modules).

use std::fs::{File, create_dir_all, remove_dir_all};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::say;

/// Everything of the running lab. A fixed place, so that `down` finds what a crashed lab left without any record.
pub(crate) const STATE: &str = "/var/lib/kk-lab";

/// The folders a command works with.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    /// Programs, root file system, mirror and registry: `$KK_LAB_CACHE`, else `kk-lab` in the user's cache folder.
    pub(crate) cache: PathBuf,
    /// `tests/lab` of the checkout this program was built from, or `$KK_LAB_DATA`.
    pub(crate) data: PathBuf,
}

impl Paths {
    /// Reads the environment. Errors: no home folder and no `KK_LAB_CACHE`.
    pub(crate) fn from_env() -> Result<Self> {
        let dir = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = dir("KK_LAB_CACHE")
            .or_else(|| dir("XDG_CACHE_HOME").map(|base| base.join("kk-lab")))
            .or_else(|| dir("HOME").map(|home| home.join(".cache/kk-lab")))
            .context("no place for the cache: set KK_LAB_CACHE, XDG_CACHE_HOME or HOME")?;
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lab");
        Ok(Self { cache, data: dir("KK_LAB_DATA").unwrap_or(checkout) })
    }

    /// What the mirror serves; its layout is upstream's, with the host name as the first folder.
    pub(crate) fn mirror(&self) -> PathBuf {
        self.cache.join("mirror")
    }

    /// Storage of docker-registry.
    pub(crate) fn registry(&self) -> PathBuf {
        self.cache.join("registry")
    }

    /// Half-finished things; what lies here may be removed at any time that no build runs.
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.cache.join("unfinished")
    }

    /// Waits until no other kk-lab does the same (`build`, or `lab` for hosts); held until the file is dropped.
    pub(crate) fn lock(&self, name: &str) -> Result<File> {
        create_dir_all(&self.cache).with_context(|| format!("cannot create {}", self.cache.display()))?;
        let path = self.cache.join(format!("{name}.lock"));
        let file = File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
        if file.try_lock().is_err() {
            say::progress(&format!("waiting for another kk-lab ({})", path.display()));
            file.lock()?;
        }
        Ok(file)
    }
}

/// A path inside the state folder.
pub(crate) fn state(name: &str) -> PathBuf {
    Path::new(STATE).join(name)
}

/// Removes a folder with all that is in it; one that is not there is as good as removed.
pub(crate) fn remove_if_there(folder: &Path) -> Result<()> {
    match remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}
