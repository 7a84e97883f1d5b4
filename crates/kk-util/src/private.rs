//! Creates files and directories that only their owner can read, from their first byte on.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

/// Creates a directory, 0700, and its missing parents.
///
/// # Errors
/// The directory cannot be created.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a file to append to, and to read. If it does not exist, it is created, 0600.
///
/// # Errors
/// The file cannot be opened.
pub fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// Writes a file, 0600: completely and synced to the disk, or not at all.
///
/// # Errors
/// The file cannot be written; the previous file is unchanged.
pub fn write_private(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".new-{}", std::process::id()));
    // A leftover of a killed process with the same id must not be opened with wider permissions.
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(content.as_ref())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&new, path))
        .inspect_err(|_| {
            let _ = fs::remove_file(&new);
        })
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_can_read_what_is_made() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("a/b");
        create_private_directory(&directory).unwrap();
        create_private_directory(&directory).unwrap();
        assert_eq!((mode(&directory), mode(&home.path().join("a"))), (0o700, 0o700));
        let file = directory.join("log");
        open_private(&file).unwrap().write_all(b"one").unwrap();
        let mut again = open_private(&file).unwrap();
        again.write_all(b" two").unwrap();
        let mut text = String::new();
        File::open(&file).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), mode(&file)), ("one two", 0o600));
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("key.pem");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write_private(&path, "new").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("new", 0o600));
        // A directory at this path cannot be replaced; no temporary file is left next to it.
        let taken = home.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(write_private(&taken, "x").is_err());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
    }
}
