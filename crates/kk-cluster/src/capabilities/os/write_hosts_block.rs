//! Write the names of the hosts into /etc/hosts.

use kk_engine::{HostWork, Task, actions::Block};

use crate::inputs::Inputs;

/// First line of the block; KubeKey's own, so that a cluster made by it is taken over cleanly.
const BEGIN: &str = "# kubekey hosts BEGIN";
/// Last line of the block.
const END: &str = "# kubekey hosts END";

/// Every host knows every other by name, and the address of the API.
pub(super) fn task(inputs: &Inputs) -> Task {
    let block = block(inputs);
    let mut task = Task::new("write_hosts_block", "Write /etc/hosts");
    for (host, _) in inputs.hosts() {
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(Block::new("/etc/hosts", BEGIN, END, block.clone()))]),
        );
    }
    task
}

fn block(inputs: &Inputs) -> String {
    let spec = inputs.spec;
    let mut lines = Vec::new();
    for host in &spec.hosts {
        lines.push(format!(
            "{}  {}.{} {}",
            host.internal_address, host.name, spec.kubernetes.cluster_name, host.name
        ));
        if let Some(address) = host.internal_address_v6 {
            lines.push(format!("{address}  {}.{} {}", host.name, spec.kubernetes.cluster_name, host.name));
        }
    }
    lines.extend(spec.dns.node_etc_hosts.iter().cloned());
    let endpoint = &spec.control_plane_endpoint;
    if let (false, Some(address)) = (endpoint.external_dns, endpoint.address) {
        lines.push(format!("{address}  {}", endpoint.domain));
    }
    lines.join("\n") + "\n"
}
