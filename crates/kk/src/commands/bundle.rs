//! The bundle that a command takes programs and images from.

use std::{path::PathBuf, sync::Arc};

use kk_artifact::bundle::Bundle;
use kk_cluster::Session;

use crate::args::SourceOptions;
use crate::error::Error;

use super::run::Run;

/// Opens it, and checks its signature where a key is named.
pub(super) fn open(options: &SourceOptions) -> Result<Option<Arc<Bundle>>, Error> {
    let open = |path: &PathBuf| {
        let bundle = Bundle::open_signed(path, options.public_key.as_deref());
        bundle.map(Arc::new).map_err(|error| Error::config(error.to_string(), error.hint()))
    };
    options.artifact.as_ref().map(open).transpose()
}

/// Takes what it holds to where programs and images are sent from. A dry run needs to know only what it holds.
pub(super) async fn take(session: &Session, run: &Run<'_>) -> Result<(), Error> {
    if !run.is_dry_run() && run.unless_stopped(session.import()).await? > 0 {
        run.note("took what the bundle holds into the directory for downloads");
    }
    Ok(())
}
