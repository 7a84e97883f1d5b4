//! Stop the kubelet, so that it starts no pod again.

use kk_engine::{HostWork, Task, actions::Command};

use super::Removal;

const SCRIPT: &str = "
systemctl disable -q --now kubelet.service 2>/dev/null || systemctl stop kubelet.service 2>/dev/null || :
";

/// A host without a kubelet has nothing to stop.
pub(super) fn task(removal: &Removal) -> Task {
    let mut task = Task::new("stop_kubelet", "Stop kubelet");
    for host in removal.hosts() {
        if host.is_node() {
            task =
                task.on(&host.name, HostWork::new(vec![Box::new(Command::new("stop the kubelet", SCRIPT))]));
        }
    }
    task
}
