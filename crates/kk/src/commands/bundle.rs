//! The bundle that a command takes programs and images from.

use std::{path::Path, sync::Arc};

use kk_artifact::bundle::{Bundle, VerifyingKey};
use kk_cluster::Session;
use kk_config::Spec;

use crate::args::{SignatureOptions, SourceOptions};
use crate::error::Error;

use super::run::Run;

/// Opens the bundle of a command for the cluster of a file.
pub(super) fn open(options: &SourceOptions, spec: &Spec) -> Result<Option<Arc<Bundle>>, Error> {
    let Some(path) = &options.artifact else { return Ok(None) };
    match open_verified(path, &options.signature, spec.download.public_key.as_deref()) {
        Ok(bundle) => Ok(Some(Arc::new(bundle))),
        Err(error) => Err(Error::config(error.to_string(), error.hint())),
    }
}

/// Opens a bundle after its signature was verified, unless the command line takes it unsigned. A bundle is root on each host: it
/// holds packages, and images of privileged pods. The key of the command line wins over the one in the file.
pub(super) fn open_verified(
    path: &Path,
    options: &SignatureOptions,
    key_in_file: Option<&str>,
) -> Result<Bundle, kk_artifact::Error> {
    if options.allow_unsigned {
        return Bundle::open(path);
    }
    let key = match (&options.public_key, key_in_file) {
        (Some(file), _) => VerifyingKey::read(file)?,
        (None, Some(line)) => VerifyingKey::parse(line)?,
        (None, None) => return Err(kk_artifact::Error::NoKey { path: path.to_owned() }),
    };
    Bundle::open_signed(path, &key)
}

/// Takes what it holds to where programs and images are sent from. A dry run needs to know only what it holds.
pub(super) async fn take(session: &Session, run: &Run<'_>) -> Result<(), Error> {
    if !run.is_dry_run() && run.unless_stopped(session.import()).await? > 0 {
        run.note("unpacked the bundle into the download directory");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;

    fn given(name: &str) -> PathBuf {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../kk-artifact/testdata/minisign")).join(name)
    }

    /// The line with the key itself.
    fn line(name: &str) -> String {
        fs::read_to_string(given(name)).unwrap().lines().last().unwrap().to_owned()
    }

    #[test]
    fn a_bundle_is_opened_only_with_a_verified_signature_unless_unsigned_ones_are_allowed() {
        let directory = tempfile::tempdir().unwrap();
        let unsigned = directory.path().join("unsigned.tar.zst");
        fs::copy(given("signed.tar.zst"), &unsigned).unwrap();
        let signed = given("signed.tar.zst");
        let (right, wrong) = ("bundle.pub", "other.pub");
        // The bundle, the keys of the command line and of the file, --allow-unsigned, and the error.
        let cases = [
            (&signed, Some(right), None, false, None),
            (&signed, None, Some(right), false, None),
            (&signed, Some(right), Some(wrong), false, None),
            (&signed, None, None, true, None),
            (&unsigned, None, None, true, None),
            (&unsigned, None, Some(right), true, None),
            (&signed, None, None, false, Some("no public key is given")),
            (&unsigned, None, None, false, Some("no public key is given")),
            (&signed, Some(wrong), None, false, Some("the signature of")),
            (&signed, None, Some(wrong), false, Some("the signature of")),
            (&signed, Some(wrong), Some(right), false, Some("the signature of")),
            (&unsigned, None, Some(right), false, Some("there is no")),
        ];
        for (index, (bundle, named, in_file, allow_unsigned, refused)) in cases.into_iter().enumerate() {
            let options = SignatureOptions { public_key: named.map(given), allow_unsigned };
            let opened = open_verified(bundle, &options, in_file.map(line).as_deref());
            let error = opened.err().map(|error| error.to_string());
            match refused {
                None => assert_eq!(error, None, "case {index}"),
                Some(words) => assert!(error.is_some_and(|error| error.contains(words)), "case {index}"),
            }
        }
    }
}
