//! Network plugins, in one directory each. Other directories use a plugin only through this module.

mod calico;
mod check;
mod cilium;
pub(crate) mod flannel;
mod none;
mod remove;
mod restart;

use kk_config::{Host, NetworkPlugin, Spec};
use kk_engine::{Facts, Task};

use crate::{
    base::{shell::script, supply::OwnAddon},
    model::{capability::Capability, cluster::Cluster, inputs::Inputs},
};

/// The plugins that kk installs, by their names in the file. The manifest of a plugin has the same name.
const INSTALLED: [(&str, &dyn Capability); 3] =
    [("calico", &calico::Calico), ("flannel", &flannel::Flannel), (cilium::NAME, &cilium::Cilium)];

/// The plugin that the file specifies.
pub(crate) fn capability(spec: &Spec) -> &'static dyn Capability {
    match &spec.network.plugin {
        NetworkPlugin::Calico(_) => &calico::Calico,
        NetworkPlugin::Flannel(_) => &flannel::Flannel,
        NetworkPlugin::Cilium => &cilium::Cilium,
        NetworkPlugin::None => &none::NoPlugin,
    }
}

/// The addon with which kk installs the plugin of the file, if the plugin is a chart.
pub(crate) fn own_addon(cluster: &Cluster) -> Option<OwnAddon> {
    (cluster.spec.network.plugin == NetworkPlugin::Cilium).then(|| cilium::addon(cluster))
}

/// The name of that addon.
pub(crate) fn own_release(spec: &Spec) -> Option<&'static str> {
    (spec.network.plugin == NetworkPlugin::Cilium).then_some(cilium::NAME)
}

/// The note that kk has installed a plugin.
pub(crate) fn note(plugin: &str) -> String {
    check::note(plugin)
}

/// The links of plugins that addons or users install. A `*` stands for any end of a name.
pub(crate) const INTERFACES_OF_OTHERS: &[&str] =
    &["cali*", "tunl*", "vxlan.calico", "cilium*", "lxc*", "kube-bridge", "kube-dummy-if"];

/// Whether a cluster of this file may have a plugin that [`remove_others`] knows, even without addons.
pub(crate) fn may_be_of_others(spec: &Spec) -> bool {
    matches!(spec.network.plugin, NetworkPlugin::Cilium | NetworkPlugin::None)
}

/// Removes the traces of these plugins from nodes, by names that only they use.
pub(crate) fn remove_others(inputs: &Inputs) -> Task {
    remove::task(inputs, "other_plugins", &of_others(inputs))
}

/// The script for plugins whose own programs create everything on nodes.
fn of_others(inputs: &Inputs) -> String {
    let pods = inputs.spec.network.pods.to_string();
    script(&[("pods", &pods)], include_str!("remove_others.sh"))
}

/// The nodes whose network this run restores.
pub(crate) fn lost<'a>(inputs: &Inputs<'a>) -> Vec<&'a Host> {
    match &inputs.spec.network.plugin {
        NetworkPlugin::Calico(_) => calico::AGENT.lacking(inputs),
        NetworkPlugin::Flannel(_) => flannel::AGENT.lacking(inputs),
        NetworkPlugin::Cilium | NetworkPlugin::None => Vec::new(),
    }
}

/// Whether a node has reported that its network works. A missing answer does not count as "yes".
pub(crate) fn works(inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
    match &inputs.spec.network.plugin {
        NetworkPlugin::Flannel(_) => flannel::links::work(inputs, host, facts),
        // Their links are not probed; the verification queries pods on other nodes.
        NetworkPlugin::Calico(_) | NetworkPlugin::Cilium | NetworkPlugin::None => true,
    }
}

/// Why a node that was asked about its network gave no answer.
pub(crate) fn silence(inputs: &Inputs, facts: &Facts) -> Option<String> {
    match &inputs.spec.network.plugin {
        NetworkPlugin::Flannel(_) => {
            facts.answer(&flannel::links::LINKS).unanswered().map(ToString::to_string)
        }
        NetworkPlugin::Calico(_) | NetworkPlugin::Cilium | NetworkPlugin::None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use crate::{
        base::shell::{EMPTY, REMOVE_CHAINS, script},
        testing,
    };

    const DIRECTORIES: [&str; 8] = [
        "/sys/class/net",
        "/sys/fs/bpf",
        "/etc/cni",
        "/etc/sysctl.d",
        "/opt/cni",
        "/var/lib",
        "/var/log",
        "/run",
    ];

    /// A host with this content. Its commands keep rules, sets and links in files.
    fn host(here: &Path, links: &[&str], files: &[&str], rules: &str, sets: &str) {
        for directory in DIRECTORIES {
            fs::create_dir_all(here.join(&directory[1..])).unwrap();
        }
        for link in links {
            fs::create_dir(here.join("sys/class/net").join(link)).unwrap();
        }
        for file in files {
            let path = here.join(&file[1..]);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(here.join("table"), rules).unwrap();
        fs::write(here.join("sets.there"), sets).unwrap();
        fs::write(here.join("calls"), "").unwrap();
        let program = |name: &str, text: &str| testing::program(here, name, text);
        program("iptables-save", "cat table");
        program("iptables-restore", "cat >table.new; mv table.new table");
        program("ip6tables-save", "exit 1");
        program("tc", "exit 0");
        program("nft", "exit 1");
        program(
            "ipset",
            "case $1 in list) cat sets.there ;; destroy) grep -vxF -e \"$2\" sets.there >sets.new; mv sets.new sets.there ;; esac",
        );
        program(
            "ip",
            "case \"$*\" in 'link show '*) [ -e sys/class/net/\"$3\" ] ;; 'link delete '*) rmdir sys/class/net/\"$3\" ;; \
             *'rule show') cat \"rules.of$1\" 2>/dev/null ;; *'rule delete lookup'*) exit 2 ;; *) echo \"$*\" >>calls ;; esac",
        );
    }

    /// Runs the script on that host.
    fn remove(here: &Path) {
        let mut text = script(&[("pods", "10.233.64.0/18")], include_str!("remove_others.sh"));
        for directory in DIRECTORIES {
            text = text.replace(directory, &format!("{}{directory}", here.display()));
        }
        let library =
            format!("{EMPTY}{REMOVE_CHAINS}kk_note() {{ echo \"$*\"; }}\nkk_fail() {{ echo \"$*\" >&2; }}\n");
        let output = testing::run_script(here, &format!("{library}{text}"));
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn only_traces_of_known_plugins_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        let kept = "*filter\n:INPUT ACCEPT [0:0]\n:MY-CILIUM_X - [0:0]\n-A FORWARD -i kube-bridge0 -j ACCEPT\n\
            -A INPUT -m set --match-set my-kube-router-set src -j DROP\n-A INPUT -j calico-of-mine\nCOMMIT\n";
        let removed = ":KUBE-ROUTER-INPUT - [0:0]\n:cali-FORWARD - [0:0]\n:CILIUM_INPUT - [0:0]\n\
            -A INPUT -m comment --comment \"kube-router netpol\" -j KUBE-ROUTER-INPUT\n-A FORWARD -i kube-bridge -j ACCEPT\n\
            -A FORWARD -m comment --comment \"cali:x\" -j cali-FORWARD\n-A FORWARD -m comment --comment \"cali:y\" -m mark --mark 0x10000/0x10000 -j ACCEPT\n\
            -A INPUT -j CILIUM_INPUT\n\
            -A POSTROUTING -m set --match-set kube-router-pod-subnets src -j MASQUERADE\n";
        let stays = ["cali-of-mine", "eth0", "lxcbr0", "tun-office", "tunl0"];
        let goes = [
            "cali0123456789a",
            "cilium_host",
            "kube-bridge",
            "lxc0123456789ab",
            "lxc_health",
            "tun-0123456789a",
        ];
        host(
            here,
            &[&stays[..], &goes].concat(),
            &[
                "/etc/cni/net.d/10-kuberouter.conflist",
                "/etc/cni/net.d/10-mine.conf",
                "/etc/cni/net.d/20-mine.conflist.cilium_bak",
                "/etc/cni/net.d/10-flannel.conflist.cilium_bak",
                "/etc/cni/net.d/10-calico.conflist.cilium_bak",
                "/etc/cni/net.d/00-multus.conf",
                "/run/multus/socket",
                "/var/lib/mine/file",
                "/sys/fs/bpf/mine/pin",
                "/sys/fs/bpf/cilium/devices/pin",
                "/sys/fs/bpf/tc/globals/cilium_calls",
                "/etc/sysctl.d/99-zzz-override_cilium.conf",
                "/run/cilium/state/file",
            ],
            &kept.replace("COMMIT\n", &format!("{removed}COMMIT\n")),
            "mine\nKUBE-SRC-ABC\ninet6:kube-router-node-ips\ncali40s:0123\nkube-router-pod-subnets\n",
        );
        fs::write(here.join("rules.of-4"), "100:\tfrom all lookup local\n32766:\tfrom all lookup main\n")
            .unwrap();
        remove(here);
        assert_eq!(fs::read_to_string(here.join("table")).unwrap(), kept);
        assert_eq!(fs::read_to_string(here.join("sets.there")).unwrap(), "mine\n");
        assert_eq!(names(&here.join("sys/class/net")), stays);
        assert_eq!(names(&here.join("etc/cni/net.d")), ["10-mine.conf", "20-mine.conflist"]);
        assert_eq!(names(&here.join("sys/fs/bpf")), ["mine"]);
        assert_eq!(
            (names(&here.join("run")), names(&here.join("var/lib"))),
            (vec![], vec!["mine".to_owned()])
        );
        assert!(names(&here.join("etc/sysctl.d")).is_empty());
        let calls = fs::read_to_string(here.join("calls")).unwrap();
        for call in [
            "route flush root 10.233.64.0/18 proto 17",
            "-6 route flush table 77",
            "-4 rule add pref 0 lookup local",
            "-4 rule delete pref 100 lookup local",
        ] {
            assert!(calls.lines().any(|line| line == call), "{call}: {calls}");
        }
        assert!(!calls.contains("-6 rule add") && !calls.contains("proto bird"), "{calls}");
    }

    /// The host may have another router, whose routes have the same origin.
    #[test]
    fn routes_and_rules_of_a_host_without_these_plugins_stay() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        let rules = "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n";
        host(here, &["eth0"], &[], rules, "mine\n");
        fs::write(here.join("rules.of-4"), "0:\tfrom all lookup local\n").unwrap();
        remove(here);
        let calls = fs::read_to_string(here.join("calls")).unwrap();
        let others = calls.lines().filter(|line| !line.contains("route flush table 200"));
        assert_eq!(others.collect::<Vec<_>>(), [""; 0]);
        assert_eq!(fs::read_to_string(here.join("table")).unwrap(), rules);
    }
}
