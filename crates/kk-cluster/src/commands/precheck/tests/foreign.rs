//! Hosts and programs that belong to another cluster or tool.

use kk_engine::{Facts, FileFact, Severity, UnitFact};

use super::{findings, findings_with, spec, well};
use crate::{
    commands::{create_cluster::capabilities, precheck::precheck},
    testing,
};

#[tokio::test]
async fn what_somebody_else_installed_is_refused() {
    type Spoil = fn(&mut Facts);
    let file = || FileFact { sha256: "others".into(), ..FileFact::default() };
    let cases: &[(Spoil, &str, &str)] = &[
        (
            |f| _ = f.units.insert("containerd.service".into(), UnitFact::default()),
            "containerd is already installed, but not by kk",
            "/etc/systemd/system/containerd.service",
        ),
        (
            |f| f.reply(&crate::capabilities::runtime::DATA, "yes\n"),
            "/var/lib/containerd contains data of another containerd",
            "/etc/systemd/system/containerd.service",
        ),
        (
            |f| _ = f.units.insert("etcd.service".into(), UnitFact::default()),
            "etcd is already installed, but not by kk",
            "/etc/systemd/system/etcd.service",
        ),
        (
            |f| _ = f.ports.insert(2379, "etcd".into()),
            "port 2379 is used by etcd, which kk did not install",
            "/etc/systemd/system/etcd.service",
        ),
        (
            |f| _ = f.ports.insert(2380, "etcd".into()),
            "port 2380 is used by etcd, which kk did not install",
            "/etc/systemd/system/etcd.service",
        ),
        (
            |f| _ = f.ports.insert(10250, "kubelet".into()),
            "port 10250 is used by kubelet, which kk did not install",
            "/etc/systemd/system/kubelet.service",
        ),
        (
            |f| _ = f.files.insert("/etc/kubernetes/kubelet.conf".into(), FileFact::default()),
            "it is a node of a cluster that kk did not make",
            "/etc/systemd/system/kubelet.service",
        ),
        (
            |f| f.reply(&crate::capabilities::etcd::DATA, "yes\n"),
            "/var/lib/etcd contains data of another etcd",
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
        let wanted =
            (Severity::Error, "the CA of the etcd on these hosts is not on the control machine".to_owned());
        assert_eq!(findings_with(&spec(), facts).await, if refused { vec![wanted] } else { Vec::new() });
    }
}

#[tokio::test]
async fn a_host_of_another_cluster_is_refused() {
    let with = |record: Vec<String>, token: &str| {
        let mut facts = Facts { owned: record.into(), ..well() };
        facts.reply(&crate::capabilities::os::ownership::identity::TOKEN, token);
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
                facts.files.insert(crate::base::host_layout::ETCD_CA.into(), ca);
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
    let wanted = format!("it belongs to another cluster with the name {}", spec.name);
    assert_eq!(findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>(), [wanted]);
}

/// The certificates of this member would be replaced by certificates of another CA.
#[tokio::test]
async fn a_member_of_etcd_of_a_namesake_is_refused_also_when_its_ca_is_lost() {
    let name = spec().name;
    for refused in [false, true] {
        let facts = |ours: &str| {
            let ca = if refused { "another" } else { ours };
            Facts { owned: vec![format!("cluster\t{name}\t{ca}\t-")].into(), ..well() }
        };
        let wanted = (Severity::Error, format!("it belongs to another cluster with the name {name}"));
        assert_eq!(findings_with(&spec(), facts).await, if refused { vec![wanted] } else { Vec::new() });
    }
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
async fn masked_units_are_named_and_are_nobody_elses_program() {
    let mut facts = well();
    for unit in ["etcd", "containerd", "kubelet"] {
        let mask = FileFact { kind: "link".into(), link: "/dev/null".into(), ..FileFact::default() };
        facts.files.insert(format!("/etc/systemd/system/{unit}.service"), mask);
        facts.units.insert(format!("{unit}.service"), UnitFact::default());
    }
    let masked = "masked: etcd.service, containerd.service, kubelet.service".to_owned();
    assert_eq!(findings(facts).await, [(Severity::Adapted, masked)]);
}
