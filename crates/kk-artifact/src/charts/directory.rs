//! Packs the directory of a chart: the same content always results in the same bytes.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::archive::{self, Identity, LARGEST_UNPACKED};
use super::ignore::Ignore;

/// The files of a chart, by their paths below its directory.
type Files = Vec<(String, u64)>;

/// The packed chart. Errors state why the directory is not a chart.
pub(super) fn pack(dir: &Path) -> Result<(Identity, Vec<u8>), String> {
    let text = fs::read_to_string(dir.join("Chart.yaml"))
        .map_err(|error| format!("its Chart.yaml cannot be read: {error}"))?;
    let (identity, needs) = archive::parse(&text)?;
    let ignore = match fs::read_to_string(dir.join(".helmignore")) {
        Ok(text) => Ignore::parse(&text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ignore::parse("")?,
        Err(error) => return Err(format!("its .helmignore cannot be read: {error}")),
    };
    let mut files = Files::new();
    list(dir, "", &ignore, &mut files)?;
    // Helm reads `Chart.yaml` first.
    files.sort_by(|(a, _), (b, _)| (a != "Chart.yaml", a).cmp(&(b != "Chart.yaml", b)));
    if files.first().is_none_or(|(path, _)| path != "Chart.yaml") {
        return Err("its .helmignore leaves out its Chart.yaml".to_owned());
    }
    if files.iter().map(|(_, size)| size).sum::<u64>() > LARGEST_UNPACKED {
        return Err(format!("it has more than {} MiB, which helm does not install", LARGEST_UNPACKED >> 20));
    }
    let lacking: Vec<String> = needs.into_iter().filter(|name| !is_there(name, &files)).collect();
    if !lacking.is_empty() {
        return Err(format!(
            "it depends on {}, which its directory charts lacks: `helm dependency build` fetches it",
            lacking.join(", ")
        ));
    }
    let packed = write(dir, &identity.name, &files).map_err(|error| error.to_string())?;
    Ok((identity, packed))
}

/// Whether a dependency is present in `charts`, packed or not.
fn is_there(name: &str, files: &Files) -> bool {
    // `redis-cluster-1.0.0.tgz` is not a version of redis.
    let is_packed = |rest: &str| {
        let version = rest.strip_prefix('-').and_then(|rest| rest.strip_suffix(".tgz"));
        version.is_some_and(|version| {
            version.strip_prefix('v').unwrap_or(version).starts_with(|first: char| first.is_ascii_digit())
        })
    };
    files.iter().any(|(path, _)| {
        let rest = path.strip_prefix("charts/").and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest == "/Chart.yaml" || is_packed(rest))
    })
}

fn list(dir: &Path, below: &str, ignore: &Ignore, files: &mut Files) -> Result<(), String> {
    let wrong = |error: io::Error| format!("it cannot be read: {error}");
    for entry in fs::read_dir(dir.join(below)).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name();
        let name = name.to_str().ok_or("the name of one of its files is not UTF-8")?;
        let path = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
        let kind = entry.file_type().map_err(wrong)?;
        if ignore.leaves_out(&path, kind.is_dir()) {
            continue;
        }
        if kind.is_dir() {
            list(dir, &path, ignore, files)?;
        } else if kind.is_file() {
            files.push((path, entry.metadata().map_err(wrong)?.len()));
        } else {
            return Err(format!("{path} is neither a file nor a directory"));
        }
    }
    Ok(())
}

fn write(dir: &Path, name: &str, files: &Files) -> io::Result<Vec<u8>> {
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (path, size) in files {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_size(*size);
        let file = File::open(dir.join(path))?;
        tar.append_data(&mut header, format!("{name}/{path}"), io::Read::take(file, *size))?;
    }
    tar.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_whose_name_only_begins_so_is_another_one() {
        for (path, there) in [
            ("charts/redis/Chart.yaml", true),
            ("charts/redis-1.0.0.tgz", true),
            ("charts/redis-v1.0.0.tgz", true),
            ("charts/redis-cluster-1.0.0.tgz", false),
            ("charts/redis-vault-1.0.0.tgz", false),
            ("charts/redis-cluster/Chart.yaml", false),
            ("charts/redis-1.0.0.zip", false),
            ("redis-1.0.0.tgz", false),
        ] {
            assert_eq!(is_there("redis", &vec![(path.to_owned(), 1)]), there, "{path}");
        }
    }
}
