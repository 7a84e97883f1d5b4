//! The journal of a run: every event as a line of JSON, for reports and later analysis.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use kk_util::open_private;

use crate::{Event, Listener};

/// Writes `journal.jsonl`. Each line is written to the kernel before the next event is handled. So the journal of a killed run is
/// complete up to that moment.
pub struct Journal {
    path: PathBuf,
    file: File,
    broken: bool,
}

impl Journal {
    /// A journal in the directory of a run.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(run_directory: &Path) -> io::Result<Self> {
        let path = run_directory.join("journal.jsonl");
        Ok(Self { file: open_private(&path)?, path, broken: false })
    }

    /// The path of the journal.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Listener for Journal {
    fn on_event(&mut self, event: &Event) {
        // A full disk of the control machine must not interrupt a run: only the journal ends there.
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        if !self.broken {
            self.broken = self.file.write_all(&line).is_err();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::{EventKind, Outcome};

    #[test]
    fn every_event_is_a_line_that_only_the_owner_reads() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path().join("kubekey/c/runs/1-create");
        kk_util::create_private_directory(&run).unwrap();
        let mut journal = Journal::create(&run).unwrap();
        journal.on_event(&Event {
            at_ms: 1,
            kind: EventKind::Note { host: None, message: "two\nlines".into() },
        });
        journal.on_event(&Event {
            at_ms: 2,
            kind: EventKind::TaskFinished {
                host: "a".into(),
                module: "m".into(),
                task: "t".into(),
                title: "T".into(),
                outcome: Outcome::Unchanged,
                took_ms: 3,
            },
        });
        let text = std::fs::read_to_string(journal.path()).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            lines[0],
            serde_json::json!({"at_ms": 1, "event": "note", "host": null, "message": "two\nlines"})
        );
        assert_eq!(lines[1]["outcome"], "unchanged");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(journal.path()), mode(&run)), (0o600, 0o700));
    }
}
