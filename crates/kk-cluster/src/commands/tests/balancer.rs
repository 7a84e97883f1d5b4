//! Plans with load balancers that kk installs: on fresh hosts, on running clusters, and when the file changes the kind.

use std::collections::BTreeMap;

use kk_config::{Balancer, Spec};
use kk_engine::{Apply, Facts, FileFact, Finding, Pipeline, Plan, Script, Severity};

use crate::{
    base::{host_layout::MOVING, probed::Probed, slots},
    capabilities::nodes::LEADS,
    commands::{
        add_nodes::tests::{ANSWERED, joined, probed, spec},
        create_cluster,
        precheck::precheck,
    },
    model::cluster::Scope,
    testing::{self, KUBERNETES},
};

const CONFIGURATION: &str = "/etc/kubekey/haproxy/haproxy.cfg";
const MANIFEST: &str = "/etc/kubernetes/manifests/haproxy.yaml";

/// Two control planes, n1 and n3, and two workers, n2 and n4; of these, n3 and n4 are new in the file.
fn with_haproxy() -> Spec {
    let mut spec = spec();
    let endpoint = &mut spec.control_plane_endpoint;
    (endpoint.balancer, endpoint.address) = (Balancer::Haproxy, Some(std::net::Ipv4Addr::LOCALHOST));
    spec
}

/// The changes of one plan: the tasks with their changes by host, and the scripts with their files.
struct Changes {
    tasks: BTreeMap<String, Vec<String>>,
    pipeline: Pipeline,
    found: Vec<Finding>,
}

impl Changes {
    fn of(&self, host: &str) -> &[String] {
        self.tasks.get(host).map_or(&[], Vec::as_slice)
    }

    /// The address of the API in the blocks that tasks of a host write into /etc/hosts, in the order of the tasks.
    fn names(&self, host: &str, facts: &Facts) -> Vec<String> {
        let tasks = self.pipeline.modules.iter().flat_map(|module| &module.tasks);
        let actions = tasks.filter_map(|task| task.hosts.get(host)).flat_map(|work| &work.actions);
        let mut names = Vec::new();
        for action in actions {
            let is_block = format!("{:?}", action.check(facts)).contains("/etc/hosts");
            let Apply::Script(Script { files, .. }) = action.apply(facts) else { continue };
            for file in files.iter().filter(|_| is_block) {
                let text = String::from_utf8_lossy(&file.content).into_owned();
                let line = text.lines().find(|line| line.ends_with("  lb.kubesphere.local"));
                names.extend(line.and_then(|line| line.split(' ').next()).map(str::to_owned));
            }
        }
        names
    }
}

async fn changes(spec: &Spec, probed: &Probed, scope: Option<&[&str]>) -> Changes {
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let mut inputs = session.create_inputs(probed).await.unwrap();
    let found = precheck(&create_cluster::capabilities(spec), &inputs);
    if let Some(names) = scope {
        inputs.scope = Scope::Hosts(names.iter().map(|name| (*name).to_owned()).collect());
    }
    let pipeline = create_cluster::pipeline(&inputs).unwrap();
    let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
    let mut tasks = BTreeMap::<String, Vec<String>>::new();
    for task in plan.changes() {
        tasks.entry(task.host.clone()).or_default().push(task.task.clone());
    }
    Changes { tasks, pipeline, found }
}

/// A running cluster of all hosts, on which the name of the API has this address.
pub(super) async fn running_without(spec: &Spec, leads: &str) -> Probed {
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let nodes =
        ["n1", "n2", "n3", "n4"].map(|name| format!("Node\t{name}\tTrue\t{KUBERNETES}\t\t\t\n")).concat();
    let mut probed = probed(&session, Some(&(nodes + ANSWERED))).await;
    for facts in probed.facts.values_mut() {
        joined(facts);
        facts.reply(&LEADS, leads);
        facts.owned = vec!["made\t/etc/systemd/system/kubelet.service"].into();
    }
    probed
}

/// As [`running_without`], with haproxy on the workers if `installed`.
async fn running(spec: &Spec, leads: &str, installed: bool) -> Probed {
    let mut probed = running_without(spec, leads).await;
    for (name, facts) in &mut probed.facts {
        if installed && ["n2", "n4"].contains(&name.as_str()) {
            install(facts);
        }
    }
    probed
}

fn install(facts: &mut Facts) {
    for path in [CONFIGURATION, MANIFEST] {
        facts.files.insert(path.into(), FileFact { sha256: "other".into(), ..FileFact::default() });
    }
    let made = format!("made\t{MANIFEST}");
    facts.owned = vec!["made\t/etc/systemd/system/kubelet.service", made.as_str()].into();
}

#[tokio::test]
async fn haproxy_is_rendered_for_the_control_planes_of_the_file() {
    let spec = testing::sample("ha-haproxy.yaml");
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let fresh = testing::fresh(&spec);
    let inputs = session.create_inputs(&fresh).await.unwrap();
    let pipeline = create_cluster::pipeline(&inputs).unwrap();
    let tasks: Vec<_> = pipeline.modules.iter().flat_map(|module| &module.tasks).collect();
    let run = tasks.iter().find(|task| task.name == "run_haproxy").unwrap();
    assert_eq!(run.hosts.keys().collect::<Vec<_>>(), ["worker1", "worker2", "worker3"]);
    let mut texts = Vec::new();
    for action in &run.hosts["worker1"].actions[..2] {
        let Apply::Script(script) = action.apply(&fresh.facts["worker1"]) else { panic!() };
        texts.push(String::from_utf8(script.files[0].content.to_vec()).unwrap());
    }
    let pod: serde_json::Value = serde_saphyr::from_str(&texts[1]).unwrap();
    assert_eq!(pod["spec"]["containers"][0]["image"], "docker.io/library/haproxy:3.2.22-alpine");
    insta::assert_snapshot!(texts.join("---\n"));
    // Images are pulled before, and the manifests of pods that use the name are applied after.
    assert!(run.hosts["worker1"].needs.contains(&slots::node_images_slot("worker1")));
    let apply = tasks.iter().find(|task| task.name == "apply_manifests").unwrap();
    assert!(apply.hosts["master1"].after.contains(&slots::api_name_slot("worker3")));
}

#[tokio::test]
async fn until_its_balancer_works_a_node_uses_a_control_plane() {
    let spec = with_haproxy();
    let fresh = testing::fresh(&spec);
    let plan = changes(&spec, &fresh, None).await;
    for name in ["n1", "n2", "n3", "n4"] {
        assert_eq!(plan.names(name, &fresh.facts[name]), ["192.0.2.1", "127.0.0.1"], "{name}");
        assert_eq!(plan.of(name).contains(&"run_haproxy".to_owned()), ["n2", "n4"].contains(&name), "{name}");
        // No pod can know another address yet.
        assert!(!plan.of(name).contains(&"finish_moves".to_owned()), "{name}");
    }
    let position = |name: &str| plan.of("n2").iter().position(|task| task == name).unwrap();
    assert!(
        position("join_worker") < position("run_haproxy")
            && position("run_haproxy") < position("switch_name")
    );
}

/// The cases: the answer of n2 about the name of the API, and whether haproxy is installed there.
#[tokio::test]
async fn a_running_cluster_gets_what_is_missing() {
    let moves = ["mark_moves", "write_hosts_block", "run_haproxy", "switch_name", "finish_moves"];
    for (case, leads, installed, named, tasks) in [
        ("works", "127.0.0.1\nok\n127.0.0.1\n", true, &["127.0.0.1"][..], &moves[1..3]),
        (
            "haproxy does not answer",
            "127.0.0.1\nrefused\n127.0.0.1\n",
            true,
            &["192.0.2.1", "127.0.0.1"],
            &moves[1..4],
        ),
        ("no haproxy before", "192.0.2.1\nok\n192.0.2.1\n", false, &["192.0.2.1", "127.0.0.1"], &moves),
        (
            "killed before the pods restarted",
            "127.0.0.1\nok\n192.0.2.1\n",
            true,
            &["127.0.0.1"],
            &["mark_moves", "write_hosts_block", "run_haproxy", "finish_moves"],
        ),
    ] {
        let spec = with_haproxy();
        let probed = running(&spec, leads, installed).await;
        let plan = changes(&spec, &probed, None).await;
        assert_eq!(plan.names("n2", &probed.facts["n2"]), named, "{case}");
        let all: Vec<&str> =
            plan.of("n2").iter().map(String::as_str).filter(|task| moves.contains(task)).collect();
        assert_eq!(all, tasks, "{case}");
        let sick = plan.found.iter().any(|one| one.message.contains("its haproxy does not answer: refused"));
        assert_eq!(sick, leads.contains("refused"), "{case}: {:?}", plan.found);
        let said = plan.found.iter().any(|one| {
            one.message == "the API moves from 192.0.2.1 to each node itself (haproxy)"
                && one.severity == Severity::Adapted
        });
        assert_eq!(said, case == "no haproxy before", "{case}: {:?}", plan.found);
    }
}

#[tokio::test]
async fn a_balancer_that_the_file_no_longer_has_is_removed_last() {
    let mut spec = spec();
    for (address, external) in [("192.0.2.1", false), ("192.0.2.200", true)] {
        spec.control_plane_endpoint.address = Some(address.parse().unwrap());
        spec.control_plane_endpoint.external_address = external;
        let probed = running(&spec, "127.0.0.1\nok\n127.0.0.1\n", true).await;
        let plan = changes(&spec, &probed, None).await;
        assert_eq!(plan.names("n2", &probed.facts["n2"]), [address]);
        let tasks = plan.of("n2");
        let position =
            |name: &str| tasks.iter().position(|task| task == name).unwrap_or_else(|| panic!("{name}"));
        assert!(position("mark_moves") < position("write_hosts_block"));
        assert!(position("finish_moves") < position("remove_haproxy"));
        assert!(!plan.of("n1").contains(&"remove_haproxy".to_owned()));
        let message = format!("the API moves from each node itself (haproxy) to {address}");
        assert!(plan.found.iter().any(|one| one.message == message), "{:?}", plan.found);
        // Files of another tool with the same name stay.
        let mut foreign = probed;
        foreign.facts.get_mut("n2").unwrap().owned = vec!["made\t/etc/systemd/system/kubelet.service"].into();
        let plan = changes(&spec, &foreign, None).await;
        assert!(!plan.of("n2").contains(&"remove_haproxy".to_owned()));
    }
}

#[tokio::test]
async fn a_new_control_plane_is_added_to_the_configuration_of_all_workers() {
    let spec = with_haproxy();
    let mut probed = running(&spec, "127.0.0.1\nok\n127.0.0.1\n", true).await;
    for facts in ["n3", "n4"].map(str::to_owned) {
        let fresh = testing::fresh(&spec).facts.remove(&facts).unwrap();
        probed.facts.insert(facts, fresh);
    }
    let plan = changes(&spec, &probed, Some(&["n3", "n4"])).await;
    assert_eq!(plan.of("n2"), ["write_hosts_block", "run_haproxy"]);
    let tasks = plan.pipeline.modules.iter().flat_map(|module| &module.tasks);
    let run = tasks.clone().find(|task| task.name == "run_haproxy").unwrap();
    let lines = |host: &str| {
        let actions = run.hosts[host].actions.iter();
        actions.map(|action| format!("{:?}", action.check(&probed.facts[host]))).collect::<Vec<_>>().concat()
    };
    assert!(lines("n2").contains(CONFIGURATION) && lines("n2").contains("load the configuration of haproxy"));
    assert!(!lines("n2").contains(MANIFEST), "hosts outside of the command only follow: {}", lines("n2"));
    assert!(lines("n4").contains(MANIFEST));
    // n4 joins, so its pods may start before its haproxy works.
    let marked =
        tasks.filter(|task| task.name == "mark_moves").flat_map(|task| task.hosts.keys()).collect::<Vec<_>>();
    assert_eq!(marked, ["n3", "n4"]);
    assert!(plan.of("n4").contains(&"finish_moves".to_owned()));
}

#[tokio::test]
async fn one_worker_shows_that_a_change_works_before_the_others_get_it() {
    let spec = with_haproxy();
    let probed = running(&spec, "127.0.0.1\nok\n127.0.0.1\n", true).await;
    let plan = changes(&spec, &probed, None).await;
    let mut tasks = plan.pipeline.modules.into_iter().flat_map(|module| module.tasks);
    let run = tasks.find(|task| task.name == "run_haproxy").unwrap();
    let first = slots::works_on_first_slot("haproxy");
    assert_eq!(run.turn.unwrap().order, ["n2", "n4"]);
    assert!(run.hosts["n2"].provides.contains(&first) && run.hosts["n4"].needs.contains(&first));
}

#[tokio::test]
async fn without_a_host_that_is_only_a_worker_nothing_is_installed_and_this_is_reported() {
    let mut spec = testing::sample("all-in-one.yaml");
    let endpoint = &mut spec.control_plane_endpoint;
    (endpoint.balancer, endpoint.address) = (Balancer::Haproxy, Some(std::net::Ipv4Addr::LOCALHOST));
    let fresh = testing::fresh(&spec);
    let plan = changes(&spec, &fresh, None).await;
    assert!(plan.tasks.values().flatten().all(|task| task != "run_haproxy"));
    assert!(plan.found.iter().any(|one| one.message.contains("haproxy is installed on no host")));
}

#[tokio::test]
async fn only_a_new_cluster_is_refused_without_a_load_balancer() {
    for (new, has_address, refused) in
        [(true, false, true), (true, true, false), (false, false, false), (false, true, false)]
    {
        let mut spec = spec();
        spec.control_plane_endpoint.has_address = has_address;
        let probed = if new {
            testing::fresh(&spec)
        } else {
            running(&spec, "192.0.2.1\nok\n192.0.2.1\n", false).await
        };
        let plan = changes(&spec, &probed, None).await;
        let message = "a new cluster with 2 control planes needs a load balancer";
        let found = plan.found.iter().any(|one| one.message == message && one.severity == Severity::Error);
        assert_eq!(found, refused, "new: {new}, address: {has_address}: {:?}", plan.found);
    }
}

/// Runs `load_haproxy` on a host where haproxy runs or does not, with this check of the configuration. Returns whether it
/// succeeds, the signals, and the answer to whether the configuration is loaded, before and after.
fn load(runs: bool, check: &str) -> (bool, String, [bool; 2]) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    for (name, text) in [("haproxy.cfg", "new"), ("ca.crt", "ca"), ("loaded", "old")] {
        std::fs::write(path(name), text).unwrap();
    }
    let id = if runs { "echo c1" } else { ":" };
    testing::program(
        directory.path(),
        "crictl",
        &format!(
            "case $1 in ps) {id} ;; exec) {check} ;; inspect) printf '{{\\n  \"info\": {{\\n    \"pid\": 4194000,\\n' ;; esac"
        ),
    );
    let text = crate::capabilities::balancer::haproxy::LOAD
        .replace("/etc/kubekey/haproxy", &directory.path().display().to_string())
        .replace("/etc/kubernetes/pki", &directory.path().display().to_string());
    let library =
        "kill() { echo \"$*\" >>signals; }\nkk_do() { \"$@\"; }\nkk_fail() { echo \"$*\" >&2; return 1; }\n";
    let is_loaded =
        || testing::run_script(directory.path(), &format!("{text}\nhaproxy_is_loaded")).status.success();
    let before = is_loaded();
    let output = testing::run_script(directory.path(), &format!("{library}{text}\nload_haproxy n2"));
    let signals = std::fs::read_to_string(directory.path().join("signals")).unwrap_or_default();
    (output.status.success(), signals, [before, is_loaded()])
}

#[test]
fn a_changed_configuration_is_loaded_by_a_signal_unless_haproxy_refuses_it() {
    assert_eq!(load(true, ":"), (true, "-USR2 4194000\n".to_owned(), [false, true]));
    assert_eq!(load(true, "exit 1"), (false, String::new(), [false, false]));
    assert_eq!(load(false, "exit 1"), (true, String::new(), [false, true]));
}

#[tokio::test]
async fn a_node_whose_move_has_begun_is_marked_as_one_of_the_api() {
    let spec = with_haproxy();
    let mut probed = running(&spec, "127.0.0.1\nok\n127.0.0.1\n", true).await;
    let mark = FileFact { sha256: kk_util::sha256(b"api\n"), ..FileFact::default() };
    probed.facts.get_mut("n2").unwrap().files.insert(MOVING.into(), mark);
    let plan = changes(&spec, &probed, None).await;
    assert!(plan.of("n2").contains(&"finish_moves".to_owned()));
}
