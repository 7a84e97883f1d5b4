//! Files in the form of real files of KubeKey: each of `tests/kubekey/` loads, or is refused for exactly the reasons that the
//! table says.
//!
//! The files are in the proportions of public files: most have Calico, several have haproxy or kube-vip, some have docker and old
//! versions. When kk learns to install something, add it to [`INSTALLED`]: all rows follow.

use kk_config::{Overrides, load};
use std::collections::BTreeSet;
use std::path::Path;

/// Stands for every secret in the files.
const SENTINEL: &str = "SENTINEL";

/// A reason to refuse a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    Calico,
    Cilium,
    Haproxy,
    KubeVipPeers,
    Docker,
    OldKubernetes,
}

use Why::{Calico, Cilium, Docker, Haproxy, KubeVipPeers, OldKubernetes};

/// Reasons that no longer apply, because kk can install this.
const INSTALLED: &[Why] = &[Calico, Cilium, Haproxy];

impl Why {
    const ALL: [Self; 6] = [Calico, Cilium, Haproxy, KubeVipPeers, Docker, OldKubernetes];

    /// The beginning of the error.
    fn message(self) -> &'static str {
        match self {
            Calico => "the network plugin `calico` cannot be installed",
            Cilium => "the network plugin `cilium` cannot be installed",
            Haproxy => "the load balancer `haproxy` cannot be installed",
            KubeVipPeers => "kube-vip in mode BGP has no router",
            Docker => "the container runtime `docker` is not supported",
            OldKubernetes => "Kubernetes v1.",
        }
    }
}

/// The file, and the reasons to refuse it.
const CASES: [(&str, &[Why]); 20] = [
    ("01-template", &[Calico]),
    ("02-single-node", &[Calico]),
    ("03-three-all-roles-haproxy", &[Calico, Haproxy]),
    ("04-three-all-roles-haproxy-kubesphere", &[Calico, Haproxy]),
    ("05-ha-haproxy-workers", &[Calico, Haproxy]),
    ("06-ha-haproxy-ranges", &[Calico, Haproxy]),
    ("07-ha-kube-vip", &[Calico]),
    ("08-ha-kube-vip-bgp", &[Cilium, KubeVipPeers]),
    ("09-ha-external-balancer", &[Calico]),
    ("10-harbor", &[Calico]),
    ("11-offline-registry-ntp", &[Calico]),
    ("12-cilium", &[Cilium]),
    ("13-own-network", &[]),
    ("14-addons-nfs", &[Calico]),
    ("15-calico-settings", &[Calico]),
    ("16-dual-stack", &[Calico]),
    ("17-docker", &[Calico, Docker]),
    ("18-kubekey-2-template", &[Calico, Docker, OldKubernetes]),
    ("19-kubekey-1", &[Calico, OldKubernetes]),
    ("20-flannel-merge-keys", &[]),
];

#[test]
fn each_file_loads_or_is_refused_for_the_reasons_in_the_table() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubekey");
    let files = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name());
    let files: BTreeSet<String> = files.map(|name| name.into_string().unwrap()).collect();
    let table: BTreeSet<String> = CASES.iter().map(|(name, _)| format!("{name}.yaml")).collect();
    assert_eq!(files, table);
    for (name, reasons) in CASES {
        let text = std::fs::read_to_string(directory.join(format!("{name}.yaml"))).unwrap();
        let errors =
            load(name, &text, &Overrides::default()).err().map(|errors| errors.errors).unwrap_or_default();
        let shown: Vec<String> = errors.iter().map(|error| error.message.clone()).collect();
        let found: BTreeSet<Option<Why>> = shown
            .iter()
            .map(|message| Why::ALL.into_iter().find(|why| message.starts_with(why.message())))
            .collect();
        let wanted = reasons.iter().filter(|why| !INSTALLED.contains(why)).copied().map(Some).collect();
        assert_eq!(found, wanted, "{name}: {shown:#?}");
        assert!(!shown.concat().contains(SENTINEL), "{name}");
    }
}
