//! Random words that mark the parts of a stream. They cannot be guessed beforehand.

/// 16 random hex digits, from the kernel.
pub fn nonce() -> String {
    let random = getrandom::u64().expect("the kernel has random bytes");
    format!("{random:016x}")
}
