//! What is fetched: [`Artifact`], and the SHA-256 that it must have.

use std::fmt;
use std::str::FromStr;

use kk_config::Arch;
use semver::Version;
use serde::Deserialize;

use crate::{Address, Component};

/// A SHA-256 as 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Sha256Sum(String);

impl Sha256Sum {
    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The sum of what `hasher` has seen.
    pub(crate) fn of(hasher: sha2::Sha256) -> Self {
        use sha2::Digest as _;
        Self(kk_util::hex(hasher.finalize()))
    }

    /// The sum of these bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self(kk_util::sha256(bytes))
    }
}

impl FromStr for Sha256Sum {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(format!("`{text}` is not a SHA-256: 64 hexadecimal digits are needed"))
        }
    }
}

impl TryFrom<String> for Sha256Sum {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Sha256Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How the downloaded file is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// By a sum of the built-in catalogue or of the user's own.
    Known(Sha256Sum),
    /// The catalogues do not know the version: by the sum that is published at this address (always TLS).
    /// A run should say so.
    Published(Address),
}

/// One published file: a component in one version for one architecture. Made by [`Catalogue::resolve`].
///
/// [`Catalogue::resolve`]: crate::Catalogue::resolve
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// What it is.
    pub component: Component,
    /// Which version.
    pub version: Version,
    /// For which architecture.
    pub arch: Arch,
    /// Where it is, the mirror included.
    pub address: Address,
    /// How it is verified.
    pub checksum: Checksum,
    /// What is taken out of it.
    pub(crate) content: Content,
}

impl Artifact {
    /// Where the published file is below a store, and below `programs/` in a bundle.
    pub(crate) fn place(&self) -> String {
        let (component, arch) = (self.component.name(), self.arch.as_str());
        format!("{component}/v{}/{arch}/{}", self.version, self.address.file_name())
    }
}

/// What a published file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// The file is the program of this name.
    Program(String),
    /// A `.tar.gz`; of it, these members (path, name of the program).
    Members(Vec<(String, String)>),
    /// A `.tar.gz`; of it, every executable file at the top.
    Executables,
}

impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} v{} for {}", self.component, self.version, self.arch.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sums_in_either_case_and_nothing_else() {
        let digits = "0123456789abcdef".repeat(4);
        assert_eq!(digits.to_uppercase().parse::<Sha256Sum>().unwrap().as_str(), digits);
        for text in ["", "abc", &digits[1..], &format!("{digits}0"), &digits.replace('f', "g")] {
            assert!(text.parse::<Sha256Sum>().is_err(), "{text}");
        }
    }
}
