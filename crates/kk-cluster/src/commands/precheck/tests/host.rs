//! Problems and unusual conditions of a single host.

use kk_engine::{Facts, FileFact, Severity, UnitFact};

use super::{findings, findings_of, spec, well};
use crate::{
    capabilities::os::{disable_swap::UNITS, firewall, write_hosts_block::REWRITTEN},
    commands::{create_cluster::capabilities, precheck::precheck},
    testing::{self, KUBERNETES},
};

#[tokio::test]
async fn each_trouble_is_found_with_its_weight() {
    type Spoil = fn(&mut Facts);
    let cases: &[(Spoil, Severity, &str)] = &[
        (
            |f| f.nameservers = vec!["127.0.0.1".into()],
            Severity::Error,
            "/etc/resolv.conf names a resolver on the host itself: 127.0.0.1",
        ),
        (
            |f| {
                f.systemd_cgroups = false;
                for path in [
                    "/etc/kubernetes/kubelet.conf",
                    "/etc/kubernetes/pki/ca.crt",
                    "/etc/kubernetes/manifests/kube-apiserver.yaml",
                ] {
                    f.files.insert(path.into(), FileFact { sha256: "same".into(), ..FileFact::default() });
                }
                f.reply(&crate::base::questions::CGROUP_DRIVER, "systemd\n");
            },
            Severity::Error,
            "systemd cannot manage the cgroups of pods here, and the running cluster uses the systemd driver",
        ),
        (|f| f.arch = "riscv64".into(), Severity::Error, "architecture riscv64 is not supported"),
        (|f| f.systemd = false, Severity::Error, "systemd is not running"),
        (|f| f.memory_kib = 1_000_000, Severity::Error, "memory 976 MiB is below the minimum of 1660 MiB"),
        (|f| f.cpus = 1, Severity::Error, "only 1 CPU, at least 2 needed"),
        (|f| _ = f.tools.remove("conntrack"), Severity::Error, "missing: conntrack"),
        (|f| _ = f.features.remove("overlay"), Severity::Error, "the kernel has no overlay file system"),
        (|f| _ = f.features.remove("vxlan"), Severity::Warning, "the kernel does not seem to have vxlan"),
        (
            |f| f.reply(&REWRITTEN, "yes\n"),
            Severity::Warning,
            "cloud-init rewrites /etc/hosts at each boot, and its template is not found",
        ),
        (
            |f| {
                f.reply(&REWRITTEN, "yes\n");
                f.files.insert("/etc/cloud/templates/hosts.debian.tmpl".into(), FileFact::default());
            },
            Severity::Adapted,
            "cloud-init rewrites /etc/hosts at each boot",
        ),
        (|f| f.reply(&UNITS, "dev-zram0.swap\n"), Severity::Adapted, "swap is on (dev-zram0.swap)"),
        (|f| _ = f.ports.insert(6443, "nginx".into()), Severity::Error, "port 6443 is used by nginx"),
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
        (
            |f| _ = f.files.insert("/etc/cni/net.d/87-podman.conflist".into(), FileFact::default()),
            Severity::Warning,
            "/etc/cni/net.d contains another network: 87-podman.conflist",
        ),
        (
            |f| f.reply(&firewall::ACTIVE, "firewall firewalld\nopen 2379-10300/tcp\nopen 8472/tcp\n"),
            Severity::Error,
            "firewalld is active and closes 8472/udp",
        ),
        (
            |f| f.reply(&firewall::ACTIVE, "firewall ufw\nopen 2379-10300/tcp\nopen 8472/udp\n"),
            Severity::Warning,
            "ufw is active",
        ),
        (
            |f| f.reply(&firewall::ACTIVE, "firewall ufw\ntrusts 10.0.0.0/8\n"),
            Severity::Warning,
            "ufw is active",
        ),
        (
            |f| {
                let unit = UnitFact { enabled: true, ..UnitFact::default() };
                f.units.insert("nm-cloud-setup.timer".into(), unit);
            },
            Severity::Warning,
            "nm-cloud-setup is enabled: its routing rules break the network of pods",
        ),
        (|f| f.swaps = vec!["/dev/sdb1".into()], Severity::Adapted, "swap is on (/dev/sdb1)"),
        (|f| f.selinux = "enforcing".into(), Severity::Warning, "SELinux is enforcing"),
        (|f| f.cgroup_v2 = false, Severity::Adapted, &format!("cgroup v1 with Kubernetes {KUBERNETES}")),
        (|f| f.systemd_cgroups = false, Severity::Adapted, "systemd cannot manage the cgroups of pods here"),
        (|f| f.can_raise_limits = false, Severity::Adapted, "root is not allowed to raise resource limits"),
        (|f| f.nameservers.clear(), Severity::Adapted, "no nameserver in /etc/resolv.conf"),
    ];
    for (spoil, severity, what) in cases {
        let mut facts = well();
        spoil(&mut facts);
        assert_eq!(findings(facts).await, [(*severity, (*what).to_owned())]);
    }
}

#[tokio::test]
async fn selinux_that_stays_enforcing_needs_a_policy_for_containers() {
    let mut spec = testing::sample("all-in-one.yaml");
    for (relax, words) in [(true, "kk sets it to permissive"), (false, "package container-selinux")] {
        spec.system.relax_selinux = relax;
        let mut probed = testing::fresh(&spec);
        probed.facts.get_mut(&spec.hosts[0].name).unwrap().selinux = "enforcing".into();
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let found = precheck(&capabilities(&spec), &inputs);
        let found: Vec<_> = found.iter().filter(|one| one.message.contains("SELinux")).collect();
        assert!(
            matches!(found[..], [one] if one.severity == Severity::Warning && one.hint.contains(words)),
            "{found:?}"
        );
    }
}

/// For a host that has joined, it is too late to report that it is too small.
#[tokio::test]
async fn a_node_that_runs_on_a_small_host_stops_nobody() {
    let mut facts = Facts { cpus: 1, memory_kib: 1_000_000, ..well() };
    assert_eq!(severities(&findings(facts.clone()).await), [Severity::Error; 2]);
    for path in [
        "/etc/kubernetes/kubelet.conf",
        "/etc/kubernetes/pki/ca.crt",
        "/etc/kubernetes/manifests/kube-apiserver.yaml",
    ] {
        facts.files.insert(path.into(), FileFact { sha256: "same".into(), ..FileFact::default() });
    }
    assert_eq!(severities(&findings(facts).await), [Severity::Warning; 2]);
}

/// a runs only etcd, b everything else.
fn etcd_on_a_host_of_its_own() -> kk_config::Spec {
    testing::spec(
        "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: t}\nspec:\n  hosts:\n  \
         - {name: a, address: 192.0.2.1}\n  - {name: b, address: 192.0.2.2}\n  \
         roleGroups: {etcd: [a], control-plane: [b], worker: [b]}\n",
    )
}

#[tokio::test]
async fn a_member_of_etcd_that_fills_its_own_disk_stops_nobody() {
    let spec = etcd_on_a_host_of_its_own();
    for (there, refused) in [("/usr/local/bin/other", true), ("/usr/local/bin/etcd", false)] {
        let mut probed = testing::fresh(&spec);
        let facts = probed.facts.get_mut("a").unwrap();
        facts.disks.insert("/var/lib/etcd".into(), (9_000_000, 1024));
        facts.files.insert(there.into(), FileFact::default());
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let found = precheck(&capabilities(&spec), &inputs);
        assert_eq!(found.iter().any(|one| one.message.contains("free on /var/lib/etcd")), refused, "{there}");
    }
}

#[tokio::test]
async fn a_member_of_etcd_that_runs_is_not_refused_for_its_size() {
    let spec = etcd_on_a_host_of_its_own();
    let etcd = "made\t/etc/etcd.env";
    // The other host is going to be a control plane.
    for (host, record, severity) in
        [("a", etcd, Severity::Warning), ("a", "", Severity::Error), ("b", etcd, Severity::Error)]
    {
        let mut probed = testing::fresh(&spec);
        let facts = probed.facts.get_mut(host).unwrap();
        facts.memory_kib = 1024;
        facts.owned = vec![record].into();
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let found = precheck(&capabilities(&spec), &inputs);
        let of_memory = found.iter().find(|one| one.message.starts_with("memory 1 MiB")).unwrap();
        assert_eq!(of_memory.severity, severity, "{host} {record}");
    }
}

fn severities(found: &[(Severity, String)]) -> Vec<Severity> {
    found.iter().map(|(severity, _)| *severity).collect()
}

#[tokio::test]
async fn our_own_programs_may_hold_their_ports() {
    let mut facts = well();
    let units = ["etcd", "kubelet"].map(|unit| format!("made\t/etc/systemd/system/{unit}.service"));
    facts.owned = units.to_vec().into();
    facts.ports.extend([
        (6443, "kube-apiserver".to_owned()),
        (2379, "etcd".to_owned()),
        (10257, "kube-controller".to_owned()),
    ]);
    assert_eq!(findings(facts).await, []);
}

#[tokio::test]
async fn a_firewall_that_the_file_stops_is_no_trouble() {
    let mut facts = well();
    facts.reply(&firewall::ACTIVE, "firewall firewalld\n");
    for (skip, severity) in [(false, Severity::Adapted), (true, Severity::Error)] {
        let mut spec = spec();
        (spec.system.disable_firewall, spec.system.skip_configure_os) = (true, skip);
        let found = findings_of(&spec, facts.clone()).await;
        assert_eq!(found.iter().map(|finding| finding.0).collect::<Vec<_>>(), [severity]);
    }
}

#[tokio::test]
async fn a_host_that_kk_may_not_configure_must_forward_packets() {
    let mut spec = spec();
    for (skip, forwards, refused) in
        [(false, "0", false), (true, "1", false), (true, "0", true), (true, "", true)]
    {
        spec.system.skip_configure_os = skip;
        let mut facts = well();
        facts.sysctls.insert("net.ipv4.ip_forward".into(), forwards.into());
        let wanted = (
            Severity::Error,
            "net.ipv4.ip_forward is not 1, and spec.system.skipConfigureOS keeps kk from setting \
             it"
            .to_owned(),
        );
        let found = findings_of(&spec, facts).await;
        assert_eq!(found.contains(&wanted), refused, "{skip} {forwards}: {found:?}");
    }
}
