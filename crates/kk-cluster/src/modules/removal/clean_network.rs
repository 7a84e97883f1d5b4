//! Clean up what kube-proxy and the network plugin left in the kernel.

use std::fmt::Write as _;

use kk_config::{FlannelBackend, NetworkPlugin};
use kk_engine::{HostWork, Task, actions::Command};

use super::Removal;

/// Only chains, sets, links and namespaces that carry Kubernetes' own names at their beginning; of CNI's chains those of
/// the portmap plugin. Tables are written back whole without them, in one step each, so that the host's own rules never
/// vanish for a moment. A namespace in which a process lives is somebody else's.
const SCRIPT: &str = r#"
ours='^(:|-A )(KUBE|FLANNEL|CNI-DN|CNI-HOSTPORT)-| -[jg] (KUBE|FLANNEL|CNI-DN|CNI-HOSTPORT)-'
for tool in iptables ip6tables; do
    command -v $tool-save >/dev/null || continue
    $tool-save >rules 2>/dev/null || continue
    grep -qE "$ours" rules || continue
    grep -vE "$ours" rules | $tool-restore
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
for space in $(ip netns list 2>/dev/null | grep -oE '^cni-[0-9a-f-]+'); do
    for _ in $(seq 20); do
        [ -n "$(ip netns pids "$space" 2>/dev/null)" ] || { ip netns delete "$space" || :; break; }
        sleep 0.1 2>/dev/null || sleep 1
    done
done
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

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, process};

    use super::SCRIPT;

    #[test]
    fn rules_of_others_stay_whatever_their_names() {
        let kept = "*filter\n:INPUT ACCEPT [0:0]\n:MY-KUBE-RULES - [0:0]\n:CNI-FORWARD - [0:0]\n\
            -A INPUT -m comment --comment \"no CNI-DN- here\" -j ACCEPT\n-A INPUT -j MY-KUBE-RULES\nCOMMIT\n";
        let ours = ":KUBE-SERVICES - [0:0]\n:CNI-HOSTPORT-DNAT - [0:0]\n:FLANNEL-FWD - [0:0]\n\
            -A INPUT -m comment --comment \"kubernetes\" -j KUBE-SERVICES\n-A KUBE-SERVICES -d 10.0.0.1/32 -j REJECT\n\
            -A FORWARD -j FLANNEL-FWD\n-A CNI-HOSTPORT-DNAT -p tcp -j CNI-DN-0123\n";
        let folder = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        fs::write(folder.path().join("saved"), kept.replace("COMMIT\n", ours) + "COMMIT\n").unwrap();
        program("iptables-save", "cat saved");
        program("iptables-restore", "cat >restored");
        // None of this machine's is asked or touched.
        program("ip6tables-save", "exit 1");
        for name in ["ip", "nft", "ipset"] {
            program(name, "exit 1");
        }
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let script = process::Command::new("sh")
            .args(["-euc", SCRIPT])
            .current_dir(&folder)
            .env("PATH", path)
            .status()
            .unwrap();
        assert!(script.success());
        assert_eq!(fs::read_to_string(folder.path().join("restored")).unwrap(), kept);
    }
}
