//! Plans with kube-vip, its static pod, and its scripts. No test runs kube-vip itself.

use std::{fs, path::Path};

use kk_config::{Balancer, Bgp, ProxyMode, Spec, v1alpha2::BgpPeer};
use kk_engine::{Apply, Facts, FileFact, Plan, Severity};
use serde_json::Value;

use super::balancer::running_without;
use crate::{
    base::{probed::Probed, slots},
    capabilities::balancer::kube_vip::{STALE, VIP},
    commands::{add_nodes::tests::spec, create_cluster, delete_cluster, precheck::precheck},
    testing,
};

const MANIFEST: &str = "/etc/kubernetes/manifests/kube-vip.yaml";
const FREE: &str = "interface: eth0\nroute: direct\nstate: free\n";

fn settings(spec: &mut Spec) -> &mut kk_config::KubeVip {
    let Balancer::KubeVip(settings) = &mut spec.control_plane_endpoint.balancer else {
        panic!("another kind")
    };
    settings
}

/// The static pod on the first control plane of a fresh cluster.
async fn pod(spec: &Spec) -> (Value, String) {
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let mut fresh = testing::fresh(spec);
    fresh.facts.values_mut().for_each(|facts| facts.reply(&VIP, FREE));
    let inputs = session.create_inputs(&fresh).await.unwrap();
    let pipeline = create_cluster::pipeline(&inputs).unwrap();
    let mut tasks = pipeline.modules.iter().flat_map(|module| &module.tasks);
    let run = tasks.find(|task| task.name == "run_kube_vip").unwrap();
    assert_eq!(run.hosts.keys().collect::<Vec<_>>(), ["master1", "master2", "master3"]);
    assert!(run.hosts["master1"].needs.contains(&slots::joined_slot("master1")));
    let Apply::Script(script) = run.hosts["master1"].actions[0].apply(&fresh.facts["master1"]) else {
        panic!()
    };
    let text = String::from_utf8(script.files[0].content.to_vec()).unwrap();
    (serde_saphyr::from_str(&text).unwrap(), text)
}

#[tokio::test]
async fn one_control_plane_has_the_address_by_arp_or_all_announce_it_by_bgp() {
    let mut spec = testing::sample("ha-kube-vip.yaml");
    let value = |pod: &Value, name: &str| {
        let env = pod["spec"]["containers"][0]["env"].as_array().unwrap().clone();
        let values: Vec<_> = env.into_iter().filter(|one| one["name"] == name).collect();
        assert!(values.len() < 2, "{name} is set twice");
        values.first().map(|one| one["value"].as_str().unwrap().to_owned())
    };
    let (arp, text) = pod(&spec).await;
    insta::assert_snapshot!(text);
    for (name, wanted) in [
        ("address", Some("10.0.0.100")),
        ("vip_interface", Some("eth0")),
        ("vip_arp", Some("true")),
        ("vip_leaseduration", Some("15")),
        ("svc_enable", Some("false")),
        ("lb_enable", Some("false")),
        ("kubernetes_addr", Some("https://127.0.0.1:6443")),
        ("bgp_enable", None),
        ("control_plane_health_check_address", None),
    ] {
        assert_eq!(value(&arp, name).as_deref(), wanted, "{name}");
    }
    let own = settings(&mut spec);
    own.env = [("vip_leaseduration".to_owned(), "30".to_owned()), ("dns_mode".to_owned(), "a\"b".to_owned())]
        .into();
    own.bgp = Some(Bgp {
        asn: 65010,
        peers: vec![
            BgpPeer { address: "10.0.0.1".parse().unwrap(), asn: 65001, multihop: false },
            BgpPeer { address: "10.9.0.1".parse().unwrap(), asn: 65002, multihop: true },
        ],
    });
    let (bgp, _) = pod(&spec).await;
    for (name, wanted) in [
        ("vip_interface", Some("lo")),
        ("vip_arp", None),
        ("vip_leaderelection", None),
        ("bgp_as", Some("65010")),
        ("bgp_routerid", Some("10.0.0.11")),
        ("bgp_peers", Some("10.0.0.1:65001::false,10.9.0.1:65002::true")),
        ("vip_leaseduration", Some("30")),
        ("vip_retryperiod", Some("2")),
        ("dns_mode", Some("a\"b")),
        (
            "control_plane_health_check_address",
            Some("https://127.0.0.1:6443/readyz?exclude=etcd&exclude=etcd-readiness"),
        ),
        ("control_plane_health_check_ca_path", Some("/etc/kube-vip/ca.crt")),
    ] {
        assert_eq!(value(&bgp, name).as_deref(), wanted, "{name}");
    }
    // The CA by which the check verifies the API server is a file of the host.
    let ca = |pod: &Value| {
        let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array().unwrap();
        let mount = mounts.iter().find(|mount| mount["mountPath"] == "/etc/kube-vip/ca.crt")?;
        let volumes = pod["spec"]["volumes"].as_array().unwrap();
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
        Some(volume["hostPath"]["path"].as_str().unwrap().to_owned())
    };
    assert_eq!((ca(&bgp).as_deref(), ca(&arp)), (Some("/etc/kubernetes/pki/ca.crt"), None));
}

#[tokio::test]
async fn problems_of_the_address_are_found_before_the_first_change() {
    for (answer, bgp, interface, said) in [
        (Some(FREE), false, None, None),
        (
            Some("interface: \nroute: direct\nstate: free\n"),
            false,
            None,
            Some("no network interface has its internal"),
        ),
        (Some("interface: \nroute: direct\nstate: free\n"), false, Some("bond0"), None),
        (
            Some("interface: eth0\nroute: via\nstate: free\n"),
            false,
            None,
            Some("is not in the network of 10.0.0.11"),
        ),
        (Some("interface: eth0\nroute: via\nstate: free\n"), true, None, None),
        (
            Some("interface: eth0\nroute: direct\nstate: taken\n"),
            false,
            None,
            Some("another host has the address 10.0.0.100"),
        ),
        (Some("interface: eth0\nroute: direct\nstate: own\n"), false, None, None),
        (None, false, None, Some("did not report which network interface")),
    ] {
        let mut spec = testing::sample("ha-kube-vip.yaml");
        settings(&mut spec).interface = interface.map(str::to_owned);
        settings(&mut spec).bgp = bgp.then(|| Bgp { asn: 1, peers: Vec::new() });
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut fresh = testing::fresh(&spec);
        fresh.facts.values_mut().for_each(|facts| facts.reply(&VIP, FREE));
        let first = fresh.facts.get_mut("master1").unwrap();
        match answer {
            Some(answer) => first.reply(&VIP, answer),
            None => first.time_out(&VIP),
        }
        let inputs = session.create_inputs(&fresh).await.unwrap();
        let found = precheck(&create_cluster::capabilities(&spec), &inputs);
        let errors: Vec<_> = found
            .iter()
            .filter(|one| one.severity == Severity::Error && one.host.as_deref() == Some("master1"))
            .collect();
        match said {
            None => assert!(errors.is_empty(), "{answer:?}: {errors:?}"),
            Some(said) => {
                assert!(errors.iter().any(|one| one.message.contains(said)), "{answer:?}: {errors:?}");
            }
        }
    }
}

/// A running cluster of two control planes and two workers, with kube-vip on the control planes.
async fn running(spec: &Spec, leads: &str) -> Probed {
    let mut probed = running_without(spec, leads).await;
    for (name, facts) in &mut probed.facts {
        facts.reply(&VIP, FREE);
        if ["n1", "n3"].contains(&name.as_str()) {
            facts.files.insert(MANIFEST.into(), FileFact { sha256: "other".into(), ..FileFact::default() });
            let made = format!("made\t{MANIFEST}");
            facts.owned = vec!["made\t/etc/systemd/system/kubelet.service", made.as_str()].into();
        }
    }
    probed
}

async fn tasks(spec: &Spec, probed: &Probed, host: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let inputs = session.create_inputs(probed).await.unwrap();
    let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
    plan.changes().into_iter().filter(|task| task.host == host).map(|task| task.task).collect()
}

#[tokio::test]
async fn kube_vip_is_removed_last_when_the_file_no_longer_has_it() {
    let spec = spec();
    let probed = running(&spec, "192.0.2.100\nok\n192.0.2.100\n").await;
    let of_n1 = tasks(&spec, &probed, "n1").await;
    let position =
        |name: &str| of_n1.iter().position(|task| task == name).unwrap_or_else(|| panic!("{name}"));
    assert!(position("mark_moves") < position("write_hosts_block"));
    assert!(position("finish_moves") < position("remove_kube_vip"));
    assert!(!tasks(&spec, &probed, "n2").await.contains(&"remove_kube_vip".to_owned()));
    // The address leaves a control plane only after all nodes use another one.
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let inputs = session.create_inputs(&probed).await.unwrap();
    let pipeline = create_cluster::pipeline(&inputs).unwrap();
    let mut all = pipeline.modules.iter().flat_map(|module| &module.tasks);
    let remove = all.find(|task| task.name == "remove_kube_vip").unwrap();
    for host in ["n1", "n2", "n3", "n4"] {
        assert!(remove.hosts["n1"].after.contains(&slots::moved_slot(host)), "{host}");
    }
    // A delete probes no files, and its file may name another kind.
    let delete = session.delete_inputs(&probed).unwrap();
    let capabilities = delete_cluster::capabilities(&spec);
    let balancer = capabilities.iter().find(|capability| capability.name() == "balancer").unwrap();
    let hosts: Vec<_> =
        balancer.remove(&delete).into_iter().flat_map(|task| task.hosts.into_keys()).collect();
    assert_eq!(hosts, ["n1", "n3"]);
}

#[tokio::test]
async fn a_kube_vip_with_an_old_kubeconfig_starts_again() {
    for (stale, restarts) in [("yes\n", true), ("no\n", false)] {
        let mut spec = testing::sample("ha-kube-vip.yaml");
        spec.control_plane_endpoint.domain = "api.sample.internal".into();
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut fresh = testing::fresh(&spec);
        for facts in fresh.facts.values_mut() {
            facts.reply(&VIP, FREE);
            facts.reply(&STALE, stale);
        }
        let inputs = session.create_inputs(&fresh).await.unwrap();
        let pipeline = create_cluster::pipeline(&inputs).unwrap();
        let mut tasks = pipeline.modules.iter().flat_map(|module| &module.tasks);
        let run = tasks.find(|task| task.name == "run_kube_vip").unwrap();
        let facts = &fresh.facts["master1"];
        assert_eq!(run.hosts["master1"].actions[1].check(facts).is_needed(), restarts, "{stale}");
    }
}

#[tokio::test]
async fn kube_proxy_in_mode_ipvs_keeps_the_address() {
    for (mode, excluded) in [(ProxyMode::Ipvs, true), (ProxyMode::Iptables, false)] {
        let mut spec = testing::sample("ha-kube-vip.yaml");
        spec.kubernetes.proxy_mode = mode;
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let fresh = testing::fresh(&spec);
        let inputs = session.create_inputs(&fresh).await.unwrap();
        let text = crate::model::kubeadm::kube_proxy_documents(&inputs);
        assert_eq!(text.contains("10.0.0.100/32"), excluded, "{text}");
    }
}

/// Runs a script of kube-vip in a directory with these files and programs, and returns its output.
fn run(directory: &Path, text: &str, variables: &str) -> String {
    let text = text.replace("/etc/kubernetes", &directory.display().to_string());
    let library = "kk_uptime() { echo . >>ticks; echo $(($(wc -l <ticks) * 10)); }; kk_fail() { echo \"$*\"; exit 1; }\n";
    let output = testing::run_script(directory, &format!("{library}{variables}\n{text}"));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_control_plane_reports_its_interface_the_way_to_the_address_and_who_has_it() {
    let text = include_str!("../../capabilities/balancer/kube_vip/look_at_address.sh");
    for (own, route, neighbour, wanted) in [
        (
            "",
            "10.0.0.9 dev eth0 src 10.0.0.1",
            "10.0.0.9 dev eth0  FAILED",
            "interface: eth0\nroute: direct\nstate: free\n",
        ),
        ("", "10.0.0.9 via 10.0.0.254 dev eth0", "", "interface: eth0\nroute: via\nstate: free\n"),
        (
            "",
            "10.0.0.9 dev eth0",
            "10.0.0.9 dev eth0 lladdr 52:54:00:00:00:01 REACHABLE",
            "interface: eth0\nroute: direct\nstate: taken\n",
        ),
        // The host that had the address before no longer answers.
        (
            "",
            "10.0.0.9 dev eth0",
            "10.0.0.9 dev eth0 lladdr 52:54:00:00:00:01 STALE",
            "interface: eth0\nroute: direct\nstate: free\n",
        ),
        (
            "2: eth0 inet 10.0.0.9/32",
            "local 10.0.0.9 dev lo",
            "",
            "interface: eth0\nroute: direct\nstate: own\n",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        testing::program(
            directory.path(),
            "ip",
            &format!(
                "case \"$*\" in *'addr show to 10.0.0.1') echo '2: eth0 inet 10.0.0.1/24' ;; *'addr show'*) echo '{own}' ;; *route*) echo '{route}' ;; *'neigh flush'*) echo flush >>calls ;; *neigh*) echo show >>calls; echo '{neighbour}' ;; esac"
            ),
        );
        testing::program(directory.path(), "curl", "echo \"curl $https_proxy\" >>calls; exit 7");
        testing::program(directory.path(), "wget", "echo \"wget $http_proxy\" >>calls; exit 1");
        testing::program(directory.path(), "ping", "exit 1");
        let proxies = "export http_proxy=http://192.0.2.3 https_proxy=http://192.0.2.3";
        assert_eq!(run(directory.path(), text, &format!("{proxies}\naddress=10.0.0.1 vip=10.0.0.9")), wanted);
        let calls = fs::read_to_string(directory.path().join("calls")).unwrap_or_default();
        let probed = if own.is_empty() { "flush\ncurl \nwget \nshow\n" } else { "" };
        assert_eq!(calls, probed, "what the kernel remembers is dropped, and no proxy is used");
    }
}

#[test]
fn an_installed_kube_vip_is_not_probed_for_its_address() {
    let text = include_str!("../../capabilities/balancer/kube_vip/look_at_address.sh");
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("manifests")).unwrap();
    fs::write(directory.path().join("manifests/kube-vip.yaml"), "").unwrap();
    testing::program(directory.path(), "ip", "case \"$*\" in *neigh*) touch probed ;; esac");
    testing::program(directory.path(), "curl", "touch probed");
    let said = run(directory.path(), text, "address=10.0.0.1 vip=10.0.0.9");
    assert!(said.ends_with("state: own\n") && !directory.path().join("probed").exists(), "{said}");
}

/// On a healthy cluster, the address is on one of the control planes.
#[tokio::test]
async fn the_address_on_another_control_plane_is_no_problem_of_a_running_kube_vip() {
    let spec = spec();
    let mut probed = running(&spec, "192.0.2.100\nok\n192.0.2.100\n").await;
    probed.facts.get_mut("n3").unwrap().reply(&VIP, "interface: eth0\nroute: direct\nstate: taken\n");
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let inputs = session.create_inputs(&probed).await.unwrap();
    let found = precheck(&create_cluster::capabilities(&spec), &inputs);
    assert!(!found.iter().any(|one| one.message.contains("another host has the address")), "{found:?}");
}

#[test]
fn kube_vip_is_stale_if_its_kubeconfig_is_newer_than_its_start() {
    let text = include_str!("../../capabilities/balancer/kube_vip/is_stale.sh");
    for (manifest, id, began, written, wanted) in [
        (true, "c1", "2026-01-02T12:00:00.5Z", "2026-01-02T11:00:00Z", "no\n"),
        (true, "c1", "2026-01-02T12:00:00.5Z", "2026-01-02T13:00:00Z", "yes\n"),
        (true, "", "", "2026-01-02T13:00:00Z", "no\n"),
        (false, "c1", "2026-01-02T12:00:00.5Z", "2026-01-02T13:00:00Z", "no\n"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("manifests")).unwrap();
        if manifest {
            fs::write(directory.path().join("manifests/kube-vip.yaml"), "").unwrap();
        }
        let conf = directory.path().join("admin.conf");
        let touch = std::process::Command::new("touch").args(["-d", written]).arg(&conf).status();
        assert!(touch.unwrap().success());
        // crictl prints local time.
        let crictl =
            format!("case $1 in ps) echo '{id}' ;; inspect) [ \"$TZ\" = UTC ] && echo '{began}' ;; esac");
        testing::program(directory.path(), "crictl", &crictl);
        assert_eq!(run(directory.path(), text, "node=n1"), wanted, "{manifest} {id} {began} {written}");
    }
}

#[test]
fn the_address_is_removed_from_the_host_with_kube_vip() {
    let text = include_str!("../../capabilities/balancer/kube_vip/remove_kube_vip.sh");
    for (kubelet, ends, said, deleted) in [
        (true, true, "", "addr del 10.0.0.9/32 dev eth0\n"),
        (true, false, "kube-vip does not end within 60 s\n", ""),
        // The cluster is deleted: the runtime may still list the container.
        (false, false, "", "addr del 10.0.0.9/32 dev eth0\n"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("manifests")).unwrap();
        let manifest = directory.path().join("manifests/kube-vip.yaml");
        fs::write(&manifest, "    env:\n    - {name: address, value: \"10.0.0.9\"}\n").unwrap();
        let program = |name: &str, text: &str| testing::program(directory.path(), name, text);
        program("systemctl", if kubelet { "exit 0" } else { "exit 3" });
        program("sleep", "exit 0");
        program("crictl", if ends { "[ -e asked ] || echo c1; touch asked" } else { "echo c1" });
        program(
            "ip",
            "case \"$*\" in *show*) echo '2: eth0 inet 10.0.0.9/32' ;; *) echo \"$*\" >>deleted ;; esac",
        );
        let deletions = || fs::read_to_string(directory.path().join("deleted")).unwrap_or_default();
        let copy = directory.path().join("kubekey/removed-kube-vip.yaml");
        assert_eq!(run(directory.path(), text, "node=n1"), said);
        assert!(!manifest.exists());
        assert_eq!((deletions(), copy.exists()), (deleted.to_owned(), deleted.is_empty()));
        // A removal that did not finish is resumed.
        program("crictl", ":");
        assert_eq!(run(directory.path(), text, "node=n1"), "");
        assert_eq!((deletions(), copy.exists()), ("addr del 10.0.0.9/32 dev eth0\n".to_owned(), false));
    }
}

/// No fact of the host says that kube-vip is installed.
#[test]
fn a_static_pod_of_another_tool_is_not_kube_vip_of_kk() {
    let mut facts = Facts::default();
    facts.files.insert(MANIFEST.into(), FileFact::default());
    assert!(!crate::capabilities::balancer::kube_vip::is_installed(&facts));
    facts.owned = vec![format!("made\t{MANIFEST}").as_str()].into();
    assert!(crate::capabilities::balancer::kube_vip::is_installed(&facts));
    // A removal that did not finish has left only its copy.
    facts.files.clear();
    assert!(!crate::capabilities::balancer::kube_vip::is_installed(&facts));
    facts.files.insert("/etc/kubernetes/kubekey/removed-kube-vip.yaml".into(), FileFact::default());
    assert!(crate::capabilities::balancer::kube_vip::is_installed(&facts));
}
