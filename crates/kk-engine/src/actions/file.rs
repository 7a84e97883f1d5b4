//! A file of ours, whole.

use std::{fmt::Write as _, sync::Arc};

use kk_connector::quote;
use sha2::{Digest, Sha256};

use super::hints;
use crate::{Action, Apply, Change, Facts, ProbeSpec, Script};

/// A file with this content and these attributes. Its content may be secret: it is never shown.
#[derive(Clone)]
pub struct File {
    path: String,
    content: Arc<[u8]>,
    sha256: String,
    mode: u32,
    owner: String,
}

impl File {
    /// A file of root's, 0644.
    pub fn new(path: impl Into<String>, content: impl Into<Arc<[u8]>>) -> Self {
        let content = content.into();
        let sha256 = sha256(&content);
        Self { path: path.into(), content, sha256, mode: 0o644, owner: "root:root".into() }
    }

    /// A file of text of root's, 0644.
    pub fn text(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self::new(path, content.into().into_bytes())
    }

    /// Sets the permission bits.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the owner, `user:group`.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }

    /// Whether the content is there, whatever its attributes.
    fn has_content(&self, facts: &Facts) -> bool {
        facts.files.get(&self.path).is_some_and(|file| file.kind == "file" && file.sha256 == self.sha256)
    }
}

/// SHA-256 in lower-case hex.
pub(super) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Action for File {
    fn check(&self, facts: &Facts) -> Change {
        if !self.has_content(facts) {
            return Change::needed(format!("write {}", self.path));
        }
        let same =
            |file: &crate::FileFact| file.mode == format!("{:o}", self.mode) && file.owner == self.owner;
        if facts.files.get(&self.path).is_some_and(same) {
            return Change::None;
        }
        Change::needed(format!("set {} to {:o} {}", self.path, self.mode, self.owner))
    }

    fn apply(&self, facts: &Facts) -> Apply {
        let (path, mode, owner) = (quote(&self.path), self.mode, quote(&self.owner));
        if self.has_content(facts) {
            // The content keeps its time, so that no unit seems to need a restart.
            return Apply::Script(Script::new(format!("kk_attributes {path} {mode:o} {owner}\n")));
        }
        let script = Script::new(format!("kk_put content {path} {mode:o} {owner}\n"));
        Apply::Script(script.with_file("content", self.content.clone()))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.files.insert(self.path.clone());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        hints::at_path(&self.path, stderr)
    }
}
