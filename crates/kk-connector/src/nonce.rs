//! Unpredictable random words that mark positions in a stream.

/// 16 random hex digits, from the kernel.
pub fn nonce() -> String {
    let random = getrandom::u64().expect("the kernel has random bytes");
    format!("{random:016x}")
}
