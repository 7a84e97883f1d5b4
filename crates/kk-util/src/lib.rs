//! What several crates need and none owns: sums in hexadecimal, files that only their owner can read, and text that is safe
//! on a terminal.
//!
//! Has no state. A helper comes here when a third crate needs it; until then it stays where it is used.

mod escape;
mod private;
mod sums;

pub use escape::{escape_controls, escape_json_controls};
pub use private::{create_private_directory, open_private, write_private};
pub use sums::{hex, sha256};
