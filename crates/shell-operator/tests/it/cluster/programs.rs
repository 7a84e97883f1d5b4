//! The paths of the programs of the control plane.

use std::path::PathBuf;

/// The lab's cache, as `kk-lab` lays it out: `programs/<component>-<version>-<key>/<program>`.
fn cache() -> PathBuf {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    var("KK_LAB_CACHE")
        .or_else(|| Some(var("XDG_CACHE_HOME")?.join("kk-lab")))
        .or_else(|| Some(var("HOME")?.join(".cache/kk-lab")))
        .expect("HOME is set")
}

/// The program of a component whose directory name starts with `component`, the newest one.
pub(crate) fn find(component: &str, program: &str) -> PathBuf {
    let programs = cache().join("programs");
    let mut found: Vec<(std::time::SystemTime, PathBuf)> = std::fs::read_dir(&programs)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(component))
        .filter_map(|entry| {
            let path = entry.path().join(program);
            Some((path.metadata().ok()?.modified().ok()?, path))
        })
        .collect();
    found.sort();
    let missing = format!(
        "{program} of {component}* is not in {}: run `make programs` (it builds Kubernetes and etcd once), or set KK_LAB_CACHE",
        programs.display()
    );
    found.pop().expect(&missing).1
}
