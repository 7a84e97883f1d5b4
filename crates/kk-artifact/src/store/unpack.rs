//! Extracts binaries from a verified archive.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component as PathComponent, Path, PathBuf};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use super::LocalFile;
use crate::artifact::Content;
use crate::hashing::Hashing;
use crate::{Error, Sha256Sum};

/// Every file in a store is a binary.
pub(super) const PROGRAM_MODE: u32 = 0o755;

/// Writes the wanted members of a `.tar.gz` into a directory, each completely or not at all.
///
/// No path of the archive is ever used as a path on the disk: a file is named by the catalogue, or by a member's name without
/// directories.
pub(super) fn unpack(archive: &Path, wanted: &Content, dir: &Path) -> Result<Vec<LocalFile>, Error> {
    let wrong = |reason: String| Error::Unpack { archive: archive.to_owned(), reason };
    fs::create_dir_all(dir).map_err(Error::file("make", dir))?;
    let file = File::open(archive).map_err(Error::file("open", archive))?;
    let mut reader = Archive::new(GzDecoder::new(io::BufReader::new(file)));
    let mut programs: Vec<LocalFile> = Vec::new();
    for member in reader.entries().map_err(|e| wrong(e.to_string()))? {
        let mut member = member.map_err(|e| wrong(e.to_string()))?;
        let Some(name) = program_name(&member, wanted).map_err(|e| wrong(e.to_string()))? else { continue };
        if member.header().entry_type() != EntryType::Regular {
            return Err(wrong(format!("{name} is not a file")));
        }
        if programs.iter().any(|program| program.name == name) {
            return Err(wrong(format!("{name} is there twice")));
        }
        programs.push(write(&mut member, dir, name).map_err(|(path, e)| Error::file("unpack", &path)(e))?);
    }
    match missing(wanted, &programs) {
        missing if missing.is_empty() => Ok(programs),
        missing => Err(wrong(format!("{} is not in it", missing.join(", ")))),
    }
}

/// The name under which a member is wanted, if it is wanted.
fn program_name<R: Read>(member: &tar::Entry<'_, R>, wanted: &Content) -> io::Result<Option<String>> {
    let path = member.path()?;
    let path = path.strip_prefix(".").unwrap_or(&path);
    Ok(match wanted {
        Content::Program(_) => None,
        Content::Members(members) => {
            members.iter().find(|(wanted, _)| Path::new(wanted) == path).map(|(_, name)| name.clone())
        }
        Content::Executables => {
            let mut parts = path.components();
            let executable =
                member.header().entry_type() == EntryType::Regular && member.header().mode()? & 0o111 != 0;
            match (parts.next(), parts.next()) {
                (Some(PathComponent::Normal(name)), None) if executable => name.to_str().map(str::to_owned),
                _ => None,
            }
        }
    })
}

/// Writes a file completely or not at all. Errors contain the path that they concern.
fn write(member: impl Read, dir: &Path, name: String) -> Result<LocalFile, (PathBuf, io::Error)> {
    let path = dir.join(&name);
    let part = dir.join(format!(".{name}.part"));
    let written = write_part(member, &part).and_then(|written| {
        fs::rename(&part, &path)?;
        Ok(written)
    });
    match written {
        Ok((sha256, size)) => {
            Ok(LocalFile { name, path, sha256: sha256.to_string(), size, mode: PROGRAM_MODE })
        }
        Err(error) => {
            // The error is reported; a partial file that cannot be removed either is overwritten next time.
            let _ = fs::remove_file(&part);
            Err((path, error))
        }
    }
}

fn write_part(member: impl Read, part: &Path) -> io::Result<(Sha256Sum, u64)> {
    let mut writer = Hashing::new(File::create(part)?);
    writer.copy_from(member)?;
    let (sum, size, file) = writer.finish();
    file.set_permissions(Permissions::from_mode(PROGRAM_MODE))?;
    file.sync_all()?;
    Ok((sum, size))
}

fn missing<'a>(wanted: &'a Content, programs: &[LocalFile]) -> Vec<&'a str> {
    match wanted {
        Content::Members(members) => members
            .iter()
            .filter(|(_, name)| !programs.iter().any(|program| program.name == *name))
            .map(|(path, _)| path.as_str())
            .collect(),
        Content::Executables if programs.is_empty() => vec!["any program"],
        _ => Vec::new(),
    }
}
