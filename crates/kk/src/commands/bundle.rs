//! The bundle that a command takes programs and images from.

use std::{path::Path, sync::Arc, time::Duration};

use kk_artifact::bundle::{Bundle, VerifyingKey};
use kk_cluster::Session;
use kk_config::Spec;
use kk_engine::EventKind;
use tokio::time::timeout;

use crate::args::{SignatureOptions, SourceOptions};
use crate::error::Error;
use crate::printer::{Printer, text};

use super::run::Run;

/// A verification that takes longer is reported.
const LONG: Duration = Duration::from_secs(1);

/// Opens the bundle of a command for the cluster of a file.
pub(super) async fn open(
    options: &SourceOptions,
    spec: &Spec,
    printer: &Printer,
) -> Result<Option<Arc<Bundle>>, Error> {
    let Some(path) = &options.artifact else { return Ok(None) };
    let note = |message| printer.notice(EventKind::Note { host: None, message });
    match open_verified(path, &options.signature, spec.download.public_key.as_deref(), note).await {
        Ok(bundle) => Ok(Some(Arc::new(bundle))),
        Err(error) => Err(Error::config(error.to_string(), error.hint())),
    }
}

/// Opens a bundle after its signature was verified, unless the command line takes it unsigned. A bundle is root on each host: it
/// holds packages, and images of privileged pods. The key of the command line wins over the one in the file. `note` reports a
/// verification that takes long, because it reads the whole file.
pub(super) async fn open_verified(
    path: &Path,
    options: &SignatureOptions,
    key_in_file: Option<&str>,
    note: impl FnOnce(String),
) -> Result<Bundle, kk_artifact::Error> {
    if options.allow_unsigned {
        return Bundle::open(path);
    }
    let key = match (&options.public_key, key_in_file) {
        (Some(file), _) => VerifyingKey::read(file)?,
        (None, Some(line)) => VerifyingKey::parse(line)?,
        (None, None) => return Err(kk_artifact::Error::NoKey { path: path.to_owned() }),
    };
    let opened = path.to_owned();
    let mut verification = tokio::task::spawn_blocking(move || Bundle::open_signed(&opened, &key));
    let verified = if let Ok(verified) = timeout(LONG, &mut verification).await {
        verified
    } else {
        note(format!("verifying the signature of {}{}", path.display(), size(path)));
        verification.await
    };
    verified.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

fn size(path: &Path) -> String {
    path.metadata().map_or_else(|_| String::new(), |data| format!(" ({})", text::bytes(data.len())))
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

    /// A reader that is as slow as the writer of the pipe.
    #[tokio::test]
    async fn a_long_verification_is_reported_and_blocks_no_other_work() {
        let directory = tempfile::tempdir().unwrap();
        let bundle = directory.path().join("slow.tar.zst");
        assert!(std::process::Command::new("mkfifo").arg(&bundle).status().unwrap().success());
        fs::copy(given("signed.tar.zst.minisig"), directory.path().join("slow.tar.zst.minisig")).unwrap();
        let options = SignatureOptions { public_key: Some(given("bundle.pub")), allow_unsigned: false };
        let (send, reported) = tokio::sync::oneshot::channel();
        let opened = open_verified(&bundle, &options, None, |message| send.send(message).unwrap());
        let written = async {
            let message = reported.await.unwrap();
            tokio::fs::write(&bundle, fs::read(given("signed.tar.zst")).unwrap()).await.unwrap();
            message
        };
        let (opened, message) = tokio::join!(opened, written);
        assert!(opened.is_ok(), "{opened:?}");
        assert!(
            message.starts_with("verifying the signature of") && message.contains("slow.tar.zst"),
            "{message}"
        );
    }

    #[tokio::test]
    async fn a_bundle_is_opened_only_with_a_verified_signature_unless_unsigned_ones_are_allowed() {
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
            let opened = open_verified(bundle, &options, in_file.map(line).as_deref(), drop).await;
            let error = opened.err().map(|error| error.to_string());
            match refused {
                None => assert_eq!(error, None, "case {index}"),
                Some(words) => assert!(error.is_some_and(|error| error.contains(words)), "case {index}"),
            }
        }
    }
}
