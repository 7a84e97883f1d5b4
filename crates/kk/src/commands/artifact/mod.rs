//! `kk artifact …`: offline bundles.

mod export;
mod import;
mod local_run;
mod look;
mod merge;
mod push_images;

use std::path::{Path, PathBuf};

use kk_artifact::Catalogue;

use crate::args::{Artifact, ArtifactImages, OutputOptions};
use crate::error::{Error, Part};
use crate::exit::ExitStatus;
use crate::printer::Printer;

pub(super) fn printer(command: &Artifact) -> Printer {
    match command {
        Artifact::Export(args) => Printer::new(OutputOptions::from(&args.progress)),
        Artifact::Merge(args) => Printer::new(OutputOptions::from(&args.progress)),
        Artifact::Images(ArtifactImages::Push(args)) => Printer::new(OutputOptions::from(&args.progress)),
        Artifact::Inspect(_) | Artifact::Verify(_) | Artifact::Diff(_) | Artifact::Import(_) => {
            Printer::plain()
        }
    }
}

pub(super) async fn run(command: &Artifact, printer: &Printer) -> Result<ExitStatus, Error> {
    match command {
        Artifact::Export(args) => return export::run(args, printer).await,
        Artifact::Merge(args) => return merge::run(args, printer),
        Artifact::Images(ArtifactImages::Push(args)) => return push_images::run(args, printer).await,
        Artifact::Inspect(args) => look::inspect(args, printer),
        Artifact::Verify(args) => look::verify(args, printer),
        Artifact::Diff(args) => look::diff(args, printer),
        Artifact::Import(args) => import::run(args, printer).await,
    }?;
    Ok(ExitStatus::Ok)
}

/// What is wrong with parts of a bundle, or with the bundle. The key for its signature is a setting.
fn failed(errors: &[kk_artifact::Error]) -> Error {
    use kk_artifact::Error::{Key, NoKey};
    if let [error @ (Key { .. } | NoKey { .. })] = errors {
        return Error::config(error.to_string(), error.hint());
    }
    let part = |error: &kk_artifact::Error| Part { message: error.to_string(), hint: error.hint() };
    Error::Parts(errors.iter().map(part).collect())
}

/// Refuses to write over a file that is read.
fn refuse_same(output: &Path, read: &Path) -> Result<(), Error> {
    let is_same = |(a, b): (PathBuf, PathBuf)| a == b;
    if output.canonicalize().ok().zip(read.canonicalize().ok()).is_some_and(is_same) {
        let message = format!("{} cannot be read and written at once", read.display());
        return Err(Error::config(message, Some("specify another file as --output".to_owned())));
    }
    Ok(())
}

/// What can be downloaded, by the settings of a file.
pub(super) fn catalogue(own: Option<&str>, mirror: Option<&str>) -> Result<Catalogue, Error> {
    let mut catalogue = Catalogue::builtin();
    if let Some(path) = own {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::config(format!("cannot read the catalogue {path}: {error}"), None))?;
        catalogue = catalogue.with_user(path, &text).map_err(|error| failed(&[error]))?;
    }
    match mirror {
        Some(mirror) => catalogue.with_mirror(mirror).map_err(|error| failed(&[error])),
        None => Ok(catalogue),
    }
}
