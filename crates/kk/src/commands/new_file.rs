//! Writes a file that the user requested: completely or not at all, and readable only by its owner, who may add passwords to it.

use std::{
    io::{self, Write},
    path::Path,
};

use crate::error::Error;

/// Writes a file completely or not at all, readable only by its owner. An existing file is kept, unless `overwrite` is set.
pub(super) fn write(path: &Path, text: &str, overwrite: bool) -> Result<(), Error> {
    put(path, text, overwrite).map_err(|error| not_written(path, &error))
}

/// Writes next to the target and renames the file, so that a reader never sees half a file and an existing file is not lost.
fn put(path: &Path, text: &str, overwrite: bool) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    if overwrite {
        file.persist(path)?;
    } else {
        file.persist_noclobber(path)?;
    }
    Ok(())
}

fn not_written(path: &Path, error: &io::Error) -> Error {
    let (cause, hint) = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            ("the file exists".into(), Some("name another file, or overwrite it with --yes"))
        }
        io::ErrorKind::NotFound => ("its directory does not exist".into(), None),
        // The crate tempfile adds the name of the temporary file; users know only the target.
        _ => (error.to_string().split(" at path ").take(1).collect(), None),
    };
    Error::Other { doing: format!("write {}", path.display()), cause, hint: hint.map(str::to_owned) }
}
