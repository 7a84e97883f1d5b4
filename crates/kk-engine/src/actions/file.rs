//! Writes a complete file that kk owns.

use std::sync::Arc;

use kk_connector::quote;
use kk_util::sha256;

use super::{attributes::Attributes, hints};
use crate::{Action, Apply, Change, Facts, ProbeSpec, Script};

/// A file with this content and these attributes. Its content may be secret: it is never shown.
#[derive(Clone)]
pub struct File {
    path: String,
    content: Arc<[u8]>,
    sha256: String,
    attributes: Attributes,
}

impl File {
    /// A file of root, 0644.
    pub fn new(path: impl Into<String>, content: impl Into<Arc<[u8]>>) -> Self {
        let content = content.into();
        let sha256 = sha256(&content);
        Self { path: path.into(), content, sha256, attributes: Attributes::of_root(0o644) }
    }

    /// A text file of root, 0644.
    pub fn text(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self::new(path, content.into().into_bytes())
    }

    /// Sets the permission bits.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.attributes.mode = mode;
        self
    }

    /// Sets the owner, `user:group`.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.attributes.owner = owner.into();
        self
    }

    /// Whether the file has the content, regardless of its attributes.
    fn has_content(&self, facts: &Facts) -> bool {
        facts.files.get(&self.path).is_some_and(|file| file.kind == "file" && file.sha256 == self.sha256)
    }
}

impl Action for File {
    fn check(&self, facts: &Facts) -> Change {
        if !self.has_content(facts) {
            return Change::needed(format!("write {}", self.path));
        }
        if facts.files.get(&self.path).is_some_and(|file| self.attributes.fit(file)) {
            return Change::None;
        }
        Change::needed(format!("set {} to {}", self.path, self.attributes))
    }

    fn apply(&self, facts: &Facts) -> Apply {
        let (path, attributes) = (quote(&self.path), self.attributes.words());
        if self.has_content(facts) {
            // The modification time of the content is kept, so that no unit is restarted without need.
            return Apply::Script(Script::new(format!("kk_attributes {path} {attributes}\n")));
        }
        let script = Script::new(format!("kk_put content {path} {attributes}\n"));
        Apply::Script(script.with_file("content", self.content.clone()))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.files.insert(self.path.clone());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        hints::at_path(&self.path, stderr)
    }
}
