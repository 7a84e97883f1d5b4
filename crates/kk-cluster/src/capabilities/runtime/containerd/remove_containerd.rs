//! Remove containerd and its data.

use kk_engine::{HostWork, Task, actions::Command};

use super::{check::UNIT, immutable::data_of};
use crate::{base::shell, model::inputs::Inputs};

/// Only a containerd that kk installed. Paths in the record are removed with the record.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("remove_containerd", "Remove containerd");
    for (host, facts) in inputs.nodes() {
        if facts.owns(UNIT) {
            let text = script(&data_of(inputs, facts));
            let remove = Command::new("stop containerd and remove its data", text);
            task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
        }
    }
    task
}

fn script(data: &str) -> String {
    shell::script(&[("data", data)], &format!("{}{}", shell::EMPTY, include_str!("remove_containerd.sh")))
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::script;

    #[test]
    fn only_what_the_runtime_made_in_its_directory_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("da ta");
        for made in ["io.containerd.snapshotter.v1.overlayfs/snapshots/1", "tmpmounts/x", "mine/deep"] {
            fs::create_dir_all(data.join(made)).unwrap();
            fs::write(data.join(made).join("file"), "").unwrap();
        }
        // The script must not stop, end, unmount or empty anything on the control machine.
        let harmless = "systemctl() { :; }\npkill() { :; }\numount() { :; }\nxargs() { :; }\n";
        let text = script(data.to_str().unwrap()).replace("empty /run/containerd", "");
        let status = Command::new("sh").args(["-euc", &format!("{harmless}{text}")]).status().unwrap();
        assert!(status.success());
        let left: Vec<_> = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["mine"]);
        assert!(data.join("mine/deep/file").exists());
    }
}
