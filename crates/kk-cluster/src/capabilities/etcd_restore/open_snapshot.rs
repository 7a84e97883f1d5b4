//! Opens a snapshot in a file of the control machine.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
    time::SystemTime,
};

use sha2::{Digest as _, Sha256};

use super::{Snapshot, content};
use crate::base::error::BuildError;

impl Snapshot {
    /// Reads a file of the control machine.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(path: &Path) -> Result<Self, BuildError> {
        let cannot = |error: io::Error| {
            BuildError::config(
                format!("cannot read the snapshot {}: {error}", path.display()),
                "specify a file that kk etcd snapshot or etcdctl snapshot save has written",
            )
        };
        let mut file = File::open(path).map_err(cannot)?;
        let data = file.metadata().map_err(cannot)?;
        let sum = sum(&mut file, data.len()).map_err(cannot)?;
        let content = content::read(&file, data.len()).map_err(cannot)?;
        let written = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let written = time::OffsetDateTime::from(written)
            .replace_nanosecond(0)
            .unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
        let time = written.format(&time::format_description::well_known::Rfc3339).unwrap_or_default();
        let time = taken_at(path).unwrap_or_else(|| format!("a file written at {time}"));
        Ok(Self { path: path.to_owned(), sha256: sum, time, content })
    }
}

/// The SHA-256 of the file. The file ends with the SHA-256 of the bytes before it (etcd, `etcdutl/snapshot/v3_snapshot.go`).
fn sum(file: &mut File, size: u64) -> io::Result<String> {
    let mut body = size.saturating_sub(content::CHECKSUM);
    let (mut all, mut before, mut end) = (Sha256::new(), Sha256::new(), Vec::new());
    let mut part = vec![0; 1 << 20];
    loop {
        let length = file.read(&mut part)?;
        if length == 0 {
            break;
        }
        let read = &part[..length];
        let (of_body, rest) = read.split_at(usize::try_from(body).map_or(length, |body| body.min(length)));
        all.update(read);
        before.update(of_body);
        end.extend_from_slice(rest);
        body -= of_body.len() as u64;
    }
    if before.finalize().as_slice() != end {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is cut off or damaged: it does not end with the SHA-256 of its content",
        ));
    }
    Ok(kk_util::hex(all.finalize()))
}

/// The time in the name of a backup: `…snapshot-20260801T020000Z.db`. The modification time of the file is the time when it was
/// copied.
pub(super) fn taken_at(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_str()?;
    let (_, time) = name.rsplit_once("snapshot-")?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (day, rest) = time.split_at_checked(8)?;
    let clock = rest.strip_prefix('T')?.strip_suffix('Z')?;
    (digits(day) && digits(clock) && clock.len() == 6).then(|| {
        format!(
            "{}-{}-{} {}:{}:{} UTC",
            &day[..4],
            &day[4..6],
            &day[6..],
            &clock[..2],
            &clock[2..4],
            &clock[4..]
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_that_is_cut_off_is_refused_and_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let whole = concat!(env!("CARGO_MANIFEST_DIR"), "/src/capabilities/etcd_restore/content/snapshot.db");
        assert!(Snapshot::open(whole.as_ref()).unwrap().content.is_kubernetes);
        let bytes = std::fs::read(whole).unwrap();
        for length in [0, 31, bytes.len() / 2, bytes.len() - 32, bytes.len() - 1] {
            let cut = directory.path().join("cut.db");
            std::fs::write(&cut, &bytes[..length]).unwrap();
            let error = Snapshot::open(&cut).unwrap_err().to_string();
            assert!(error.contains("it is cut off or damaged"), "{length}: {error}");
        }
    }

    #[test]
    fn the_time_of_a_backup_is_in_its_name() {
        for (name, time) in [
            ("node1-snapshot-20260801T020059Z.db", Some("2026-08-01 02:00:59 UTC")),
            ("/a/snapshot-20260801T020059Z.db", Some("2026-08-01 02:00:59 UTC")),
            ("snapshot.db", None),
            ("snapshot-2026.db", None),
            ("snapshot-20260801T0200Z.db", None),
            ("mine.db", None),
        ] {
            assert_eq!(taken_at(Path::new(name)).as_deref(), time, "{name}");
        }
    }
}
