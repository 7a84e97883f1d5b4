//! Lists the files of `templates/`, each with its text: they are compiled in.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../templates").canonicalize()?;
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut names = Vec::new();
    collect(&directory, "", &mut names)?;
    names.sort();
    let mut list = "&[\n".to_owned();
    for name in names {
        let path = directory.join(&name).display().to_string();
        writeln!(list, "    ({name:?}, include_str!({path:?})),")?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("templates.rs"), list + "]\n")?;
    Ok(())
}

/// Adds the files below a directory, by their paths from the first one on.
fn collect(directory: &Path, before: &str, names: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        // What editors leave.
        if entry.file_name().to_string_lossy().starts_with('.') || name.ends_with('~') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), names)?;
        } else {
            names.push(name);
        }
    }
    Ok(())
}
