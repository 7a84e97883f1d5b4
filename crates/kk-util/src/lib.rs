//! Helpers that several crates need: checksums in hexadecimal, free space, and files that only their owner can read.
//!
//! The crate has no state. A helper is moved here when a third crate needs it; until then it stays in the crate that uses it.

mod private;
mod space;
mod sums;

pub use private::{create_private_directory, open_private, write_private};
pub use space::free_space;
pub use sums::{hex, sha256};
