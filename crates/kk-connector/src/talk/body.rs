//! The contents that an upload sends, read from this machine's disk piece by piece.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use tokio::sync::mpsc::UnboundedSender;

use crate::{Error, UploadFile};

/// Files on their way. The host first says which of them it wants.
pub(crate) struct Body {
    files: Vec<Source>,
    /// Files that the host wants, in order; `current` is the one being sent.
    wanted: Vec<usize>,
    current: usize,
    sent: u64,
    go: bool,
    progress: Option<UnboundedSender<u64>>,
}

struct Source {
    path: PathBuf,
    size: u64,
    open: Option<File>,
}

impl Body {
    /// Looks at all sources, so that one that cannot be read is known before anything travels.
    pub(crate) fn new(files: &[UploadFile], progress: Option<UnboundedSender<u64>>) -> Result<Self, Error> {
        let files = files.iter().map(|file| Source::new(&file.source)).collect::<Result<_, _>>()?;
        Ok(Self { files, wanted: Vec::new(), current: 0, sent: 0, go: false, progress })
    }

    /// Size of a file in bytes.
    pub(crate) fn size(&self, index: usize) -> u64 {
        self.files[index].size
    }

    /// Takes a line of the host's script.
    pub(crate) fn heard(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let number = |text: &str| text.parse::<usize>().ok().filter(|n| *n < self.files.len());
        match line.split_once(' ') {
            Some(("want", index)) => self.wanted.extend(number(index)),
            _ => self.go |= line == "go",
        }
    }

    /// Appends up to `most` bytes to `into`; nothing when the host is not ready or everything was sent.
    pub(crate) fn fill(&mut self, into: &mut Vec<u8>, most: usize) -> Result<(), Error> {
        while self.go && into.len() < most {
            let Some(source) = self.wanted.get(self.current).map(|index| &mut self.files[*index]) else {
                break;
            };
            let left = source.size - self.sent;
            if left == 0 {
                source.open = None;
                self.sent = 0;
                self.current += 1;
                continue;
            }
            let space = left.min((most - into.len()) as u64);
            let n = source.read(into, space)?;
            self.sent += n;
        }
        Ok(())
    }

    /// Says that `n` bytes have left.
    pub(crate) fn progress(&self, n: u64) {
        if let Some(progress) = &self.progress {
            // Nobody looking any more is no reason to stop.
            let _ = progress.send(n);
        }
    }
}

impl Source {
    fn new(path: &Path) -> Result<Self, Error> {
        let metadata = File::open(path)
            .and_then(|file| file.metadata())
            .map_err(|error| unreadable(path, &error.to_string()))?;
        if !metadata.is_file() {
            return Err(unreadable(path, "not a regular file"));
        }
        Ok(Self { path: path.to_owned(), size: metadata.len(), open: None })
    }

    /// Reads up to `most` bytes, at least one.
    fn read(&mut self, into: &mut Vec<u8>, most: u64) -> Result<u64, Error> {
        let file = match &mut self.open {
            Some(file) => file,
            none => none
                .insert(File::open(&self.path).map_err(|error| unreadable(&self.path, &error.to_string()))?),
        };
        let n =
            file.take(most).read_to_end(into).map_err(|error| unreadable(&self.path, &error.to_string()))?;
        if n == 0 {
            return Err(unreadable(&self.path, "it became shorter while it was being sent"));
        }
        Ok(n as u64)
    }
}

fn unreadable(path: &Path, reason: &str) -> Error {
    Error::Read { host: "this machine".into(), path: path.display().to_string(), reason: reason.into() }
}
