//! On whose behalf the control machine works on hosts: the directory of a cluster on it. The next run in the same directory may
//! go on at once where one was killed, because there only one runs at a time.

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
