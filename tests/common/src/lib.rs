//! Code that the scenarios, the benches, the simulated fleet and the fuzz targets share. It holds no state.

use std::{fs, io::Write as _, path::Path};

use anyhow::{Context as _, Result};

pub mod events;
pub mod figure;
pub mod fuzz;

/// One line. A closed stdout is no failure.
pub fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

/// Makes the directory, without what an earlier run left in it.
pub fn empty(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot empty {}", dir.display()));
        }
        _ => {}
    }
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))
}
