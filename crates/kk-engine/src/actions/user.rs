//! A user of the host.

use std::fmt::Write as _;

use kk_connector::quote;

use crate::{Action, Apply, Change, Facts, ProbeSpec, Script};

/// A system user with a group of its own name, who cannot log in. One who is there already stays as he is.
#[derive(Clone, Debug)]
pub struct User {
    name: String,
    home: Option<String>,
}

impl User {
    /// A system user without a home.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), home: None }
    }

    /// Sets the home directory. It is not made.
    #[must_use]
    pub fn home(mut self, path: impl Into<String>) -> Self {
        self.home = Some(path.into());
        self
    }
}

impl Action for User {
    fn check(&self, facts: &Facts) -> Change {
        if facts.users.contains(&self.name) {
            Change::None
        } else {
            Change::needed(format!("add user {}", self.name))
        }
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        let mut text = format!("kk_user {} --system --user-group --no-create-home", quote(&self.name));
        if let Some(home) = &self.home {
            let _ = write!(text, " --home-dir {}", quote(home));
        }
        text.push_str(" --shell \"$(command -v nologin || echo /bin/false)\"\n");
        Apply::Script(Script::new(text))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.users.insert(self.name.clone());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        let group = stderr.contains("group") && stderr.contains("exists");
        group.then(|| format!("remove the group \"{0}\", or add the user \"{0}\" yourself", self.name))
    }
}
