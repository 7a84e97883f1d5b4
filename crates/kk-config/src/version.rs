//! Kubernetes versions: parsing, order, and the range that kk installs.

use std::fmt;
use std::str::FromStr;

/// The version of a cluster whose file sets none: the newest patch in the catalogue of a minor version that the project's
/// end-to-end tests run. (KubeKey's own default is v1.23.17.)
pub const DEFAULT_KUBERNETES_VERSION: &str = "v1.36.4";

/// Oldest minor of Kubernetes 1 that can be installed.
pub const OLDEST_MINOR: u32 = 28;
/// Newest minor of Kubernetes 1 that can be installed.
pub const NEWEST_MINOR: u32 = 37;

/// A released version of Kubernetes. Displayed with a leading `v`, parsed with or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubeVersion {
    /// Always 1 so far.
    pub major: u32,
    /// The `30` of v1.30.2.
    pub minor: u32,
    /// The `2` of v1.30.2.
    pub patch: u32,
}

impl KubeVersion {
    /// Whether this is `major.minor` or newer, regardless of the patch.
    pub fn at_least(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// Whether kk can install the version (1.28 to 1.37).
    pub fn is_supported(self) -> bool {
        self.major == 1 && (OLDEST_MINOR..=NEWEST_MINOR).contains(&self.minor)
    }
}

impl Default for KubeVersion {
    /// [`DEFAULT_KUBERNETES_VERSION`].
    fn default() -> Self {
        DEFAULT_KUBERNETES_VERSION.parse().expect("the constant is a version")
    }
}

impl fmt::Display for KubeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The text is not `v<major>.<minor>.<patch>`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a Kubernetes version")]
pub struct InvalidVersion(pub String);

impl FromStr for KubeVersion {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let numbers: Option<Vec<u32>> =
            text.strip_prefix('v').unwrap_or(text).split('.').map(number).collect();
        match numbers.as_deref() {
            Some(&[major, minor, patch]) => Ok(Self { major, minor, patch }),
            _ => Err(InvalidVersion(text.to_owned())),
        }
    }
}

/// Accepts only digits: `u32::from_str` alone would also accept `+1`.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_version_with_and_without_v() {
        let version = KubeVersion { major: 1, minor: 30, patch: 2 };
        assert_eq!("v1.30.2".parse(), Ok(version));
        assert_eq!("1.30.2".parse(), Ok(version));
        assert_eq!(version.to_string(), "v1.30.2");
    }

    #[test]
    fn refuses_what_is_no_released_version() {
        for text in ["", "v", "1.30", "v1.30.2.1", "v1.30.+2", "v1.30.2-rc.1", "vv1.30.2", "v1.30.x", "v1..2"]
        {
            assert!(text.parse::<KubeVersion>().is_err(), "{text}");
        }
    }

    #[test]
    fn orders_by_number_not_by_text() {
        let [nine, ten] = ["v1.9.0", "v1.10.0"].map(|text| text.parse::<KubeVersion>().unwrap());
        assert!(nine < ten && ten.at_least(1, 10) && !nine.at_least(1, 10));
    }

    #[test]
    fn supports_its_own_default() {
        assert!(KubeVersion::default().is_supported());
    }
}
