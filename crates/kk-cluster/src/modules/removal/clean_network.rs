//! Clean up what kube-proxy and the network plugin left in the kernel.

use std::fmt::Write as _;

use kk_config::{FlannelBackend, NetworkPlugin};
use kk_engine::{HostWork, Task, actions::Command};

use super::Removal;

/// Only chains, sets, links and namespaces that carry Kubernetes' own names. Tables are written back whole without
/// them, in one step each, so that the host's own rules never vanish for a moment.
const SCRIPT: &str = r#"
for tool in iptables ip6tables; do
    command -v $tool-save >/dev/null || continue
    $tool-save >rules 2>/dev/null || continue
    grep -qE 'KUBE-|CNI-|FLANNEL-' rules || continue
    grep -vE '(KUBE|CNI|FLANNEL)-' rules | $tool-restore
done
if command -v nft >/dev/null; then
    for family in ip ip6; do nft delete table $family kube-proxy 2>/dev/null || :; done
    for family in ip ip6; do nft delete table $family flannel-ipv${family#ip} 2>/dev/null || :; done
fi
if command -v ipset >/dev/null; then
    for set in $(ipset list -n 2>/dev/null | grep -E '^KUBE-'); do ipset destroy "$set" 2>/dev/null || :; done
fi
for link in cni0 flannel.1 flannel-v6.1 kube-ipvs0; do
    ! ip link show "$link" >/dev/null 2>&1 || ip link delete "$link"
done
for space in $(ip netns list 2>/dev/null | grep -oE '^cni-[0-9a-f-]+'); do ip netns delete "$space" || :; done
"#;

/// On every node.
pub(super) fn task(removal: &Removal) -> Task {
    let mut script = SCRIPT.to_owned();
    if removal.spec.network.plugin == NetworkPlugin::Flannel(FlannelBackend::HostGw) {
        let _ = writeln!(script, "ip route flush root {}", removal.spec.network.pods);
    }
    let mut task = Task::new("clean_network", "Clean up the network");
    for host in removal.hosts() {
        if host.is_node() {
            let clean = Command::new("remove packet filter rules and links of Kubernetes", script.clone());
            task = task.on(&host.name, HostWork::new(vec![Box::new(clean)]));
        }
    }
    task
}
