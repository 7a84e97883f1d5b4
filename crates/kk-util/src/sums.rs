//! SHA-256 checksums as text.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The SHA-256 of some bytes, as `sha256sum` prints it.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hex(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_sum_is_that_of_sha256sum() {
        // FIPS 180-2, appendix B.1.
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(super::sha256("abc"), sum);
        assert_eq!(super::hex([0, 0x0a, 0xff]), "000aff");
    }
}
