//! A marked block in a file that belongs to somebody else.

use kk_connector::quote;

use super::hints;
use crate::{Action, Apply, Change, Facts, ProbeSpec, Script};

/// Lines between two marker lines, as in `/etc/hosts`. The rest of the file is not touched, and a delete removes the
/// block only.
#[derive(Clone, Debug)]
pub struct Block {
    path: String,
    begin: String,
    end: String,
    content: String,
}

impl Block {
    /// `content` between the lines `begin` and `end` of the file `path`.
    pub fn new(
        path: impl Into<String>,
        begin: impl Into<String>,
        end: impl Into<String>,
        content: impl Into<String>,
    ) -> Self {
        let mut content = content.into();
        if !content.is_empty() && !content.ends_with('\n') {
            content.push('\n');
        }
        Self { path: path.into(), begin: begin.into(), end: end.into(), content }
    }

    /// The name of its answer among [`Facts::values`].
    fn value_name(&self) -> String {
        format!("block {} {}", self.path, self.begin)
    }

    /// Prints the block with its markers. The answer's last newline is not kept, so the end marker guards the content.
    fn snippet(&self) -> String {
        let (begin, end) = (quote(&self.begin), quote(&self.end));
        let program = r#"$0 == ENVIRON["B"] { on = 1 } on { print } $0 == ENVIRON["E"] { on = 0 }"#;
        format!("B={begin} E={end} awk '{program}' {}", quote(&self.path))
    }
}

impl Action for Block {
    fn check(&self, facts: &Facts) -> Change {
        let wanted = format!("{}\n{}{}", self.begin, self.content, self.end);
        if facts.values.get(&self.value_name()) == Some(&wanted) {
            Change::None
        } else {
            Change::needed(format!("write a block into {}", self.path))
        }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        let (path, begin, end) = (quote(&self.path), quote(&self.begin), quote(&self.end));
        let script = Script::new(format!("kk_block {path} {begin} {end} content\n"));
        Apply::Script(script.with_file("content", self.content.clone().into_bytes()))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.values.insert(self.value_name(), self.snippet());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        hints::at_path(&self.path, stderr)
    }
}
