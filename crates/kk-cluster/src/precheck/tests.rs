//! One host that is well, and every way in which one is not.

use std::net::Ipv4Addr;

use kk_config::{KubeVersion, Spec};
use kk_engine::{Facts, FileFact, Severity, UnitFact};

use super::*;
use crate::{
    capabilities::{
        control_plane::SETTINGS,
        os::{disable_swap::UNITS, firewall, write_hosts_block::REWRITTEN},
    },
    cluster_state::{API, INITIALISED},
    pipelines::create_cluster::capabilities,
    testing,
};

fn spec() -> Spec {
    Spec::all_in_one("node1", Ipv4Addr::new(192, 168, 0, 1), KubeVersion::default()).unwrap()
}

/// A host on which nothing is to be said.
fn well() -> Facts {
    let mut facts = testing::fresh(&spec()).facts.remove("node1").unwrap();
    facts.sysctls.insert("net.ipv4.ip_forward".into(), "1".into());
    facts
}

async fn findings(facts: Facts) -> Vec<(Severity, String)> {
    findings_of(&spec(), facts).await
}

async fn findings_of(spec: &Spec, facts: Facts) -> Vec<(Severity, String)> {
    findings_with(spec, |_| facts).await
}

/// `facts` gets the SHA-256 of the CA of etcd that this machine holds.
async fn findings_with(spec: &Spec, facts: impl FnOnce(&str) -> Facts) -> Vec<(Severity, String)> {
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let fresh = testing::fresh(spec);
    let mut inputs = session.create_inputs(&fresh).await.unwrap();
    let facts = facts(&inputs.pki.ca_sum());
    inputs.presence.insert("node1", crate::inputs::Presence::Probed(&facts));
    inputs.state = crate::inputs::api_host(spec, &inputs.presence).1;
    let findings = precheck(&capabilities(spec), &inputs);
    findings.into_iter().map(|finding| (finding.severity, finding.message)).collect()
}

#[tokio::test]
async fn nothing_is_said_of_a_host_that_is_well() {
    assert_eq!(findings(well()).await, []);
}

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
                f.reply(&crate::capabilities::kubelet::CGROUP_DRIVER, "systemd\n");
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
            "cloud-init writes /etc/hosts anew at each boot, and its template is not found",
        ),
        (
            |f| {
                f.reply(&REWRITTEN, "yes\n");
                f.files.insert("/etc/cloud/templates/hosts.debian.tmpl".into(), FileFact::default());
            },
            Severity::Adapted,
            "cloud-init writes /etc/hosts anew at each boot",
        ),
        (|f| f.reply(&UNITS, "dev-zram0.swap\n"), Severity::Adapted, "swap is on (dev-zram0.swap)"),
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
        (
            |f| _ = f.files.insert("/etc/cni/net.d/87-podman.conflist".into(), FileFact::default()),
            Severity::Warning,
            "/etc/cni/net.d holds another network: 87-podman.conflist",
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
        (|f| f.selinux = "enforcing".into(), Severity::Adapted, "SELinux is enforcing"),
        (|f| f.cgroup_v2 = false, Severity::Adapted, "cgroup v1 with Kubernetes v1.36.4"),
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
async fn all_troubles_are_said_at_once_errors_first() {
    let facts = Facts { cpus: 1, swaps: vec!["/swap".into()], systemd: false, ..well() };
    let found = findings(facts).await;
    assert_eq!(found.len(), 3);
    assert!(found.is_sorted_by_key(|(severity, _)| *severity));
}

#[tokio::test]
async fn our_own_programs_may_hold_their_ports() {
    let mut facts = well();
    facts.ports.extend([
        (6443, "kube-apiserver".to_owned()),
        (2379, "etcd".to_owned()),
        (10257, "kube-controller".to_owned()),
    ]);
    assert_eq!(findings(facts).await, []);
}

#[tokio::test]
async fn what_somebody_else_installed_is_refused() {
    type Spoil = fn(&mut Facts);
    let file = || FileFact { sha256: "others".into(), ..FileFact::default() };
    let cases: &[(Spoil, &str, &str)] = &[
        (
            |f| _ = f.units.insert("containerd.service".into(), UnitFact::default()),
            "containerd is installed already, and not by kk",
            "/etc/systemd/system/containerd.service",
        ),
        (
            |f| f.reply(&crate::capabilities::runtime::DATA, "yes\n"),
            "/var/lib/containerd holds data of another containerd",
            "/etc/systemd/system/containerd.service",
        ),
        (
            |f| f.reply(&crate::capabilities::etcd::DATA, "yes\n"),
            "/var/lib/etcd holds data of another etcd",
            "/etc/etcd.env",
        ),
    ];
    for (spoil, what, record) in cases {
        let mut facts = well();
        facts.files.insert((*record).to_owned(), file());
        spoil(&mut facts);
        assert_eq!(findings(facts.clone()).await, [(Severity::Error, (*what).to_owned())]);
        for kind in ["made", "saved"] {
            facts.owned = vec![format!("{kind}\t{record}")].into();
            assert_eq!(findings(facts.clone()).await, [], "{record}");
        }
    }
}

#[tokio::test]
async fn an_etcd_whose_ca_is_elsewhere_is_left_alone() {
    for refused in [false, true] {
        let facts = |ours: &str| {
            let ca = if refused { "another" } else { ours };
            let file = FileFact { sha256: ca.into(), ..FileFact::default() };
            Facts { files: [("/etc/ssl/etcd/ssl/ca.pem".to_owned(), file)].into(), ..well() }
        };
        let wanted = (Severity::Error, "the CA of the etcd on these hosts is not on this machine".to_owned());
        assert_eq!(findings_with(&spec(), facts).await, if refused { vec![wanted] } else { Vec::new() });
    }
}

#[tokio::test]
async fn a_wrong_clock_of_this_machine_is_an_error() {
    for (skew, found) in [
        (9 * 60_000, None),
        (-11 * 60_000, Some("this machine's clock is 660 s ahead of the hosts'")),
        (3_600_000, Some("this machine's clock is 3600 s behind the hosts'")),
    ] {
        let found: Vec<_> = found.iter().map(|what| (Severity::Error, (*what).to_owned())).collect();
        assert_eq!(findings(Facts { clock_skew_ms: skew, ..well() }).await, found);
    }
}

#[tokio::test]
async fn settings_that_a_running_cluster_cannot_change_are_refused() {
    type Change = fn(&mut Spec);
    let answer = |pods: &str| {
        format!(
            "service-cluster-ip-range\t10.233.0.0/18\netcd-servers\thttps://192.168.0.1:2379\ncluster-cidr\t{pods}\n\
             server\thttps://lb.kubesphere.local:6443\nclusterDomain\tcluster.local\nversion\tv1.36.4\n"
        )
    };
    let mut facts = well();
    facts.reply(&SETTINGS, answer("10.233.64.0/18"));
    assert_eq!(findings(facts.clone()).await, [], "the file says what is there");
    let cases: &[(Change, &str)] = &[
        (
            |spec| spec.kubernetes.version = "v1.35.2".parse().unwrap(),
            "the cluster's version is v1.36.4, the file says v1.35.2",
        ),
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
        let found = findings_of(&spec, facts.clone()).await;
        assert_eq!(found, [(Severity::Error, (*what).to_owned())]);
    }
}

#[tokio::test]
async fn what_a_running_node_cannot_change_is_refused_on_each_node() {
    let mut facts = well();
    facts.reply(&crate::capabilities::runtime::ROOT, "/var/lib/containerd\n");
    facts.reply(&crate::capabilities::os::NODE_NAME, "old-name\n");
    assert_eq!(findings(facts.clone()).await, [], "the node has not joined");
    facts.files.insert("/etc/kubernetes/kubelet.conf".into(), FileFact::default());
    let mut spec = spec();
    spec.registry.containerd_data_dir = "/srv/containerd".into();
    let wanted = [
        "its name in the cluster is old-name, the file says node1",
        "its containerd data is in /var/lib/containerd, the file says /srv/containerd",
    ];
    assert_eq!(findings_of(&spec, facts).await, wanted.map(|what| (Severity::Error, what.to_owned())));
}

#[tokio::test]
async fn a_host_of_another_cluster_is_refused() {
    let with = |record: Vec<String>, token: &str| {
        let mut facts = Facts { owned: record.into(), ..well() };
        facts.reply(&crate::capabilities::os::identity::TOKEN, token);
        facts
    };
    let made = || "made\t/etc/etcd.env".to_owned();
    let name = spec().name;
    for (cluster, token, refused) in [
        (Some("prod"), "", Some("it belongs to the cluster prod")),
        (Some(&*name), "", None),
        (None, "prod\n", Some("it belongs to the cluster prod")),
        (None, &*name, None),
        (None, "", None),
    ] {
        let facts = |ours: &str| {
            let head = cluster.map(|cluster| format!("cluster\t{cluster}\t{ours}\t-"));
            let mut facts = with(head.into_iter().chain([made()]).collect(), token);
            if cluster == Some("prod") {
                let ca = FileFact { sha256: "the CA of prod".into(), ..FileFact::default() };
                facts.files.insert(crate::host_layout::ETCD_CA.into(), ca);
            }
            facts
        };
        let refused: Vec<_> = refused.into_iter().map(|what| (Severity::Error, what.to_owned())).collect();
        assert_eq!(findings_with(&spec(), facts).await, refused, "{cluster:?} {token}");
    }
}

#[tokio::test]
async fn a_worker_of_a_namesake_is_refused() {
    let mut spec = testing::sample("three-nodes.yaml");
    spec.hosts[2].roles.retain(|role| *role != kk_config::Role::Etcd);
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let mut fresh = testing::fresh(&spec);
    let worker = &spec.hosts[2];
    let head = format!("cluster\t{}\tanother\t-", spec.name);
    fresh.facts.get_mut(&worker.name).unwrap().owned = vec![head].into();
    let findings = precheck(&capabilities(&spec), &session.create_inputs(&fresh).await.unwrap());
    let wanted = format!("it belongs to another cluster of the name {}", spec.name);
    assert_eq!(findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>(), [wanted]);
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
async fn clocks_are_judged_by_how_far_they_are_apart_for_sure() {
    let spec = testing::sample("three-nodes.yaml");
    for (skew, unsure, severity) in [
        (900, 0, None),
        (2_000, 0, Some(Severity::Warning)),
        (2_000, 1_500, None),
        (29_000, 0, Some(Severity::Warning)),
        (-31_000, 0, Some(Severity::Error)),
        (31_000, 2_000, Some(Severity::Warning)),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut fresh = testing::fresh(&spec);
        let facts = fresh.facts.get_mut(&spec.hosts[2].name).unwrap();
        (facts.clock_skew_ms, facts.clock_uncertainty_ms) = (skew, unsure);
        let found = precheck(&capabilities(&spec), &session.create_inputs(&fresh).await.unwrap());
        assert_eq!(found.first().map(|finding| finding.severity), severity, "{skew} {unsure}");
    }
}

#[tokio::test]
async fn a_question_without_an_answer_is_never_a_no() {
    type Spoil = fn(&mut Facts);
    let cases: &[(Spoil, &str)] = &[
        (
            |facts| facts.time_out(&INITIALISED),
            "the host did not say whether its control plane was initialised: no answer within 20 s",
        ),
        (
            |facts| facts.time_out(&SETTINGS),
            "the host did not say the settings of its control plane: no answer within 20 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::etcd::DATA),
            "the host did not say whether etcd has data on it: no answer within 20 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::etcd::ENVIRONMENT),
            "the host did not say how its etcd is configured: no answer within 20 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::os::identity::TOKEN),
            "the host did not say which cluster its etcd is of: no answer within 20 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::os::NODE_NAME),
            "the host did not say the name of its node: no answer within 20 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::runtime::ROOT),
            "the host did not say where its containerd keeps its data: no answer within 20 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::runtime::DATA),
            "the host did not say whether a containerd has data on it: no answer within 20 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::kubelet::CGROUP_DRIVER),
            "the host did not say the cgroup driver of its kubelet: no answer within 20 s",
        ),
        (
            |facts| facts.time_out(&firewall::ACTIVE),
            "the host did not say which firewalls are active: no answer within 30 s",
        ),
        (
            |facts| facts.time_out(&UNITS),
            "the host did not say which units bring swap back: no answer within 20 s",
        ),
        (
            |facts| facts.time_out(&REWRITTEN),
            "the host did not say whether cloud-init writes its /etc/hosts: no answer within 20 s",
        ),
    ];
    for (spoil, what) in cases {
        let mut facts = well();
        spoil(&mut facts);
        assert_eq!(findings(facts).await, [(Severity::Error, (*what).to_owned())]);
    }
}

#[tokio::test]
async fn an_api_that_serves_an_empty_etcd_is_an_error_and_one_that_is_silent_is_said() {
    let mut facts = well();
    facts.reply(&INITIALISED, "yes");
    facts.reply(&API, "end\n");
    let what = "the API answers and has no data: etcd serves an empty cluster";
    assert_eq!(findings(facts.clone()).await, [(Severity::Error, what.to_owned())]);
    facts.time_out(&API);
    let what = "the API does not answer: no answer within 20 s";
    assert_eq!(findings(facts).await, [(Severity::Adapted, what.to_owned())]);
}

#[tokio::test]
async fn a_role_and_where_etcd_keeps_its_data_stay_as_they_are() {
    type Change = fn(&mut Spec);
    let mut facts = well();
    facts.owned = vec!["made\t/etc/etcd.env"].into();
    facts.reply(&crate::capabilities::etcd::DATA, "yes");
    facts.reply(
        &crate::capabilities::etcd::ENVIRONMENT,
        "ETCD_DATA_DIR=/var/lib/etcd\nETCD_INITIAL_ADVERTISE_PEER_URLS=https://192.168.0.1:2380\nETCD_NAME=etcd-node1\nMEMBER=yes\n",
    );
    let joined = ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"];
    for path in joined.iter().chain(&["/etc/kubernetes/pki/ca.key"]) {
        facts.files.insert((*path).to_owned(), FileFact { sha256: "same".into(), ..FileFact::default() });
    }
    assert_eq!(findings(facts.clone()).await, []);
    let cases: &[(Change, &str)] = &[
        (
            |spec| spec.etcd.data_dir = "/srv/etcd".into(),
            "its etcd keeps its data in /var/lib/etcd, the file says /srv/etcd",
        ),
        (
            |spec| spec.etcd.peer_port = 2480,
            "its etcd is for its peers at https://192.168.0.1:2380, the file says https://192.168.0.1:2480",
        ),
    ];
    for (change, what) in cases {
        let mut spec = spec();
        change(&mut spec);
        assert_eq!(findings_of(&spec, facts.clone()).await, [(Severity::Error, (*what).to_owned())]);
    }
    facts.files.remove("/etc/kubernetes/pki/ca.key");
    let what = "its role is a worker, the file says a control plane";
    assert_eq!(findings(facts).await, [(Severity::Error, what.to_owned())]);
}

#[tokio::test]
async fn nodes_of_a_cluster_whose_control_plane_was_replaced_are_not_to_be_reset() {
    let spec = testing::sample("three-nodes.yaml");
    let mut probed = testing::fresh(&spec);
    let workers = spec.hosts.iter().filter(|host| !host.has_role(&kk_config::Role::ControlPlane));
    let names: Vec<_> = workers.map(|host| Some(host.name.clone())).collect();
    for name in names.iter().flatten() {
        let ca = FileFact { sha256: "theirs".into(), ..FileFact::default() };
        let files = &mut probed.facts.get_mut(name).unwrap().files;
        files.insert("/etc/kubernetes/pki/ca.crt".into(), ca);
    }
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let found = precheck(&capabilities(&spec), &session.create_inputs(&probed).await.unwrap());
    assert_eq!(found.iter().map(|finding| finding.host.clone()).collect::<Vec<_>>(), names);
    assert!(found.iter().all(|finding| finding.hint.contains("remove nothing")), "{found:?}");
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
            "net.ipv4.ip_forward is not 1, and spec.system.skipConfigureOS leaves it so".to_owned(),
        );
        let found = findings_of(&spec, facts).await;
        assert_eq!(found.contains(&wanted), refused, "{skip} {forwards}: {found:?}");
    }
}
