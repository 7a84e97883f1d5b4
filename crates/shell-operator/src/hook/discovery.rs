//! Finds the hooks among the files of the hooks directory.
//!
//! An executable file is a hook, unless its name or its directory's name starts with a dot, it is in a directory `lib` or
//! `lost+found` (which is at the top of many volumes), or it ends in `.yaml`, `.json`, `.md` or `.txt`. `ConfigMap` volumes work:
//! their files are links to files in a hidden directory.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The result of a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Hooks, sorted by path.
    pub hooks: Vec<PathBuf>,
    /// Files that look like hooks but are not.
    pub warnings: Vec<String>,
}

/// Searches `dir` and everything below it.
pub fn discover(dir: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    walk(dir, &mut found)?;
    warn_about_lib(dir, &mut found);
    found.hooks.sort_unstable();
    Ok(found)
}

fn walk(dir: &Path, found: &mut Found) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            if !["lib", "lost+found"].contains(&name.as_str()) {
                let named =
                    |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
                walk(&path, found).map_err(named)?;
            }
        } else {
            look_at(path, &name, found);
        }
    }
    Ok(())
}

fn look_at(path: PathBuf, name: &str, found: &mut Found) {
    const NO_HOOKS: [&str; 4] = [".yaml", ".json", ".md", ".txt"];
    if NO_HOOKS.iter().any(|ending| name.ends_with(ending)) {
        return;
    }
    // Follows links: the mode of the file itself decides whether it can be run.
    match fs::metadata(&path) {
        Ok(meta) if meta.is_dir() => {
            found.warnings.push(format!("{}: a link to a directory is not followed", path.display()));
        }
        Ok(meta) if meta.permissions().mode() & 0o111 == 0 => found.warnings.push(format!(
            "{}: no executable permissions, chmod +x is required to run this hook (for a ConfigMap volume set \
             defaultMode: 0755)",
            path.display()
        )),
        Ok(meta) if meta.is_file() => found.hooks.push(path),
        Ok(_) => found.warnings.push(format!("{}: it is not a file", path.display())),
        Err(error) => found.warnings.push(format!("{}: {error}", path.display())),
    }
}

fn warn_about_lib(dir: &Path, found: &mut Found) {
    let Ok(entries) = fs::read_dir(dir.join("lib")) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let executable = |meta: fs::Metadata| meta.is_file() && meta.permissions().mode() & 0o111 != 0;
        if fs::metadata(&path).is_ok_and(executable) {
            let text = format!(
                "{}: files in 'lib' are not run as hooks, though this one is executable",
                path.display()
            );
            found.warnings.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, name: &str, mode: u32) {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn finds_programs_in_the_order_of_their_paths() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["podHooks/hook2.sh", "hook.sh", "podHooks/hook.sh", "a/b/c", "x.yml"] {
            write(dir.path(), name, 0o750);
        }
        for name in
            [".hidden", ".git/hook", "lib/helper.sh", "a/lib/helper", "x.yaml", "x.json", "R.md", "n.txt"]
        {
            write(dir.path(), name, 0o755);
        }
        write(dir.path(), "README", 0o644);
        let found = discover(dir.path()).unwrap();
        let names: Vec<_> = found.hooks.iter().map(|path| path.strip_prefix(dir.path()).unwrap()).collect();
        assert_eq!(
            names,
            ["a/b/c", "hook.sh", "podHooks/hook.sh", "podHooks/hook2.sh", "x.yml"].map(Path::new)
        );
        assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
        assert!(found.warnings.iter().any(|text| text.contains("README: no executable permissions")));
        assert!(found.warnings.iter().any(|text| text.contains("lib/helper.sh")));
    }

    #[test]
    fn a_config_map_volume_is_understood() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "..2026_01_01/hook.sh", 0o755);
        write(dir.path(), "..2026_01_01/plain.sh", 0o644);
        std::os::unix::fs::symlink("..2026_01_01", dir.path().join("..data")).unwrap();
        for name in ["hook.sh", "plain.sh"] {
            std::os::unix::fs::symlink(format!("..data/{name}"), dir.path().join(name)).unwrap();
        }
        let found = discover(dir.path()).unwrap();
        assert_eq!(found.hooks, [dir.path().join("hook.sh")]);
        assert!(found.warnings[0].contains("defaultMode"));
    }

    /// Only regular files may be opened: opening a pipe would block.
    #[test]
    fn what_is_no_file_is_no_hook() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "hook with a space.sh", 0o755);
        write(dir.path(), "lost+found/hook", 0o755);
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").args(["-m", "755"]).arg(&pipe).status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink("loop", dir.path().join("loop")).unwrap();
        let found = discover(dir.path()).unwrap();
        assert_eq!(found.hooks, [dir.path().join("hook with a space.sh")]);
        assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
    }

    #[test]
    fn an_empty_directory_has_no_hooks_and_a_missing_one_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(discover(dir.path()).unwrap(), Found::default());
        assert!(discover(&dir.path().join("none")).is_err());
    }
}
