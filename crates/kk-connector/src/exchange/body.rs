//! Reads the contents that an upload sends from the control machine's disk, piece by piece.

use std::{
    collections::VecDeque,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use tokio::sync::mpsc::UnboundedSender;

use crate::{Error, UploadFile};

/// The files of an upload. The host requests each file, in their order, when it is ready to read it.
pub(crate) struct Body {
    files: Vec<Source>,
    /// Requested files that are not fully sent yet, with the file in flight first.
    wanted: VecDeque<usize>,
    /// Bytes read of the file in flight.
    done: u64,
    /// A file that the host requested a second time.
    again: Option<usize>,
    progress: Option<UnboundedSender<u64>>,
}

struct Source {
    path: PathBuf,
    size: u64,
    asked: bool,
    open: Option<File>,
}

impl Body {
    /// Opens all sources first, so that an unreadable one is reported before anything is sent.
    pub(crate) fn new(files: &[UploadFile], progress: Option<UnboundedSender<u64>>) -> Result<Self, Error> {
        let files = files.iter().map(|file| Source::new(&file.source)).collect::<Result<_, _>>()?;
        Ok(Self { files, wanted: VecDeque::new(), done: 0, again: None, progress })
    }

    /// Size of a file in bytes.
    pub(crate) fn size(&self, index: usize) -> u64 {
        self.files[index].size
    }

    /// Handles a line of the host's script.
    pub(crate) fn take_line(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let index = line.strip_prefix("want ").and_then(|number| number.parse::<usize>().ok());
        let Some(index) = index.filter(|index| *index < self.files.len()) else { return };
        // The script requests each file once. Otherwise a host could make the control machine send, and queue, files without end.
        if std::mem::replace(&mut self.files[index].asked, true) {
            self.again = Some(index);
        } else {
            self.wanted.push_back(index);
        }
    }

    /// The file that the host requested a second time.
    pub(crate) fn asked_again(&self) -> Option<&Path> {
        self.again.map(|index| &*self.files[index].path)
    }

    /// Appends up to `most` bytes to `into`; nothing if all requested files are sent.
    pub(crate) fn fill(&mut self, into: &mut Vec<u8>, most: usize) -> Result<(), Error> {
        while into.len() < most {
            let Some(source) = self.wanted.front().map(|index| &mut self.files[*index]) else { break };
            let left = source.size - self.done;
            if left == 0 {
                source.open = None;
                self.done = 0;
                self.wanted.pop_front();
                continue;
            }
            let space = left.min((most - into.len()) as u64);
            self.done += source.read(into, space)?;
        }
        Ok(())
    }

    /// Reports that `n` bytes were sent.
    pub(crate) fn progress(&self, n: u64) {
        if let Some(progress) = &self.progress {
            // A receiver that is gone is no reason to stop.
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
        Ok(Self { path: path.to_owned(), size: metadata.len(), asked: false, open: None })
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
