//! Owner of a run on hosts: the directory of a cluster on the control machine. If a run was killed, the next run in the same
//! directory may start at once, because only one run at a time works in a directory.

use std::{env, fs, path::Path};

use kk_engine::Owner;

/// The owner of a run in `directory` (`kubekey/<cluster>`).
pub(crate) fn owner(directory: &Path) -> Owner {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let machine = read("/proc/sys/kernel/hostname");
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let directory = directory.display();
    let user = env::var("USER").unwrap_or_else(|_| "kk".into());
    Owner::new(
        format!("{machine} {} {directory}", read("/etc/machine-id")),
        format!("{user}@{machine}, process {}, in {directory}", std::process::id()),
    )
}
