//! Random words that mark what is whose in a stream, and that nobody can guess beforehand.

/// 16 random hex digits, from the kernel.
pub fn nonce() -> String {
    let random = getrandom::u64().expect("the kernel has random bytes");
    format!("{random:016x}")
}
