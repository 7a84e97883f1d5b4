//! Nodes whose address changes: which nodes these are, and the findings about them.

pub(super) mod endpoint;
pub(crate) mod finish_moves;
pub(crate) mod mark_moves;

use kk_config::{Host, Role};
use kk_engine::Action as _;

use crate::{
    base::{findings::Findings, host_layout::MOVING},
    capabilities::{control_plane, etcd, kubelet},
    model::inputs::Inputs,
};

/// The address that the cluster knows, if the file specifies another and the kubelet does not have it yet. A cloud provider may
/// show its own addresses for a node that did not move.
fn address_of_before<'a>(inputs: &'a Inputs, host: &Host) -> Option<&'a str> {
    let addresses = &inputs.state.nodes.get(&host.name)?.addresses;
    let now = host.internal_address.to_string();
    let is_other = inputs.has_joined(host) && !addresses.contains(&now) && has_new_flags(inputs, host);
    addresses.first().map(String::as_str).filter(|_| is_other)
}

fn has_new_flags(inputs: &Inputs, host: &Host) -> bool {
    let are_new = |facts| kubelet::flags_file(inputs, host).is_ok_and(|file| file.check(facts).is_needed());
    inputs.facts(host).is_some_and(are_new)
}

/// Whether the name of the API resolves to a control plane that moves. On all nodes, pods with hostNetwork keep the names in
/// `/etc/hosts` from their start.
fn api_moves(inputs: &Inputs) -> bool {
    inputs.control_planes().into_iter().any(|(host, facts)| {
        inputs.endpoint().address() == Some(host.internal_address)
            && control_plane::moves::from(inputs, host, facts).is_some()
    })
}

/// The address that changes for the pods of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// The address of the node: all pods with hostNetwork restart.
    Node,
    /// The address of the API: the pods of kk's `DaemonSets` restart.
    Api,
}

impl Moved {
    /// The content of the mark on the node.
    pub(super) fn mark(self) -> &'static str {
        match self {
            Self::Node => "",
            Self::Api => "api\n",
        }
    }
}

/// The nodes that have to move, or whose move an earlier run began and did not finish; all nodes if the API moves. The pods of a
/// node that joins a running cluster may start before the load balancer of kk works there.
pub(super) fn all<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, Moved)> {
    let api_moves = api_moves(inputs);
    // Without the API, the previous addresses of nodes are unknown.
    let any_moves = api_moves || !etcd::moves::all(inputs).is_empty();
    let moved = |(host, facts): (&'a Host, &kk_engine::Facts)| {
        let mark = facts.files.get(MOVING);
        let joined = inputs.has_joined(host);
        let node_moves = joined
            && (address_of_before(inputs, host).is_some()
                || control_plane::moves::from(inputs, host, facts).is_some()
                || any_moves && !inputs.state.answered && has_new_flags(inputs, host));
        if node_moves || mark.is_some_and(|mark| mark.sha256 != kk_util::sha256(Moved::Api.mark().as_bytes()))
        {
            return Some((host, Moved::Node));
        }
        let follows = if joined {
            api_moves
                || endpoint::from(inputs, facts).is_some()
                || endpoint::pods_from(inputs, facts).is_some()
        } else {
            inputs.endpoint().is_own() && inputs.is_initialised()
        };
        (follows || mark.is_some()).then_some((host, Moved::Api))
    };
    inputs.nodes().into_iter().filter_map(moved).collect()
}

/// The nodes of [`all`].
pub(crate) fn moving<'a>(inputs: &Inputs<'a>) -> Vec<&'a Host> {
    all(inputs).into_iter().map(|(host, _)| host).collect()
}

/// Control planes and etcd members report their own moves.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    if !api_moves(inputs) {
        endpoint::findings(inputs, found);
    }
    let is_worker = |host: &&Host| !host.has_role(&Role::ControlPlane) && !host.has_role(&Role::Etcd);
    for host in moving(inputs).into_iter().filter(is_worker) {
        if let Some(before) = address_of_before(inputs, host) {
            found.adapted(
                host,
                format!("moves from {before} to {}", host.internal_address),
                "its kubelet and the pods in its network start again",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kk_engine::{FileFact, Finding};

    use crate::{
        base::{cluster_state::API, host_layout::MOVING, questions::PRINT_BEGAN, slots},
        commands::{
            add_nodes::tests::{ANSWERED, probed, spec},
            create_cluster,
            precheck::precheck,
        },
        testing::{self, KUBERNETES},
    };

    /// The findings about moves and the tasks of a create, if the cluster knows these addresses of n1 and n2.
    async fn plan(n1: &str, n2: &str, marked: bool) -> (Vec<Finding>, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        let node =
            |name: &str, addresses: &str| format!("Node\t{name}\tTrue\t{KUBERNETES}\t\t\t\t{addresses}\n");
        let mut probed = probed(&session, None).await;
        let api = node("n1", n1) + &node("n2", n2) + ANSWERED;
        probed.facts.get_mut("n1").unwrap().reply(&API, api);
        if marked {
            probed.facts.get_mut("n2").unwrap().files.insert(MOVING.into(), FileFact::default());
        }
        let inputs = session.create_inputs(&probed).await.unwrap();
        let found = precheck(&create_cluster::capabilities(&spec()), &inputs);
        let pipeline = create_cluster::pipeline(&inputs).unwrap();
        let tasks = pipeline.modules.iter().flat_map(|module| &module.tasks);
        let moves = ["mark_moves", "finish_moves"];
        let works = tasks.filter(|task| moves.contains(&&*task.name)).flat_map(|task| {
            task.hosts
                .iter()
                .filter(|(_, work)| !work.actions.is_empty())
                .map(|(host, _)| format!("{} {host}", task.name))
        });
        (found.into_iter().filter(|finding| finding.message.contains("move")).collect(), works.collect())
    }

    #[tokio::test]
    async fn a_worker_at_another_address_is_named_marked_and_gets_new_pods() {
        let all = ["mark_moves n2", "finish_moves n2"];
        let (found, tasks) = plan("192.0.2.1 ", "192.0.2.77 2001:db8::1 ", false).await;
        assert_eq!(tasks, all);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(one.message, "moves from 192.0.2.77 to 192.0.2.2");
        // A run was killed after the kubelet had reported the address.
        let (found, tasks) = plan("192.0.2.1 ", "192.0.2.2 ", true).await;
        assert_eq!((found.len(), tasks), (0, all.map(str::to_owned).to_vec()));
        for same in ["192.0.2.2 2001:db8::1 ", "2001:db8::1 192.0.2.2 ", ""] {
            let (found, tasks) = plan("192.0.2.1 ", same, false).await;
            assert_eq!((found.len(), tasks.len()), (0, 0), "{same}");
        }
    }

    /// Runs the script of n2 on a host whose kubelet started at 12:00. Its Node has these addresses, and these sandboxes run
    /// before and after the script stops some. Returns whether the script succeeds, its messages, and the sandboxes that it
    /// stops.
    fn restart(addresses: &str, before: &str, after: &str) -> (bool, String, String) {
        restart_since("", addresses, before, after)
    }

    /// The same if the host was marked at this time.
    fn restart_since(marked: &str, addresses: &str, before: &str, after: &str) -> (bool, String, String) {
        restart_only("", marked, addresses, before, after)
    }

    /// The same for the pods of these `DaemonSets` only.
    fn restart_only(
        only: &str,
        marked: &str,
        addresses: &str,
        before: &str,
        after: &str,
    ) -> (bool, String, String) {
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().join("mark");
        if !marked.is_empty() {
            let touch = std::process::Command::new("touch").args(["-d", marked]).arg(&mark).status();
            assert!(touch.unwrap().success());
        }
        let program = |name: &str, text: &str| testing::program(directory.path(), name, text);
        program(
            "kubectl",
            &format!("case \"$*\" in *delete*) echo \"$*\" >>stopped.log ;; *) echo ' {addresses} ' ;; esac"),
        );
        program(
            "crictl",
            &format!(
                "for last; do :; done; case \"$*\" in *stopp*) echo $last >>stopped.log ;; *inspectp*) echo \"$last\" | tr _ ' ' ;; \
                 *) if [ -e stopped.log ]; then printf '{after}'; else printf '{before}'; fi ;; esac"
            ),
        );
        program("sleep", "exit 0");
        // The clock of the test advances by 10 s with each call.
        let library = "kk_uptime() { echo . >>ticks; echo $(($(wc -l <ticks) * 10)); }; kk_fail() { echo \"$*\" >&2; return 1; }; kk_do() { \"$@\"; }";
        let host = &spec().hosts[1];
        let text = super::finish_moves::restart(host, only).replace(PRINT_BEGAN, "echo 2026-01-02T12:00:00Z");
        let text = text.replace(MOVING, &mark.display().to_string());
        let output = testing::run_script(directory.path(), &format!("{library}\n{text}"));
        let stopped = fs::read_to_string(directory.path().join("stopped.log")).unwrap_or_default();
        (output.status.success(), String::from_utf8(output.stderr).unwrap(), stopped)
    }

    #[test]
    fn only_pods_older_than_the_kubelet_start_again_and_are_waited_for() {
        let pod = |name: &str, hour: u32| format!("2026-01-02T{hour}:00:00.5Z_{name}_x\\n");
        let (new, old) = (pod("new", 13), pod("old", 11));
        let (ok, said, stopped) =
            restart("192.0.2.2", &(new.clone() + &old), &(new.clone() + &pod("back", 14)));
        assert!(ok, "{said}");
        assert_eq!(stopped, "old\n");
        for after in [new.clone(), new.clone() + &old] {
            let (ok, said, _) = restart("192.0.2.2", &(new.clone() + &old), &after);
            assert!(!ok && said.contains("the pods in the network of n2 are not back"), "{said}");
        }
        // A cloud provider shows its own addresses.
        let (ok, said, stopped) = restart("192.0.2.77 192.0.2.22", &old, &new);
        assert!(ok && stopped == "old\n", "{said}");
        let (ok, said, stopped) = restart("192.0.2.2", &new, &new);
        assert!(ok && stopped.is_empty(), "{said}");
    }

    /// The other nodes of a cluster whose API has moved: users' pods stay, and kk's pods may end by themselves.
    #[test]
    fn where_only_the_api_moves_pods_of_named_daemon_sets_are_deleted_and_waited_for() {
        let pod = |name: &str, hour: u32| format!("2026-01-02T{hour}:00:00.5Z_id_{name}\\n");
        let others = pod("rook-ceph/osd-kube-proxy-x1z2y", 11) + &pod("other/kube-proxy-a1b2c", 11);
        let old = pod("kube-system/kube-proxy-a1b2c", 11);
        let new = pod("kube-system/kube-proxy-d3e4f", 13);
        let only = "kube-system/daemonset/kube-proxy kube-flannel/daemonset/kube-flannel-ds";
        let (ok, said, deleted) =
            restart_only(only, "", "192.0.2.2", &(others.clone() + &old), &(others.clone() + &new));
        assert!(ok, "{said}");
        assert_eq!(deleted.lines().count(), 1, "{deleted}");
        assert!(deleted.contains("-n kube-system delete pod kube-proxy-a1b2c "), "{deleted}");
        assert!(!deleted.contains("--grace-period"), "{deleted}");
        let (ok, said, _) = restart_only(only, "", "192.0.2.2", &(others.clone() + &old), &others);
        assert!(!ok && said.contains("the pods in the network of n2 are not back"), "{said}");
    }

    /// The next pod of a Deployment may run on another node.
    #[test]
    fn where_only_the_api_moves_pods_of_named_deployments_are_deleted() {
        let pod = |name: &str, hour: u32| format!("2026-01-02T{hour}:00:00.5Z_id_{name}\\n");
        let only = "kube-system/deployment/calico-typha kube-system/daemonset/calico-node";
        let others =
            pod("kube-system/calico-typha-a1b2c", 11) + &pod("mine/calico-typha-6d4b75cb6d-x1z2y", 11);
        let typha = pod("kube-system/calico-typha-6d4b75cb6d-a1b2c", 11);
        let (ok, said, deleted) = restart_only(only, "", "192.0.2.2", &(others.clone() + &typha), &others);
        assert!(ok, "{said}");
        assert_eq!(deleted.lines().count(), 1, "{deleted}");
        assert!(deleted.contains("-n kube-system delete pod calico-typha-6d4b75cb6d-a1b2c "), "{deleted}");
        let (ok, said, _) = restart_only(only, "", "192.0.2.2", &typha, &typha);
        assert!(!ok && said.contains("the pods in the network of n2 are not back"), "{said}");
    }

    #[tokio::test]
    async fn the_pods_of_all_workloads_of_kk_follow_the_api() {
        let mut spec = spec();
        spec.network.plugin = kk_config::NetworkPlugin::Cilium;
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let fresh = testing::fresh(&spec);
        let only = super::finish_moves::own_workloads(&session.create_inputs(&fresh).await.unwrap());
        for workload in ["kube-system/daemonset/kube-proxy", "kube-system/deployment/cilium-operator"] {
            assert!(only.split(' ').any(|one| one == workload), "{workload}: {only}");
        }
    }

    #[tokio::test]
    async fn nodes_that_only_follow_the_api_take_turns_and_keep_the_pods_of_users() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        for (node_moves, mark, turns, of_n2) in [
            (false, None, true, "of kk"),
            (false, Some(super::Moved::Api), true, "of kk"),
            // An earlier run has begun to change its address.
            (false, Some(super::Moved::Node), false, "with hostNetwork"),
            (true, Some(super::Moved::Api), false, "with hostNetwork"),
        ] {
            let address = if node_moves { "192.0.2.77 " } else { "192.0.2.2 " };
            let node = |name: &str, addresses: &str| {
                format!("Node\t{name}\tTrue\t{KUBERNETES}\t\t\t\t{addresses}\n")
            };
            let mut probed = probed(&session, None).await;
            let api = node("n1", "192.0.2.1 ") + &node("n2", address) + ANSWERED;
            probed.facts.get_mut("n1").unwrap().reply(&API, api);
            for name in ["n1", "n2"] {
                let facts = probed.facts.get_mut(name).unwrap();
                facts.reply(&super::endpoint::LEADS, "192.0.2.1\nok\n192.0.2.3\nok\n");
            }
            if let Some(mark) = mark {
                let sha256 = kk_util::sha256(mark.mark().as_bytes());
                let file = FileFact { sha256, ..FileFact::default() };
                probed.facts.get_mut("n2").unwrap().files.insert(MOVING.into(), file);
            }
            let inputs = session.create_inputs(&probed).await.unwrap();
            let task = super::finish_moves::task(&inputs);
            assert_eq!(task.turn.is_some(), turns, "{node_moves} {mark:?}");
            let restart = format!("{:?}", task.hosts["n2"].actions[0].check(&probed.facts["n2"]));
            assert!(restart.contains(of_n2), "{node_moves} {mark:?}: {restart}");
            let first = slots::works_on_first_slot("moves");
            let waits = task.hosts.values().filter(|work| work.needs.contains(&first)).count();
            assert_eq!(waits, usize::from(turns), "{node_moves} {mark:?}");
        }
    }

    /// The other nodes of a cluster whose API has moved: their kubelets continue to run.
    #[test]
    fn pods_older_than_the_mark_start_again_and_static_ones_do_not() {
        let pod =
            |name: &str, hour: u32, source: &str| format!("2026-01-02T{hour}:00:00.5Z_{name}_x{source}\\n");
        let (proxy, static_pod, back) = (pod("proxy", 13, ""), pod("api", 13, "_file"), pod("back", 15, ""));
        for (marked, wanted) in [("2026-01-02T14:00:00Z", "proxy\n"), ("2026-01-02T11:00:00Z", ""), ("", "")]
        {
            let after = if wanted.is_empty() { &proxy } else { &back };
            let (ok, said, stopped) = restart_since(
                marked,
                "192.0.2.2",
                &(proxy.clone() + &static_pod),
                &(after.clone() + &static_pod),
            );
            assert!(ok, "{said}");
            assert_eq!(stopped, wanted, "{marked}");
        }
    }
}
