//! A marked block in a file that belongs to somebody else.

use std::sync::Arc;

use kk_connector::quote;

use super::hints;
use crate::{Action, Answer, Apply, Change, Facts, ProbeSpec, Question, Script};

/// Lines between two marker lines, as in `/etc/hosts`. The rest of the file is not touched, and a delete removes the
/// block only.
#[derive(Clone, Debug)]
pub struct Block {
    path: String,
    begin: String,
    end: String,
    /// With its last newline. One for all hosts: with a thousand of them, the names of all are long.
    content: Arc<str>,
}

impl Block {
    /// `content` between the lines `begin` and `end` of the file `path`.
    pub fn new(
        path: impl Into<String>,
        begin: impl Into<String>,
        end: impl Into<String>,
        content: impl Into<Arc<str>>,
    ) -> Self {
        let mut content = content.into();
        if !content.is_empty() && !content.ends_with('\n') {
            content = format!("{content}\n").into();
        }
        Self { path: path.into(), begin: begin.into(), end: end.into(), content }
    }

    /// Asks for the block with its markers.
    fn question(&self) -> Question<String> {
        let name = format!("block {} {}", self.path, self.begin);
        Question::named(name, |printed| Some(printed.to_owned())).with_snippet(self.snippet())
    }

    fn snippet(&self) -> String {
        let (begin, end) = (quote(&self.begin), quote(&self.end));
        let program = r#"$0 == ENVIRON["B"] { on = 1 } on { print } $0 == ENVIRON["E"] { on = 0 }"#;
        format!("B={begin} E={end} awk '{program}' {}", quote(&self.path))
    }
}

impl Action for Block {
    fn check(&self, facts: &Facts) -> Change {
        let wanted = format!("{}\n{}{}\n", self.begin, self.content, self.end);
        // Without an answer the block is written: that changes nothing where it is as wanted.
        if facts.answer(&self.question()) == Answer::Answered(wanted) {
            Change::None
        } else {
            Change::needed(format!("write a block into {}", self.path))
        }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        let (path, begin, end) = (quote(&self.path), quote(&self.begin), quote(&self.end));
        let script = Script::new(format!("kk_block {path} {begin} {end} content\n"));
        Apply::Script(script.with_file("content", Arc::clone(&self.content)))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.ask(&self.question());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        hints::at_path(&self.path, stderr)
    }
}
