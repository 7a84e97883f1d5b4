//! `kk artifact import`: unpacks a bundle into the download directory.

use kk_artifact::{Store, StoreSettings};

use crate::args::ArtifactImport;
use crate::error::Error;
use crate::printer::{Printer, text};

use super::super::bundle;
use super::{catalogue, failed};

pub(super) async fn run(args: &ArtifactImport, printer: &Printer) -> Result<(), Error> {
    let own = args.catalogue.as_ref().map(|path| path.display().to_string());
    let catalogue = catalogue(own.as_deref(), None)?;
    let mut settings = StoreSettings::new(&args.workdir);
    settings.offline = true;
    let import = async {
        let bundle =
            bundle::open_verified(&args.artifact, &args.signature, None, |message| printer.message(&message))
                .await?;
        let catalogue = bundle.catalogue(catalogue)?;
        let store = Store::new(settings)?;
        let bytes = bundle.import(&catalogue, &store).await?;
        Ok((bundle.parts(), bytes))
    };
    let (parts, bytes) = import.await.map_err(|error: kk_artifact::Error| failed(&[error]))?;
    let parts = text::count(parts, "part");
    let what = match bytes {
        0 => "nothing was missing".to_owned(),
        bytes => format!("{} were missing", text::bytes(bytes)),
    };
    printer.message(&format!("{} now contains {parts} of the bundle; {what}", args.workdir.display()));
    Ok(())
}
