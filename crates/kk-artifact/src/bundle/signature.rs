//! Signatures of bundles, as the program minisign makes them: `FILE.minisig` beside the file, for all of its bytes.
//!
//! The index of a bundle holds the sum of everything in it, and says nothing of who made it. The signature does. Signing is
//! left to minisign, so that no secret key comes near this program.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use minisign_verify::{PublicKey, Signature, StreamVerifier};

use super::index::BundleIndex;
use super::read;
use crate::Error;

/// What the owner of a key has signed.
#[derive(Debug)]
pub struct Signed {
    /// The comment that is signed with the bundle.
    pub comment: String,
    /// The index of the very bytes that were verified. With it, all that is read of the bundle later is what was signed, even if
    /// somebody has replaced the file.
    pub index: BundleIndex,
}

/// A key that tells whether a signature is right.
#[derive(Debug)]
pub struct VerifyingKey(PublicKey);

impl VerifyingKey {
    /// Reads what `minisign -G` writes as `minisign.pub`, or its second line alone. Errors: it cannot be read, or is no such
    /// key.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let unusable = |reason: String| Error::Key { key: path.display().to_string(), reason };
        let text =
            fs::read_to_string(path).map_err(|error| unusable(format!("it cannot be read: {error}")))?;
        let key = PublicKey::decode(&text).or_else(|_| PublicKey::from_base64(text.trim()));
        key.map(Self).map_err(|error| unusable(error.to_string()))
    }

    /// Parses the line of `minisign.pub` that begins with `RW`.
    pub fn parse(line: &str) -> Result<Self, Error> {
        let key = PublicKey::from_base64(line);
        key.map(Self).map_err(|error| Error::Key { key: line.to_owned(), reason: error.to_string() })
    }

    /// Reads a bundle once. Errors: there is no signature, or one that is not by this key, or not for these bytes; or they are no
    /// bundle.
    pub fn verify(&self, bundle: &Path) -> Result<Signed, Error> {
        let (comment, index) = self.verify_bytes(bundle, |bytes| read::index_of(bundle, bytes))?;
        Ok(Signed { comment, index: index? })
    }

    /// Gives the comment, and what `take` has made of the bytes. Nothing of that is to be used before this returns.
    fn verify_bytes<T>(
        &self,
        bundle: &Path,
        take: impl FnOnce(&mut dyn Read) -> T,
    ) -> Result<(String, T), Error> {
        let wrong = |reason: String| Error::Signature { path: bundle.to_owned(), reason };
        let path = signature_of(bundle);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(wrong(format!("there is no {}", path.display())));
            }
            read => read.map_err(Error::file("read", &path))?,
        };
        let signature = Signature::decode(&text)
            .map_err(|error| wrong(format!("{} is no signature: {error}", path.display())))?;
        let verifier = self.0.verify_stream(&signature).map_err(|error| wrong(error.to_string()))?;
        let file = File::open(bundle).map_err(Error::file("open", bundle))?;
        let mut bytes = Verified { file, verifier };
        let taken = take(&mut bytes);
        io::copy(&mut bytes, &mut io::sink()).map_err(Error::file("read", bundle))?;
        bytes.verifier.finalize().map_err(|error| wrong(error.to_string()))?;
        Ok((signature.trusted_comment().to_owned(), taken))
    }
}

/// Bytes that are verified as they are read.
struct Verified<'a> {
    file: File,
    verifier: StreamVerifier<'a>,
}

impl Read for Verified<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.verifier.update(&buffer[..count]);
        Ok(count)
    }
}

/// Where the signature of a bundle is.
pub fn signature_of(bundle: &Path) -> PathBuf {
    let mut path = OsString::from(bundle);
    path.push(".minisig");
    path.into()
}

/// The files in `testdata` were made by minisign 0.11; the secret keys are gone.
#[cfg(test)]
mod tests {
    use super::*;

    const COMMENT: &str = "signed for a test";

    fn given(name: &str) -> PathBuf {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/minisign")).join(name)
    }

    /// Verifies a bundle with this content, beside which lies this signature.
    fn verify(key: &str, content: &[u8], signature: &str) -> Result<String, Error> {
        let dir = tempfile::tempdir().unwrap();
        let bundle = dir.path().join("x.tar.zst");
        fs::write(&bundle, content).unwrap();
        fs::write(signature_of(&bundle), signature).unwrap();
        comment(&VerifyingKey::read(&given(key))?, &bundle)
    }

    /// The comment, of whatever was signed.
    fn comment(key: &VerifyingKey, bundle: &Path) -> Result<String, Error> {
        key.verify_bytes(bundle, |bytes| bytes.read(&mut [0; 3]).unwrap()).map(|(comment, _)| comment)
    }

    fn text(name: &str) -> String {
        fs::read_to_string(given(name)).unwrap()
    }

    #[test]
    fn what_minisign_has_signed_is_verified() {
        let (content, signature) = (text("signed"), text("signed.minisig"));
        assert_eq!(verify("minisign.pub", content.as_bytes(), &signature).unwrap(), COMMENT);
        // The key without the comment in front of it, as `minisign -P` takes it.
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("key");
        fs::write(&key, text("minisign.pub").lines().nth(1).unwrap()).unwrap();
        assert_eq!(comment(&VerifyingKey::read(&key).unwrap(), &given("signed")).unwrap(), COMMENT);
        let line = text("minisign.pub").lines().nth(1).unwrap().to_owned();
        assert_eq!(comment(&VerifyingKey::parse(&line).unwrap(), &given("signed")).unwrap(), COMMENT);
        assert!(matches!(VerifyingKey::parse(&line[1..]), Err(Error::Key { .. })));
    }

    #[test]
    fn what_is_not_signed_as_it_should_be_is_refused() {
        let (content, signature) = (text("signed"), text("signed.minisig"));
        let content = content.as_bytes();
        let cases = [
            ("somebody else's key", verify("other.pub", content, &signature)),
            ("other bytes", verify("minisign.pub", &content[1..], &signature)),
            ("more bytes", verify("minisign.pub", &[content, b"\0"].concat(), &signature)),
            ("another comment", verify("minisign.pub", content, &signature.replace(COMMENT, "signed by me"))),
            ("half a signature", verify("minisign.pub", content, &signature[..60])),
            ("no signature", verify("minisign.pub", content, "")),
            // It is no signature of a hash, so all of a bundle would have to be in memory.
            ("an old format", verify("minisign.pub", content, &text("legacy.minisig"))),
        ];
        for (what, result) in cases {
            assert!(matches!(result, Err(Error::Signature { .. })), "{what}: {result:?}");
        }
    }

    #[test]
    fn the_index_of_a_signed_bundle_is_that_of_the_bytes_that_were_verified() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("signed.tar.zst");
        for name in ["signed.tar.zst", "signed.tar.zst.minisig"] {
            fs::copy(given(name), dir.path().join(name)).unwrap();
        }
        let signed = VerifyingKey::read(&given("bundle.pub")).unwrap().verify(&path).unwrap();
        assert_eq!((signed.comment.as_str(), signed.index.files.len()), ("a bundle", 1));
        assert_eq!(signed.index, read::index(&path).unwrap());
        // What follows the index is signed, too.
        let mut more = fs::read(&path).unwrap();
        more.push(0);
        fs::write(&path, more).unwrap();
        let verified = VerifyingKey::read(&given("bundle.pub")).unwrap().verify(&path);
        assert!(matches!(verified, Err(Error::Signature { .. })), "{verified:?}");
    }

    #[test]
    fn what_is_signed_and_no_bundle_is_said_to_be_none() {
        let verified = VerifyingKey::read(&given("minisign.pub")).unwrap().verify(&given("signed"));
        assert!(matches!(verified, Err(Error::Bundle { .. })), "{verified:?}");
    }

    #[test]
    fn a_missing_signature_and_a_file_that_is_no_key_are_named() {
        let missing = VerifyingKey::read(&given("minisign.pub")).unwrap().verify(&given("other.pub"));
        assert!(missing.unwrap_err().to_string().contains("there is no"));
        let no_key = VerifyingKey::read(&given("signed")).unwrap_err().to_string();
        assert!(no_key.contains("cannot use the key"), "{no_key}");
    }
}
