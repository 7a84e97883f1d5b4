//! `kk config validate`: reports all errors in a file at once. Files that it names must be on the control machine, from which the
//! hosts get them.

use std::{fs::File, path::PathBuf};

use kk_config::{ConfigErrors, Diagnostic, Loaded, LocalFile, Overrides, Severity};

use crate::args::ConfigValidate;
use crate::error::{self, Error};
use crate::printer::{Printer, text};

use super::load::{self, Text};

pub(super) fn run(args: &ConfigValidate, printer: &Printer) -> Result<(), Error> {
    let file = Text::read(&args.filename)?;
    let (kind, warnings) = if file.is_manifest() {
        let (manifest, warnings) = file.manifest()?;
        let arches = manifest.arches.iter().map(|arch| arch.as_str()).collect::<Vec<_>>().join(" and ");
        (format!("a Manifest for hosts of {arches}"), warnings)
    } else {
        let loaded = file.cluster(&Overrides::default())?;
        let Loaded { spec, warnings, files } = loaded;
        let errors: Vec<Diagnostic> = files.iter().filter_map(missing).collect();
        if !errors.is_empty() {
            return Err(Error::Config(ConfigErrors { errors, warnings }));
        }
        let hosts = text::count(spec.hosts.len(), "host");
        (format!("cluster {}, Kubernetes {}, {hosts}", spec.name, spec.kubernetes.version), warnings)
    };
    for warning in &warnings {
        printer.warning(error::warning(warning));
    }
    let warnings = match warnings.len() {
        0 => String::new(),
        number => format!(", {}", text::count(number, "warning")),
    };
    printer.message(&format!("{} is valid: {kind}{warnings}", load::name(&args.filename)));
    Ok(())
}

/// The error for a file that the control machine does not have or cannot read.
fn missing(file: &LocalFile) -> Option<Diagnostic> {
    let path = match (file.path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) if file.expands_home => home.join(rest),
        _ => PathBuf::from(&file.path),
    };
    let error = File::open(&path).err()?;
    Some(Diagnostic {
        severity: Severity::Error,
        message: format!("cannot read `{}`: {error}", file.path),
        hint: Some("the file must be on the machine that runs kk; specify its path there".to_owned()),
        place: Some(file.place.clone()),
    })
}
