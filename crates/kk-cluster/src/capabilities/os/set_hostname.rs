//! Set the host name.

use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use crate::inputs::Inputs;

/// Names each machine as the file names it. `/etc/hostname` is written and the kernel told directly, because
/// `hostnamectl` needs a running service that containers and small systems lack.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("set_hostname", "Set host name");
    if !inputs.spec.system.set_hostname {
        return task;
    }
    for (host, _) in inputs.hosts() {
        let name = host.name.clone();
        let script = format!(
            "printf '%s\\n' {name} >hostname\nkk_put hostname /etc/hostname 644 root:root\nhostname {name}\n",
            name = quote(&host.name)
        );
        let action = Command::new(format!("set the host name to {}", host.name), script)
            .when(move |facts| facts.hostname != name);
        task = task.on(&host.name, HostWork::new(vec![Box::new(action)]));
    }
    task
}
