//! Stop the kubelet, so that it starts no pod again.

use kk_engine::{HostWork, Task, actions::Command};

use crate::model::inputs::Inputs;

/// A host without a kubelet has nothing to stop.
const SCRIPT: &str = "
systemctl disable -q --now kubelet.service 2>/dev/null || systemctl stop kubelet.service 2>/dev/null || :
";

pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("stop_kubelet", "Stop kubelet");
    for (host, _) in inputs.nodes() {
        let stop = Command::new("stop the kubelet", SCRIPT);
        task = task.on(&host.name, HostWork::new(vec![Box::new(stop)]));
    }
    task
}
