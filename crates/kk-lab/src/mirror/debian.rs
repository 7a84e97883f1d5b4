//! Images of Debian packages: a small Debian with these packages, made by mmdebstrap, without files that no program reads.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::base::{self, tree};
use crate::mirror::image::{Files, Source};
use crate::mirror::versions::Build;

/// Where the tree is in the directory of its component.
const ROOT: &str = "root";

/// Directories that are left out of the image.
const LEFT_OUT: [&str; 7] = [
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "var/cache",
    "var/lib/apt/lists",
    "var/log",
];

/// Unpacks the packages of `build`, and what they need, into `directory`.
pub(crate) fn unpack(build: &Build, directory: &Path) -> Result<()> {
    let archive = directory.join("root.tar");
    base::bootstrap(&build.release, &build.packages.join(","), &archive)?;
    tree::unpack(&archive, &directory.join(ROOT))?;
    fs::remove_file(&archive)?;
    Ok(())
}

/// Files and links of the component in `directory`. An image contains these and their directories, and nothing else.
pub(crate) fn files(directory: &Path) -> Result<Files> {
    let mut found = Files::new();
    collect(&directory.join(ROOT), "", &mut found)?;
    Ok(found)
}

fn collect(root: &Path, below: &str, found: &mut Files) -> Result<()> {
    let directory = root.join(below);
    for entry in fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a file name that is no text")?;
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        if LEFT_OUT.contains(&path.as_str()) {
            continue;
        }
        if kind.is_dir() {
            collect(root, &path, found)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path())?;
            let target = target.into_os_string().into_string().ok().context("a link that is no text")?;
            found.insert(path, Source::Link(target));
        } else if kind.is_file() {
            found.insert(path, Source::File(entry.path()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_image_holds_files_and_links_but_no_documentation() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join(ROOT);
        for (path, text) in [("usr/bin/redis-server", "program"), ("usr/share/doc/redis/readme", "words")] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        symlink("usr/bin", root.join("bin")).unwrap();
        let expected = Files::from([
            ("bin".to_owned(), Source::Link("usr/bin".into())),
            ("usr/bin/redis-server".to_owned(), Source::File(root.join("usr/bin/redis-server"))),
        ]);
        assert_eq!(files(directory.path()).unwrap(), expected);
    }
}
