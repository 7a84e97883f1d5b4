//! [`Artifact`]: a file to download, and its expected SHA-256.

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

    /// The checksum of the data that `hasher` has read.
    pub(crate) fn of(hasher: sha2::Sha256) -> Self {
        use sha2::Digest as _;
        Self(kk_util::hex(hasher.finalize()))
    }

    /// The checksum of these bytes.
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
    /// By a checksum of the built-in catalogue or of the user's own.
    Known(Sha256Sum),
    /// By the checksum that is published at this address (always TLS), because the catalogues do not know the version. Commands
    /// should report this.
    Published(Address),
}

/// One published file: a component in one version for one architecture. Created by [`Catalogue::resolve`].
///
/// [`Catalogue::resolve`]: crate::Catalogue::resolve
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// The component.
    pub component: Component,
    /// The version.
    pub version: Version,
    /// The architecture.
    pub arch: Arch,
    /// The address, with the mirror applied.
    pub address: Address,
    /// How it is verified.
    pub checksum: Checksum,
    /// The binaries that it contains.
    pub(crate) content: Content,
}

impl Artifact {
    /// Its path below a store, and below `programs/` in a bundle.
    pub(crate) fn place(&self) -> String {
        let (component, arch) = (self.component.name(), self.arch.as_str());
        format!("{component}/v{}/{arch}/{}", self.version, self.address.file_name())
    }
}

/// The content of a published file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// The file is the binary of this name.
    Program(String),
    /// A `.tar.gz`, of which these members are used (path, name of the binary).
    Members(Vec<(String, String)>),
    /// A `.tar.gz`, of which every executable file at the top level is used.
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
