//! In which packages a distribution has the programs that a node needs.

use std::collections::BTreeSet;

/// Program, and its package with dpkg, with rpm of the Red Hat family, and with zypper.
const PACKAGES: [(&str, [&str; 3]); 11] = [
    ("tar", ["tar", "tar", "tar"]),
    ("mount", ["mount", "util-linux", "util-linux"]),
    ("umount", ["mount", "util-linux", "util-linux"]),
    ("ip", ["iproute2", "iproute", "iproute2"]),
    ("iptables", ["iptables", "iptables-nft", "iptables"]),
    ("conntrack", ["conntrack", "conntrack-tools", "conntrack-tools"]),
    ("socat", ["socat", "socat", "socat"]),
    ("modprobe", ["kmod", "kmod", "kmod"]),
    ("nsenter", ["util-linux", "util-linux-core", "util-linux"]),
    ("ipset", ["ipset", "ipset", "ipset"]),
    ("ipvsadm", ["ipvsadm", "ipvsadm", "ipvsadm"]),
];

/// How to install these programs on a host whose `ID` in os-release is `os_id`.
pub(super) fn hint(os_id: &str, programs: &[&str]) -> String {
    let (command, column) = match os_id {
        "debian" | "ubuntu" | "linuxmint" | "raspbian" | "uos" | "deepin" => ("apt-get install", 0),
        "rhel" | "centos" | "rocky" | "almalinux" | "fedora" | "ol" | "amzn" | "openEuler" | "anolis"
        | "alinux" | "kylin" | "tencentos" => ("dnf install", 1),
        "opensuse-leap" | "opensuse-tumbleweed" | "sles" | "sled" => ("zypper install", 2),
        _ => ("install them with the host's package manager; Debian calls the packages", 0),
    };
    let package =
        |program: &&str| PACKAGES.iter().find(|(name, _)| name == program).map(|(_, names)| names[column]);
    let packages: BTreeSet<&str> = programs.iter().filter_map(package).collect();
    format!("{command} {}", packages.into_iter().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::os::check::NODE_TOOLS;

    #[test]
    fn each_family_has_its_own_names() {
        let missing = ["conntrack", "ip", "mount", "umount"];
        for (os, said) in [
            ("ubuntu", "apt-get install conntrack iproute2 mount"),
            ("rocky", "dnf install conntrack-tools iproute util-linux"),
            ("sles", "zypper install conntrack-tools iproute2 util-linux"),
        ] {
            assert_eq!(hint(os, &missing), said);
        }
        assert!(hint("plan9", &missing).contains("package manager"));
    }

    #[test]
    fn every_tool_has_a_package() {
        for tool in NODE_TOOLS {
            assert!(PACKAGES.iter().any(|(name, _)| *name == tool), "{tool}");
        }
    }
}
