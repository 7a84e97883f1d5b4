//! A hook's file as it was when the hook was loaded.
//!
//! [`Stamp`] detects with one system call that a file may have been replaced. [`Source`] knows the contents that were loaded and
//! keeps a copy. So a hook stays as it was until the current files are taken over, or for as long as they cannot be because one
//! of them is wrong.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::{discover, safe_name};

/// Largest file of which a copy is kept, in bytes: scripts are small, and the directory may be in memory.
const LARGEST_COPY: u64 = 1 << 20;

/// The properties that change with a file: its identity (links are followed), its size and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    /// Changes with the mode as well.
    changed: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            file: (meta.dev(), meta.ino()),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// The stamps of all hooks of a directory.
pub type Stamps = BTreeMap<PathBuf, Stamp>;

/// Looks at the hooks of `dir` without reading them.
pub fn stamps(dir: &Path) -> io::Result<Stamps> {
    let mut stamps = Stamps::new();
    for path in discover(dir)?.hooks {
        // A file that was deleted meanwhile is no hook any more.
        if let Ok(meta) = fs::metadata(&path) {
            stamps.insert(path, Stamp::of(&meta));
        }
    }
    Ok(stamps)
}

/// The file of a loaded hook.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    digest: [u8; 32],
    /// The stamp of the file when it was last seen to have these contents.
    stamp: Mutex<Stamp>,
    copy: Option<Copy>,
}

/// A file of our own; it is removed with this value.
#[derive(Debug)]
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        // It may have been removed with its directory.
        let _ = fs::remove_file(&self.0);
    }
}

impl Source {
    /// Reads the file at `path` and puts a copy into `copies`, a directory of our own.
    pub(super) fn read(path: &Path, name: &str, copies: Option<&Path>) -> io::Result<Self> {
        // The stamp first: a change after it is seen as one.
        let stamp = Stamp::of(&fs::metadata(path)?);
        let mut hasher = Sha256::new();
        io::copy(&mut fs::File::open(path)?, &mut HashWriter(&mut hasher))?;
        let digest: [u8; 32] = hasher.finalize().into();
        let small = stamp.size <= LARGEST_COPY;
        let copy = copies.filter(|_| small).map(|dir| keep(path, dir, name)).transpose()?;
        Ok(Self { path: path.to_owned(), digest, stamp: Mutex::new(stamp), copy })
    }

    /// The stamp of the file when it was last seen with these contents.
    pub fn stamp(&self) -> Stamp {
        self.stamp.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether `other` has the same contents; if so, its stamp is taken over.
    pub(super) fn take_stamp_of(&self, other: &Self) -> bool {
        let same = self.digest == other.digest;
        if same {
            *self.stamp.lock().unwrap_or_else(PoisonError::into_inner) = other.stamp();
        }
        same
    }

    /// Whether the file is still the loaded one, according to its stamp.
    pub(super) fn is_current(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|meta| Stamp::of(&meta) == self.stamp())
    }

    /// The program to run: the file, or its copy when another file has replaced it.
    pub fn program(&self) -> &Path {
        match &self.copy {
            Some(Copy(copy)) if !self.is_current() => copy,
            _ => &self.path,
        }
    }
}

struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn keep(path: &Path, dir: &Path, name: &str) -> io::Result<Copy> {
    // Another version of the hook may have its copy there.
    let file = tempfile::Builder::new().prefix(&format!("{}-", safe_name(name))).tempfile_in(dir)?;
    let copy = file.into_temp_path().keep().map_err(|error| error.error)?;
    let copy = Copy(copy);
    fs::copy(path, &copy.0)?;
    fs::set_permissions(&copy.0, fs::Permissions::from_mode(0o700))?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn stamps_tell_new_gone_and_changed_files_bits_and_swapped_links() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        for version in ["..1", "..2"] {
            fs::create_dir(file(version)).unwrap();
            write(&file(version).join("linked"), "#!/bin/sh\n");
        }
        std::os::unix::fs::symlink("..1", file("..data")).unwrap();
        std::os::unix::fs::symlink("..data/linked", file("linked")).unwrap();
        write(&file("plain"), "#!/bin/sh\n");
        let mut seen = vec![stamps(dir.path()).unwrap()];
        let mut changed = |what: &str| {
            let now = stamps(dir.path()).unwrap();
            assert!(!seen.contains(&now), "{what}");
            seen.push(now);
        };
        write(&file("new"), "#!/bin/sh\n");
        changed("a new file");
        fs::remove_file(file("new")).unwrap();
        write(&file("plain"), "#!/bin/sh\n#\n");
        changed("other contents");
        fs::set_permissions(file("plain"), fs::Permissions::from_mode(0o644)).unwrap();
        changed("no hook any more");
        std::os::unix::fs::symlink("..2", file("..data_tmp")).unwrap();
        fs::rename(file("..data_tmp"), file("..data")).unwrap();
        changed("a swapped link");
        assert_eq!(stamps(dir.path()).unwrap(), seen[4], "nothing changed");
    }

    #[test]
    fn what_was_loaded_is_run_though_there_is_another_file() {
        let (dir, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = dir.path().join("h");
        write(&path, "old");
        let source = Source::read(&path, "a/h", Some(copies.path())).unwrap();
        assert_eq!(source.program(), path);
        write(&path, "new");
        assert_eq!(fs::read_to_string(source.program()).unwrap(), "old");
        fs::remove_file(&path).unwrap();
        assert_eq!(fs::read_to_string(source.program()).unwrap(), "old");
        write(&path, "old");
        assert!(source.take_stamp_of(&Source::read(&path, "a/h", None).unwrap()));
        assert_eq!(source.program(), path, "the same contents again");
        drop(source);
        assert_eq!(fs::read_dir(copies.path()).unwrap().count(), 0);
    }
}
