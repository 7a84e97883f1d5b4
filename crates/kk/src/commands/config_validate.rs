//! `kk config validate`: everything that is wrong with a file, at once.

use crate::args::ConfigValidate;
use crate::error::{self, Error};
use crate::printer::{Printer, text};

use super::load;

pub(super) fn run(args: &ConfigValidate, printer: &Printer) -> Result<(), Error> {
    let loaded = load::file(&args.filename, None)?;
    for warning in &loaded.warnings {
        printer.warning(error::warning(warning));
    }
    let warnings = match loaded.warnings.len() {
        0 => String::new(),
        number => format!(", {}", text::count(number, "warning")),
    };
    let (file, hosts) = (load::name(&args.filename), text::count(loaded.spec.hosts.len(), "host"));
    let (name, version) = (&loaded.spec.name, loaded.spec.kubernetes.version);
    printer.message(&format!("{file} is valid: cluster {name}, Kubernetes {version}, {hosts}{warnings}"));
    Ok(())
}
