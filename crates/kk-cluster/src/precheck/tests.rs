//! One host that is well, and every way in which one is not.

use std::net::Ipv4Addr;

use kk_config::KubeVersion;
use kk_engine::UnitFact;

use super::*;

fn spec() -> Spec {
    Spec::all_in_one("node1", Ipv4Addr::new(192, 168, 0, 1), KubeVersion::default()).unwrap()
}

/// A host on which nothing is to be said.
fn well() -> Facts {
    let tools = ["tar", "mount", "umount", "ip", "iptables", "conntrack", "socat", "modprobe", "nsenter"];
    Facts {
        hostname: "node1".into(),
        arch: "amd64".into(),
        cpus: 4,
        memory_kib: 8_000_000,
        systemd: true,
        systemd_cgroups: true,
        cgroup_v2: true,
        can_raise_limits: true,
        nameservers: vec!["192.168.0.254".into()],
        addresses: ["192.168.0.1".to_owned()].into(),
        features: ["overlay".to_owned()].into(),
        tools: tools.into_iter().map(|tool| (tool.to_owned(), format!("/usr/bin/{tool}"))).collect(),
        disks: [("/var/lib/kubelet".to_owned(), (100_000_000, 50_000_000))].into(),
        ..Facts::default()
    }
}

fn findings(facts: Facts) -> Vec<(Severity, String)> {
    findings_of(&spec(), facts, &ClusterState::default())
}

fn findings_of(spec: &Spec, facts: Facts, state: &ClusterState) -> Vec<(Severity, String)> {
    let facts = [("node1".to_owned(), facts)].into();
    precheck(spec, &facts, state).into_iter().map(|finding| (finding.severity, finding.what)).collect()
}

#[test]
fn nothing_is_said_of_a_host_that_is_well() {
    assert_eq!(findings(well()), []);
}

#[test]
fn each_trouble_is_found_with_its_weight() {
    type Spoil = fn(&mut Facts);
    let cases: &[(Spoil, Severity, &str)] = &[
        (|f| f.arch = "riscv64".into(), Severity::Error, "architecture riscv64 is not supported"),
        (|f| f.systemd = false, Severity::Error, "systemd does not run here"),
        (|f| f.memory_kib = 1_000_000, Severity::Error, "976 MiB of memory"),
        (|f| f.cpus = 1, Severity::Error, "1 processor"),
        (|f| _ = f.tools.remove("conntrack"), Severity::Error, "missing: conntrack"),
        (|f| f.features.clear(), Severity::Error, "the kernel has no overlay file system"),
        (|f| _ = f.ports.insert(6443, "nginx".into()), Severity::Error, "port 6443 is taken by nginx"),
        (
            |f| _ = f.disks.insert("/usr/local/bin".into(), (9_000_000, 1024)),
            Severity::Error,
            "1 MiB free on /usr/local/bin",
        ),
        (|f| f.addresses.clear(), Severity::Error, "no interface has the address 192.168.0.1"),
        (
            |f| _ = f.disks.insert("/var/lib/kubelet".into(), (100_000_000, 9_000_000)),
            Severity::Warning,
            "9 % free on /var/lib/kubelet",
        ),
        (|f| f.swaps = vec!["/dev/sdb1".into()], Severity::Adapted, "swap is on (/dev/sdb1)"),
        (|f| f.selinux = "enforcing".into(), Severity::Adapted, "SELinux enforces"),
        (|f| f.cgroup_v2 = false, Severity::Adapted, "cgroup v1 with Kubernetes v1.36.4"),
        (|f| f.systemd_cgroups = false, Severity::Adapted, "systemd cannot manage the cgroups of pods here"),
        (|f| f.can_raise_limits = false, Severity::Adapted, "root may not raise resource limits here"),
        (|f| f.nameservers.clear(), Severity::Adapted, "no nameserver in /etc/resolv.conf"),
    ];
    for (spoil, severity, what) in cases {
        let mut facts = well();
        spoil(&mut facts);
        assert_eq!(findings(facts), [(*severity, (*what).to_owned())]);
    }
}

#[test]
fn all_troubles_are_said_at_once_errors_first() {
    let facts = Facts { cpus: 1, swaps: vec!["/swap".into()], systemd: false, ..well() };
    let found = findings(facts);
    assert_eq!(found.len(), 3);
    assert!(found.is_sorted_by_key(|(severity, _)| *severity));
}

#[test]
fn our_own_programs_may_hold_their_ports() {
    let mut facts = well();
    facts.ports.extend([
        (6443, "kube-apiserver".to_owned()),
        (2379, "etcd".to_owned()),
        (10257, "kube-controller".to_owned()),
    ]);
    assert_eq!(findings(facts), []);
}

#[test]
fn a_foreign_runtime_is_told_before_it_is_replaced() {
    let mut facts = well();
    facts.units.insert("containerd.service".into(), UnitFact { active: true, ..UnitFact::default() });
    assert_eq!(findings(facts.clone())[0].1, "containerd is here already");
    facts.owned.push("made\t/etc/systemd/system/containerd.service".into());
    assert_eq!(findings(facts), []);
}

#[test]
fn another_version_in_the_cluster_is_an_error() {
    let state = ClusterState::parse("Node\t<no value>/node1\tTrue\tv1.35.0\t\t\nend\n");
    let found = findings_of(&spec(), well(), &state);
    assert_eq!(found, [(Severity::Error, "the cluster runs v1.35.0, the file says v1.36.4".to_owned())]);
}

#[test]
fn settings_that_a_running_cluster_cannot_change_are_refused() {
    type Change = fn(&mut Spec);
    let answer = |pods: &str| {
        format!(
            "service-cluster-ip-range\t10.233.0.0/18\netcd-servers\thttps://192.168.0.1:2379\ncluster-cidr\t{pods}\n\
             server\thttps://lb.kubesphere.local:6443\nclusterDomain\tcluster.local\n"
        )
    };
    let mut facts = well();
    facts.values.insert("fixed".into(), answer("10.233.64.0/18"));
    assert_eq!(findings(facts.clone()), [], "the file says what is there");
    let cases: &[(Change, &str)] = &[
        (
            |spec| spec.network.pods = "10.1.0.0/16".parse().unwrap(),
            "the cluster's pods are in 10.233.64.0/18, the file says 10.1.0.0/16",
        ),
        (
            |spec| spec.network.services = "10.2.0.0/16".parse().unwrap(),
            "the cluster's Services are in 10.233.0.0/18, the file says 10.2.0.0/16",
        ),
        (
            |spec| spec.kubernetes.dns_domain = "other.local".into(),
            "the cluster's DNS domain is cluster.local, the file says other.local",
        ),
        (
            |spec| spec.control_plane_endpoint.domain = "api.example.org".into(),
            "the cluster's API is at https://lb.kubesphere.local:6443, the file says https://api.example.org:6443",
        ),
        (
            |spec| spec.etcd.port = 4001,
            "the cluster's etcd is at https://192.168.0.1:2379, the file says https://192.168.0.1:4001",
        ),
    ];
    for (change, what) in cases {
        let mut spec = spec();
        change(&mut spec);
        let found = findings_of(&spec, facts.clone(), &ClusterState::default());
        assert_eq!(found, [(Severity::Error, (*what).to_owned())]);
    }
}
