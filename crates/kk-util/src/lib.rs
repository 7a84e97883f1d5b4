//! What several crates need and none owns: sums in hexadecimal, and files that only their owner can read.
//!
//! Has no state. A helper comes here when a third crate needs it; until then it stays where it is used.

mod private;
mod sums;

pub use private::{create_private_directory, open_private, write_private};
pub use sums::{hex, sha256};
