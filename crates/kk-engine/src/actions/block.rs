//! A marked block in a file that kk does not own.

use std::sync::Arc;

use kk_connector::quote;
use kk_util::sha256;

use super::hints;
use crate::{Action, Answer, Apply, Change, Facts, ProbeSpec, Question, Script, question};

/// Lines between two marker lines, as in `/etc/hosts`. The rest of the file is not touched, and a delete removes the
/// block only.
#[derive(Clone, Debug)]
pub struct Block {
    path: String,
    begin: String,
    end: String,
    /// Includes the last newline. Shared by all hosts: with a thousand hosts, the list of their names is long.
    content: Arc<str>,
    /// Checksum of the content between its markers: with a thousand hosts, each would otherwise have to send the whole list.
    sha256: Arc<str>,
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
        let (path, begin, end) = (path.into(), begin.into(), end.into());
        let sha256 = sha256(format!("{begin}\n{content}{end}\n")).into();
        Self { path, begin, end, content, sha256 }
    }

    /// The same block, in another file.
    #[must_use]
    pub fn at(&self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self.clone() }
    }

    /// The question for the SHA-256 of the block with its markers.
    fn question(&self) -> Question<String> {
        let name = format!("block {} {}", self.path, self.begin);
        Question::named(name, question::text).with_snippet(self.snippet())
    }

    fn snippet(&self) -> String {
        let (begin, end) = (quote(&self.begin), quote(&self.end));
        let program = r#"$0 == ENVIRON["B"] { on = 1 } on { print } $0 == ENVIRON["E"] { on = 0 }"#;
        format!("B={begin} E={end} awk '{program}' {} | sha256sum | cut -c 1-64", quote(&self.path))
    }
}

impl Action for Block {
    fn check(&self, facts: &Facts) -> Change {
        // Without an answer the block is written: this changes nothing if the block is correct already.
        if facts.answer(&self.question()) == Answer::Answered(self.sha256.to_string()) {
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::Block;
    use crate::{Action, Change, Facts};

    /// Whether the block is written into a file with this text.
    fn is_written(text: &str) -> bool {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hosts").to_str().unwrap().to_owned();
        std::fs::write(&path, text).unwrap();
        let block = Block::new("/elsewhere", "# B", "# E", "10.0.0.1 it's").at(&path);
        let output = Command::new("sh").args(["-c", &block.snippet()]).output().unwrap();
        let mut facts = Facts::default();
        facts.reply(&block.question(), String::from_utf8(output.stdout).unwrap());
        block.check(&facts) != Change::None
    }

    #[test]
    fn is_written_unless_the_file_has_exactly_it() {
        let wanted = "# B\n10.0.0.1 it's\n# E\n";
        assert!(!is_written(wanted));
        assert!(!is_written(&format!("127.0.0.1 localhost\n{wanted}::1 localhost\n")));
        for text in ["", "# B\n10.0.0.2 it's\n# E\n", "# B\n10.0.0.1 it's\n", &wanted.repeat(2)] {
            assert!(is_written(text), "{text:?}");
        }
    }
}
