//! A user of the host.

use kk_connector::quote;

use crate::{Action, Apply, Change, Facts, ProbeSpec, Script};

/// A system user with a group of the same name, who cannot log in. An existing user stays unchanged.
#[derive(Clone, Debug)]
pub struct User {
    name: String,
}

impl User {
    /// A system user without a home.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
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
        Apply::Script(Script::new(format!(
            "kk_user {} --system --user-group --no-create-home --shell \"$(command -v nologin || echo /bin/false)\"\n",
            quote(&self.name)
        )))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.users.insert(self.name.clone());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        let group = stderr.contains("group") && stderr.contains("exists");
        group.then(|| format!("remove the group \"{0}\", or add the user \"{0}\" yourself", self.name))
    }
}
