//! Wait until all nodes are Ready and the network components run on them.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use kk_config::{Host, Role};
use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use super::new_service;
use crate::{
    base::{host_layout::KUBECTL, requirements::Workload, shell, slots},
    capabilities::{kube_proxy, network, nodes},
    model::{actions::ForJoined, inputs::Inputs},
};

const READY: &str = concat!(include_str!("../../base/rollout_progress.sh"), include_str!("ready.sh"));

/// The input of the script.
struct Wait {
    workloads: Vec<Workload>,
    static_pods: Vec<&'static str>,
    /// Names of nodes that did not answer.
    absent: String,
    /// The DNS domain of the cluster, and whether kube-proxy routes its Services. `None` for a new cluster, in which no component
    /// can have missed a change.
    new_service: Option<(String, bool)>,
}

/// The script uses watches of the API instead of polling. It shows what is not ready, and prints the addresses of pods that
/// answer.
fn script(wait: &Wait, nodes: &[&Host]) -> String {
    let Wait { workloads, static_pods, absent, new_service } = wait;
    let names: Vec<_> = nodes.iter().map(|host| quote(&host.name)).collect();
    let own: Vec<_> = nodes.iter().map(|host| host.name.as_str()).collect();
    let variables = [("absent", absent.as_str()), ("own", &own.join(" "))];
    let mut text = KUBECTL.to_owned() + &shell::script(&variables, READY);
    // If nodes have only left the cluster, only pods have to be ready again.
    if !names.is_empty() {
        let _ = writeln!(text, "nodes_are_ready {}", names.join(" "));
    }
    let control_planes = nodes.iter().filter(|host| host.has_role(&Role::ControlPlane));
    let pods: Vec<_> = control_planes
        .flat_map(|host| static_pods.iter().map(move |program| format!("{program}-{}", host.name)))
        .map(|pod| quote(&pod).into_owned())
        .collect();
    if !pods.is_empty() {
        let _ = writeln!(text, "static_pods_are_ready {}", pods.join(" "));
    }
    if !workloads.is_empty() {
        text += "leave_out_others\n";
    }
    for Workload { namespace, path, .. } in workloads {
        let least = if path.starts_with("daemonset/") { nodes.len() } else { 1 };
        let _ = writeln!(text, "pods_are_ready {namespace} {path} {least}");
    }
    for Workload { namespace, path, metrics } in workloads {
        if let Some(port) = metrics {
            let _ = writeln!(text, "addresses {namespace} {path} {port}");
        }
    }
    if let Some((domain, routed)) = new_service {
        text += &new_service::script(domain, *routed);
    }
    text
}

pub(super) fn task(inputs: &Inputs) -> Task {
    let kubernetes = &inputs.spec.kubernetes;
    let new_service = || (kubernetes.dns_domain.clone(), !kubernetes.disable_kube_proxy);
    let absent = inputs.spec.nodes().into_iter().filter(|host| inputs.facts(host).is_none());
    let told = Wait {
        workloads: inputs.requirements.workloads(),
        static_pods: inputs.requirements.static_pods(),
        absent: absent.map(|host| host.name.as_str()).collect::<Vec<_>>().join(" "),
        new_service: inputs.is_initialised().then(new_service),
    };
    let wait = ForJoined::new(inputs, move |nodes| {
        Command::new("wait until nodes are Ready and their pods run", script(&told, nodes))
            .only_waits()
            .output(Arc::new(|stdout, values| {
                values.fill(&slots::pod_addresses_slot(), stdout.to_owned());
                Ok(())
            }))
            .hint(
                "",
                "check the pods that are not ready: \"kubectl get pods -A\", \"kubectl describe pod …\"",
            )
    });
    let mut work = HostWork::new(vec![Box::new(wait)])
        .needs(slots::initialised_slot())
        .needs(slots::node_tools_slot(&inputs.api_host.name))
        .provides(slots::pod_addresses_slot().key());
    if inputs.command.is_create() {
        for addon in inputs.addons.iter().filter(|addon| addon.addon.is_of_network()) {
            work = work.needs(slots::network_addon_slot(&addon.addon.name));
        }
    }
    for (host, _) in inputs.nodes() {
        work = work.after(slots::joined_slot(&host.name));
        if inputs.has_joined(host) {
            work = work.after(slots::kubelet_works_slot(&host.name));
        }
    }
    for host in nodes::moving(inputs) {
        work = work.after(slots::moved_slot(&host.name));
    }
    for host in network::lost(inputs) {
        work = work.after(slots::network_back_slot(&host.name));
    }
    for host in kube_proxy::restarted(inputs) {
        work = work.after(slots::services_back_slot(&host.name));
    }
    Task::new("wait_until_ready", "Wait until nodes are Ready")
        // Each wait in the script ends 10 minutes at most after the last progress; this limit is for a script that hangs.
        .timeout(Duration::from_hours(2))
        .on(&inputs.api_host.name, work)
}

#[cfg(test)]
mod tests {
    use super::READY;
    use crate::{base::shell::script, testing};

    /// A clock that advances by 100 s with each call.
    const CLOCK: &str = "kk_uptime() { echo ...... >>ticks; echo $(($(wc -l <ticks) * 100)); }; kk_fail() { echo \"$*\" >&2; return 1; }; kk_note() { echo \"note: $*\"; }";

    /// Runs a line of `ready.sh` with these pods in the API. Returns whether it succeeds, and its output.
    fn run(line: &str, absent: &str, pods: &str) -> (bool, String) {
        run_with("exit 1", line, absent, pods)
    }

    /// The same with this script for `kubectl wait`.
    fn run_with(wait: &str, line: &str, absent: &str, pods: &str) -> (bool, String) {
        run_among("", wait, line, absent, pods)
    }

    /// The same with these nodes in the API; a and b belong to the run.
    fn run_among(nodes: &str, wait: &str, line: &str, absent: &str, pods: &str) -> (bool, String) {
        let directory = tempfile::tempdir().unwrap();
        let kubectl = format!(
            "case \" $*\" in *' wait '*) {wait} ;; *'rollout status'*) exit 1 ;; *observedGeneration*) [ ! -e behind ] && echo observed ;; *controllerrevisions*) printf 'DaemonSet/d 9 before\\nDaemonSet/d 10 now\\nDaemonSet/e 11 other\\n' ;; *maxUnavailable*) cat limited ;; *hash=now*podIPs*) printf '{pods}' | grep -v old ;; *podIPs*) printf '{pods}' ;; *' get nodes '*) printf '{nodes}' ;; *matchLabels*) printf 'k=v,' ;; esac"
        );
        testing::program(directory.path(), "kubectl", &kubectl);
        let text = script(&[("absent", absent), ("own", "a b")], READY);
        let output = testing::run_script(directory.path(), &format!("{CLOCK}\n{text}\n{line}"));
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    /// The headline of an error is its last line.
    #[test]
    fn the_error_names_a_pod_that_is_not_ready_its_node_and_what_was_said_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let kubectl = r#"case " $*" in
            *'rollout status'*) echo 'error: timed out waiting for the condition' >&2; exit 1 ;;
            *matchLabels*) printf 'k=v,' ;;
            *--no-headers*events*|*events*--no-headers*) echo '1m Warning Unhealthy pod/p2 long' ;;
            *events*) printf '"pulled"\n"Readiness probe failed: dial tcp 10.1.0.2:8181: connect: no route to host"\n' ;;
            *' pods '*--no-headers*) printf 'p1 1/1 Running 0 1m\np2 0/1 Running 0 1m\np3 0/1 Pending 0 1m\n' ;;
            *' pod p2 '*) printf ' on node3' ;;
        esac"#;
        testing::program(directory.path(), "kubectl", kubectl);
        let text = script(&[("absent", ""), ("own", "a b")], READY);
        let line = format!("{CLOCK}\n{text}\npods_are_ready n deployment/d 2");
        let output = testing::run_script(directory.path(), &line);
        assert!(!output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            said.lines().last().unwrap(),
            "not all pods of deployment/d are ready, and none became so for 300 s: p2 on node3: Readiness probe failed: dial tcp 10.1.0.2:8181: connect: no route to host (and 1 more)"
        );
        assert!(!said.contains("timed out waiting for the condition"), "{said}");
    }

    #[test]
    fn pods_on_nodes_that_did_not_answer_do_not_count() {
        let one = "a p1 True 10.1.0.2\\nb p2 True 10.2.0.2\\n";
        for (kind, least, absent, pods, ready) in [
            ("deployment", 1, "b", "a p1 True 10.1.0.2\\nb p2 False 10.2.0.2\\n", true),
            ("deployment", 1, "b", "a p1 False 10.1.0.2\\nb p2 True 10.2.0.2\\n", false),
            ("deployment", 1, "b", "b p2 True 10.2.0.2\\n", false),
            ("deployment", 2, "c", one, true),
            ("deployment", 3, "c", one, false),
            // A pod on a node outside the run does not replace a missing pod.
            ("daemonset", 2, "c", "a p1 True 10.1.0.2\\nz p2 True 10.2.0.2\\n", false),
            // If no node is absent, the status of the rollout counts.
            ("deployment", 1, "", one, false),
        ] {
            let (done, _) = run(&format!("pods_are_ready n {kind}/d {least}"), absent, pods);
            assert_eq!(done, ready, "{least} {absent} {pods}");
        }
    }

    /// In the stub no rollout ends.
    #[test]
    fn nodes_of_others_that_are_not_ready_are_not_waited_for() {
        let pods = "a p1 True 10.1.0.2\\nb p2 True 10.2.0.2\\nz p3 False 10.3.0.2\\n";
        for (others, ready) in
            [("z Unknown", true), ("z False", true), ("z ", true), ("z True", false), ("", false)]
        {
            let nodes = format!("a True\\nb True\\n{others}\\n");
            let line = "leave_out_others\npods_are_ready n daemonset/d 2";
            assert_eq!(run_among(&nodes, "exit 1", line, "", pods).0, ready, "{others}");
            // A node of this run that is not Ready counts.
            let nodes = nodes.replace("a True", "a False");
            let pods = pods.replace("a p1 True", "a p1 False");
            assert!(!run_among(&nodes, "exit 1", line, "", &pods).0, "{others}");
        }
    }

    /// In the stub, a pod is old if its name contains "old".
    #[test]
    fn pods_on_ready_nodes_are_replaced_unless_a_node_that_is_down_keeps_their_controller_from_it() {
        let old = "a p1-old True 10.1.0.2\\nb p2 True 10.2.0.2\\nz p3-old False\\n";
        let unready = "a p1 False 10.1.0.2\\nb p2 True 10.2.0.2\\nz p3-old False\\n";
        let new = "a p1 True 10.1.0.2\\nb p2 True 10.2.0.2\\nz p3-old False\\n";
        for (z, most, pods, ready, held) in [
            // The node did not answer, but its kubelet works.
            ("True", "1 3", old, false, false),
            ("True", "1 3", unready, false, false),
            ("True", "1 3", new, true, false),
            ("Unknown", "1 3", old, true, true),
            ("Unknown", "1 3", unready, false, false),
            ("Unknown", "1 3", new, true, false),
            ("Unknown", "2 3", old, false, false),
            ("Unknown", "33% 3", old, true, true),
            ("Unknown", "34% 3", old, false, false),
        ] {
            let nodes = format!("a True\\nb True\\nz {z}\\n");
            let line = format!("echo {most} >limited\nleave_out_others\npods_are_ready n daemonset/d 2");
            let (done, said) = run_among(&nodes, "exit 1", &line, "z", pods);
            assert_eq!((done, said.contains("note: daemonset/d")), (ready, held), "{z} {most} {pods}");
        }
    }

    #[test]
    fn pods_of_a_workload_whose_change_its_controller_has_not_seen_do_not_count() {
        let pods = "a p1 True 10.1.0.2\\n";
        for (before, ready) in [("", true), (": >behind\n", false)] {
            let line = format!("{before}pods_are_ready n deployment/d 1");
            assert_eq!(run(&line, "b", pods).0, ready, "{before}");
        }
    }

    /// In the stub a pod becomes ready only if it is replaced.
    #[test]
    fn pods_that_are_in_back_off_are_replaced_but_on_nodes_that_did_not_answer() {
        let kubectl = "case \" $*\" in *CrashLoopBackOff*) printf \"$KK_ENDED\" ;; *' delete pod '*) : >replaced ;; *'rollout status'*) [ -e replaced ] ;; *observedGeneration*) echo observed ;; *podIPs*) [ -e replaced ] && echo 'a p1 True' || echo 'a p1 False' ;; *matchLabels*) printf 'k=v,' ;; esac";
        for (absent, ended, ready) in [
            ("", "a p1\\n", true),
            ("", "", false),
            ("b", "a p1\\n", true),
            ("b", "b p1\\n", false),
            ("b", "", false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            testing::program(directory.path(), "kubectl", &kubectl.replace("$KK_ENDED", ended));
            let text = script(&[("absent", absent), ("own", "a b")], READY);
            let line = format!("{CLOCK}\n{text}\npods_are_ready n deployment/d 1");
            let output = testing::run_script(directory.path(), &line);
            assert_eq!(output.status.success(), ready, "{absent} {ended} {output:?}");
        }
    }

    /// A pod that was just replaced has time to start.
    #[test]
    fn pods_are_not_replaced_at_each_look() {
        let kubectl = "case \" $*\" in *CrashLoopBackOff*) echo 'a p1' ;; *' delete pod '*) echo >>replaced ;; *'rollout status'*) exit 1 ;; *matchLabels*) printf 'k=v,' ;; esac";
        let directory = tempfile::tempdir().unwrap();
        testing::program(directory.path(), "kubectl", kubectl);
        let clock = CLOCK.replace("* 100", "* 5");
        let text = script(&[("absent", ""), ("own", "a b")], READY);
        let line = format!("{clock}\nsleep() {{ :; }}\n{text}\npods_are_ready n deployment/d 1");
        assert!(!testing::run_script(directory.path(), &line).status.success());
        let replaced = std::fs::read_to_string(directory.path().join("replaced")).unwrap().lines().count();
        assert!((8..=10).contains(&replaced), "{replaced} times within 300 s");
    }

    /// In the stub each check of a rollout takes 100 s.
    #[test]
    fn pods_on_hosts_where_the_api_needs_long_for_an_answer_have_more_time() {
        let clock = CLOCK.replace(
            "kk_uptime() { echo ...... >>ticks; echo $(($(wc -l <ticks) * 100)); }",
            "kk_uptime() { cat clock; }; sleep() { :; }; echo 0 >clock",
        );
        for (seconds, looks) in [(0, 3), (1, 3), (3, 5), (8, 6), (40, 6)] {
            let directory = tempfile::tempdir().unwrap();
            let kubectl = format!(
                "later() {{ echo $(($(cat clock) + $1)) >clock; }}; case \" $*\" in *' get nodes '*) later {seconds} ;; *'rollout status'*) echo >>looks; later 100; exit 1 ;; *matchLabels*) printf 'k=v,' ;; esac"
            );
            testing::program(directory.path(), "kubectl", &kubectl);
            let text = script(&[("absent", ""), ("own", "a b")], READY);
            let line = format!("{clock}\n{text}\nleave_out_others\npods_are_ready n deployment/d 1");
            let output = testing::run_script(directory.path(), &line);
            let looked = std::fs::read_to_string(directory.path().join("looks")).unwrap().lines().count();
            assert_eq!(looked, looks, "{seconds} s: {output:?}");
        }
    }

    /// In the stub each check takes 100 s and shows the number of updated pods from this file.
    #[test]
    fn a_rollout_is_waited_for_as_long_as_further_pods_are_updated() {
        let going_on: Vec<_> = (1..=12).collect();
        for (absent, updated, looks, ready) in [
            ("", going_on.as_slice(), 13, true),
            ("b", going_on.as_slice(), 13, true),
            ("", &[1, 2, 2, 2, 2, 2], 5, false),
            ("", &[7, 3, 5, 6, 7, 7], 4, false),
            // The controller has not observed the change.
            ("", &[], 3, false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let list = updated.iter().map(|count| format!("{count}\n")).collect::<Vec<_>>().concat();
            std::fs::write(directory.path().join("updated"), list).unwrap();
            let kubectl = "case \" $*\" in *updatedNumberScheduled*) head -n 1 updated; sed -i 1d updated ;; *'rollout status'*) echo >>looks; [ $(wc -l <looks) -ge 13 ] ;; *observedGeneration*) echo observed ;; *podIPs*) echo >>looks; [ $(wc -l <looks) -lt 13 ] || echo 'a p1 True' ;; *matchLabels*) printf 'k=v,' ;; esac";
            testing::program(directory.path(), "kubectl", kubectl);
            testing::program(directory.path(), "sleep", "exit 0");
            let clock = CLOCK.replace(
                "echo ...... >>ticks; echo $(($(wc -l <ticks) * 100))",
                "echo $((100 * $(cat looks 2>/dev/null | wc -l)))",
            );
            let text = script(&[("absent", absent), ("own", "a b")], READY);
            let line = format!("{clock}\n{text}\nrolled_out n deployment/d 1");
            let output = testing::run_script(directory.path(), &line);
            let looked = std::fs::read_to_string(directory.path().join("looks")).unwrap().lines().count();
            assert_eq!((looked, output.status.success()), (looks, ready), "{absent} {updated:?} {output:?}");
        }
    }

    #[test]
    fn what_the_api_shows_late_is_waited_for() {
        let (late, never) = ("[ -e seen ] || { : >seen; exit 1; }", "exit 1");
        for line in ["static_pods_are_ready kube-apiserver-a", "nodes_are_ready a"] {
            for (wait, ready) in [(late, true), (never, false)] {
                assert_eq!(run_with(wait, line, "", "").0, ready, "{line} {wait}");
            }
        }
    }

    #[test]
    fn every_address_of_a_ready_pod_is_printed() {
        let pods = "a p1 True 10.1.0.2 fd00::2\\nb p2 False 10.2.0.2\\nc p3 True 10.3.0.2\\n";
        let wanted =
            "pod p1 of a\thttp://10.1.0.2:9153/metrics\npod p1 of a\thttp://[fd00::2]:9153/metrics\n";
        assert_eq!(run("addresses n deployment/d 9153", "c", pods), (true, wanted.to_owned()));
    }
}
