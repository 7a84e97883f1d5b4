//! Sets kernel settings: in a drop-in file for the next boot, and live.

use std::{collections::BTreeMap, fmt::Write as _};

use kk_connector::quote;

use super::{file::File, lines};
use crate::{Action, Apply, Change, Facts, ProbeSpec, Script};

/// Kernel settings in a file of kk below `/etc/sysctl.d`, and live. A setting that root cannot write (a container, a hardened
/// host) or that the kernel lacks stays unchanged.
#[derive(Clone)]
pub struct Sysctls {
    path: String,
    settings: BTreeMap<String, String>,
    file: File,
}

impl Sysctls {
    /// These settings, by dotted name, in the file `path`.
    pub fn new(path: impl Into<String>, settings: BTreeMap<String, String>) -> Self {
        let path = path.into();
        let mut text = String::from("# Written by kk; removed again by \"kk delete cluster\".\n");
        for (name, value) in &settings {
            let _ = writeln!(text, "{name} = {value}");
        }
        Self { file: File::text(path.clone(), text), path, settings }
    }
}

impl Action for Sysctls {
    fn check(&self, facts: &Facts) -> Change {
        let mut changes = Vec::new();
        if self.file.check(facts).is_needed() {
            changes.push(format!("write {}", self.path));
        }
        for (name, value) in &self.settings {
            let live = facts.sysctls.get(name).filter(|live| *live != value);
            if let Some(live) = live.filter(|_| !facts.sysctls_read_only.contains(name)) {
                changes.push(format!("set {name} to {value} (it is {live})"));
            }
        }
        lines(changes)
    }

    fn apply(&self, facts: &Facts) -> Apply {
        // All settings, even if the probe did not find them: a kernel module of the same plan may add them.
        let mut script = match self.file.apply(facts) {
            Apply::Script(script) if self.file.check(facts).is_needed() => script,
            _ => Script::default(),
        };
        for (name, value) in &self.settings {
            let _ = writeln!(script.text, "kk_sysctl {} {}", quote(name), quote(value));
        }
        Apply::Script(script)
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        self.file.asks(spec);
        spec.sysctls.extend(self.settings.keys().cloned());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        // The messages of bash and dash for EINVAL.
        let refused = stderr.contains("Invalid argument") || stderr.contains("I/O error");
        refused.then(|| format!("the kernel refuses one of the values in {}", self.path))
    }
}
