//! Settings that a running cluster cannot change.

use kk_config::{NetworkPlugin, Spec, v1alpha2::FlannelBackend};
use kk_engine::{FileFact, ProbeSpec, Severity};

use super::{findings, findings_of, spec, well};
use crate::{
    base::questions::SETTINGS,
    capabilities::network,
    testing::{self, KUBERNETES},
};

#[tokio::test]
async fn settings_that_a_running_cluster_cannot_change_are_refused() {
    type Change = fn(&mut Spec);
    let answer = |pods: &str| {
        format!(
            "service-cluster-ip-range\t10.233.0.0/18\netcd-servers\thttps://192.168.0.1:2379\ncluster-cidr\t{pods}\n\
             server\thttps://lb.kubesphere.local:6443\nclusterDomain\tcluster.local\nversion\t{KUBERNETES}\n"
        )
    };
    let mut facts = well();
    facts.reply(&SETTINGS, answer("10.233.64.0/18"));
    assert_eq!(findings(facts.clone()).await, [], "the file says what is there");
    let cases: &[(Change, &str)] = &[
        (
            |spec| spec.kubernetes.version = "v1.28.0".parse().unwrap(),
            &format!("the cluster's version is {KUBERNETES}, but the file sets v1.28.0"),
        ),
        (
            |spec| spec.network.pods = "10.1.0.0/16".parse().unwrap(),
            "the cluster's pods are in 10.233.64.0/18, but the file sets 10.1.0.0/16",
        ),
        (
            |spec| spec.network.services = "10.2.0.0/16".parse().unwrap(),
            "the cluster's Services are in 10.233.0.0/18, but the file sets 10.2.0.0/16",
        ),
        (
            |spec| spec.kubernetes.dns_domain = "other.local".into(),
            "the cluster's DNS domain is cluster.local, but the file sets other.local",
        ),
        (
            |spec| spec.control_plane_endpoint.domain = "api.example.org".into(),
            "the cluster's API is at https://lb.kubesphere.local:6443, but the file sets https://api.example.org:6443",
        ),
        (
            |spec| spec.etcd.port = 4001,
            "the cluster's etcd is at https://192.168.0.1:2379, but the file sets https://192.168.0.1:4001",
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
    facts.owned = vec!["made\t/etc/systemd/system/kubelet.service"].into();
    let mut spec = spec();
    spec.registry.containerd_data_dir = "/srv/containerd".into();
    let wanted = [
        "its name in the cluster is old-name, but the file sets node1",
        "its containerd data is in /var/lib/containerd, but the file sets /srv/containerd",
    ];
    assert_eq!(findings_of(&spec, facts).await, wanted.map(|what| (Severity::Error, what.to_owned())));
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
            "its etcd stores its data in /var/lib/etcd, but the file sets /srv/etcd",
        ),
        (
            |spec| spec.etcd.peer_port = 2480,
            "its etcd peer address is https://192.168.0.1:2380, but the file sets \
             https://192.168.0.1:2480",
        ),
    ];
    for (change, what) in cases {
        let mut spec = spec();
        change(&mut spec);
        assert_eq!(findings_of(&spec, facts.clone()).await, [(Severity::Error, (*what).to_owned())]);
    }
    let mut moving = facts.clone();
    moving.reply(
        &crate::capabilities::etcd::ENVIRONMENT,
        "ETCD_DATA_DIR=/var/lib/etcd\nETCD_INITIAL_ADVERTISE_PEER_URLS=https://192.168.0.1:2380\nETCD_NAME=etcd-node1\nMEMBER=yes\nMOVES_FROM=192.168.0.9\n",
    );
    let mut spec = spec();
    spec.etcd.peer_port = 2480;
    let what =
        "its etcd peer address is https://192.168.0.1:2380, but the file sets https://192.168.0.1:2480";
    assert!(
        findings_of(&spec, moving).await.contains(&(Severity::Error, what.to_owned())),
        "in the middle of a move"
    );
    facts.files.remove("/etc/kubernetes/pki/ca.key");
    let what = "its role is a worker, but the file sets a control plane";
    assert_eq!(findings(facts).await, [(Severity::Error, what.to_owned())]);
}

#[tokio::test]
async fn a_control_plane_moves_unless_the_flag_is_the_files_own() {
    let mut facts = well();
    for (address, moves) in [("192.168.0.1", false), ("192.168.0.9", true)] {
        facts.reply(
            &SETTINGS,
            format!("advertise-address\t{address}\netcd-servers\thttps://192.168.0.1:2379\n"),
        );
        let what = "the control plane moves from 192.168.0.9 to 192.168.0.1";
        let wanted = if moves { vec![(Severity::Adapted, what.to_owned())] } else { vec![] };
        assert_eq!(findings(facts.clone()).await, wanted);
    }
    let mut spec = spec();
    spec.kubernetes.apiserver_args.insert("advertise-address".into(), "192.168.0.9".into());
    assert_eq!(findings_of(&spec, facts).await, []);
}

#[tokio::test]
async fn a_network_plugin_that_kk_has_installed_stays() {
    let note = "/etc/kubernetes/kubekey/flannel.yaml";
    let refused = [(
        Severity::Error,
        "the network plugin of the cluster is flannel, but the file sets none".to_owned(),
    )];
    for (installed, plugin, wanted) in [
        (true, NetworkPlugin::None, &refused[..]),
        (true, NetworkPlugin::Flannel(FlannelBackend::HostGw), &[]),
        (false, NetworkPlugin::None, &[]),
    ] {
        let (mut spec, mut facts) = (spec(), well());
        spec.network.plugin = plugin.clone();
        if installed {
            facts.files.insert(note.to_owned(), FileFact::default());
        }
        assert_eq!(findings_of(&spec, facts).await, wanted, "{installed} {plugin:?}");
        let directory = tempfile::tempdir().unwrap();
        let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
        let inputs = session.create_inputs(&fresh).await.unwrap();
        let mut probe = ProbeSpec::default();
        network::capability(&spec).asks(&inputs, &spec.hosts[0], &mut probe);
        assert!(probe.files.contains(note), "{plugin:?}");
    }
}
