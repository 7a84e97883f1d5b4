//! Loads kernel modules now, and at each boot by a drop-in file.

use std::fmt::Write as _;

use kk_connector::quote;

use super::{file::File, lines};
use crate::{Action, Apply, Change, Facts, ProbeSpec, Script};

/// Kernel modules that must be loaded or built in, listed in a file of kk below `/etc/modules-load.d`.
#[derive(Clone)]
pub struct KernelModules {
    path: String,
    names: Vec<String>,
    file: File,
}

impl KernelModules {
    /// These modules, listed in the file `path`.
    pub fn new<N: Into<String>>(path: impl Into<String>, names: impl IntoIterator<Item = N>) -> Self {
        let (path, names): (String, Vec<String>) = (path.into(), names.into_iter().map(Into::into).collect());
        let text = names.iter().fold(String::new(), |text, name| text + name + "\n");
        Self { file: File::text(path.clone(), text), path, names }
    }

    fn missing<'a>(&'a self, facts: &'a Facts) -> impl Iterator<Item = &'a String> {
        self.names.iter().filter(|name| !facts.modules.contains(*name))
    }
}

impl Action for KernelModules {
    fn check(&self, facts: &Facts) -> Change {
        let file = self.file.check(facts).is_needed().then(|| format!("write {}", self.path));
        lines(
            file.into_iter()
                .chain(self.missing(facts).map(|name| format!("load kernel module {name}")))
                .collect(),
        )
    }

    fn apply(&self, facts: &Facts) -> Apply {
        let mut script = match self.file.apply(facts) {
            Apply::Script(script) if self.file.check(facts).is_needed() => script,
            _ => Script::default(),
        };
        for name in self.missing(facts) {
            let _ = writeln!(script.text, "kk_module {}", quote(name));
        }
        Apply::Script(script)
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        self.file.asks(spec);
        spec.modules.extend(self.names.iter().cloned());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        stderr.contains("not found").then(|| {
            "this kernel has no such module: install the package with the kernel's extra modules, and reboot when the \
             kernel was updated since the last boot"
                .into()
        })
    }
}
