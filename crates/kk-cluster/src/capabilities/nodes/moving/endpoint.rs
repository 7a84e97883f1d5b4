//! The address that the name of the API has on a node, and whether the API answers at the address in the file.

use kk_config::{Balancer, Spec};
use kk_engine::{Facts, Question};

use crate::{
    base::{
        findings::Findings,
        host_layout::{HOSTS_BEGIN, HOSTS_END},
        shell::script,
    },
    capabilities::etcd,
    model::{endpoint::Endpoint, inputs::Inputs},
};

/// The answer of a node.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Leads {
    /// The address in its `/etc/hosts`; empty on a host that is not a node yet, or if the user's own DNS resolves the name.
    there: String,
    /// Why the API does not answer at the address in the file.
    refused: Option<String>,
    /// The address in the pod of kube-proxy, if there is one.
    in_pods: Option<String>,
    /// The node gets no answer from the API at `in_pods`.
    is_cut_off: bool,
}

pub(crate) const LEADS: Question<Leads> = Question::new("api_leads", "", parse);

/// The API is queried only at addresses that need it: at the file's address if the node has another one, and at the address in
/// the pod if another control plane can stand in for the one in the file. A load balancer of kk is always queried, because kk
/// repairs it.
pub(crate) fn question(spec: &Spec) -> Option<Question<Leads>> {
    Some(LEADS.with_snippet(text(spec)?))
}

fn text(spec: &Spec) -> Option<String> {
    let endpoint = &spec.control_plane_endpoint;
    let address = endpoint.address.filter(|_| !endpoint.external_dns)?.to_string();
    let port = endpoint.port.to_string();
    // Only another control plane can stand in for the one in the file.
    let control_planes = spec.control_planes();
    let can_stand_in = control_planes.len() > 1
        && control_planes.iter().any(|host| Some(host.internal_address) == endpoint.address);
    let variables = [
        ("begin", HOSTS_BEGIN),
        ("end", HOSTS_END),
        ("domain", &endpoint.domain),
        ("address", &address),
        ("port", &port),
        ("ask_in_pods", if can_stand_in { "yes" } else { "" }),
        ("ask_there", if endpoint.balancer == Balancer::None { "" } else { "yes" }),
    ];
    Some(script(&variables, include_str!("endpoint.sh")))
}

fn parse(printed: &str) -> Option<Leads> {
    let mut lines = printed.lines();
    let Some(there) = lines.next().filter(|line| !line.is_empty()) else {
        return Some(Leads::default());
    };
    let refused = match lines.next()? {
        "ok" => None,
        why => Some(why.to_owned()),
    };
    let in_pods = lines.next().filter(|line| !line.is_empty()).map(str::to_owned);
    let is_cut_off = lines.next().is_some_and(|said| said != "ok");
    Some(Leads { there: there.to_owned(), refused, in_pods, is_cut_off })
}

/// Whether a node uses the load balancer of kk and gets an answer there. While no API server answers, the load balancer cannot
/// answer either.
pub(crate) fn uses_balancer(inputs: &Inputs, facts: &Facts) -> bool {
    let Some(leads) = facts.answer(&LEADS).answered() else { return false };
    let is_there = inputs.endpoint().wanted().is_some_and(|wanted| wanted.to_string() == leads.there);
    is_there && (leads.refused.is_none() || !inputs.state.answered)
}

/// Why a node gets no answer from the API at the address in the file.
pub(crate) fn refused(facts: &Facts) -> Option<String> {
    facts.answer(&LEADS).answered()?.refused
}

/// All addresses at which a node accesses the API by its name.
pub(crate) fn asked_at(facts: &Facts) -> Vec<String> {
    let Some(Leads { there, in_pods, .. }) = facts.answer(&LEADS).answered() else { return Vec::new() };
    [Some(there), in_pods].into_iter().flatten().filter(|address| !address.is_empty()).collect()
}

/// The current address at which kube-proxy on a node accesses the API, if it has to change. Pods keep the host names from their
/// start, so they do not follow a name that now resolves to another control plane. While another control plane stands in for the
/// one in the file, only the node itself knows whether it reaches the API: kk may lack SSH to a host whose API serves all nodes.
pub(crate) fn pods_from(inputs: &Inputs, facts: &Facts) -> Option<String> {
    let wanted = inputs.endpoint().wanted()?;
    let leads = facts.answer(&LEADS).answered()?;
    let there = leads.in_pods?;
    let now = inputs.endpoint().address()?;
    let is_wrong = there != now.to_string() && (now == wanted || leads.is_cut_off);
    is_wrong.then_some(there)
}

/// The address that the name has on a node, if the file specifies another. Any control plane's address is accepted, because it
/// works while the first control plane is down. Switching to a load balancer counts as a move.
pub(crate) fn from(inputs: &Inputs, facts: &Facts) -> Option<String> {
    leads(inputs, facts).map(|leads| leads.there)
}

fn leads(inputs: &Inputs, facts: &Facts) -> Option<Leads> {
    let endpoint = inputs.endpoint();
    let wanted = endpoint.wanted()?.to_string();
    let leads = facts.answer(&LEADS).answered().filter(|leads| !leads.there.is_empty())?;
    let is_control_plane =
        inputs.spec.control_planes().iter().any(|host| host.internal_address.to_string() == leads.there);
    (leads.there != wanted && (endpoint.is_balanced() || !is_control_plane)).then_some(leads)
}

/// Everything accesses the API by its name, so nothing changes until all nodes have reached the API at the new address.
pub(crate) fn findings(inputs: &Inputs, found: &mut Findings) {
    let Some(to) = inputs.endpoint().wanted() else { return };
    let nodes: Vec<_> = inputs.nodes().into_iter().filter(|(host, _)| inputs.has_joined(host)).collect();
    for (host, facts) in &nodes {
        found.unanswered(host, &facts.answer(&LEADS), "which address the name of the API has");
    }
    let moves: Vec<_> =
        nodes.into_iter().filter_map(|(host, facts)| Some((host, leads(inputs, facts)?))).collect();
    let Some((_, Leads { there, .. })) = moves.first() else { return pods_findings(inputs, found) };
    let endpoint = inputs.endpoint();
    let (from, to) = (Endpoint::describe(there), Endpoint::describe(&to.to_string()));
    // A node whose join was killed does not use the load balancer yet.
    let has_moved = |(_, facts): &(_, &Facts)| uses_balancer(inputs, facts);
    if endpoint.is_own() && inputs.answered().iter().any(has_moved) {
        return pods_findings(inputs, found);
    }
    if !inputs.command.may_move() {
        return found.error(
            None,
            format!("the API is at {from}, but the file sets {to}"),
            etcd::moves::FIRST,
        );
    }
    if endpoint.is_own() {
        return found.adapted(
            None,
            format!("the API moves from {from} to {to}"),
            "kk restarts its own pods that use the API; restart your own pods with hostNetwork that access \
             the API by its name",
        );
    }
    // A control plane that moves answers at the new address only after its move.
    let is_balanced = endpoint.is_balanced();
    for (host, leads) in moves.iter().filter(|_| is_balanced) {
        if let Some(why) = &leads.refused {
            found.error(
                *host,
                format!("the API does not answer at {to}, the controlPlaneEndpoint of the file: {why}"),
                format!(
                    "configure the load balancer there to forward connections to port 6443 of the control \
                     planes; until then keep {from}"
                ),
            );
        }
    }
    found.adapted(
        None,
        format!("the API moves from {from} to {to}"),
        format!(
            "keep {from} until the move is finished; fetch kubeconfigs that contain it again; restart your \
             own pods with hostNetwork that access the API by its name"
        ),
    );
}

fn pods_findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.nodes() {
        if let Some(there) = pods_from(inputs, facts).filter(|_| inputs.command.may_move()) {
            found.adapted(
                host,
                format!("kube-proxy still uses the API at {there}"),
                "the pods of kube-proxy and of the network plugin restart, on one node first",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kk_engine::Severity;

    use super::*;
    use crate::{
        commands::{
            add_nodes::tests::{ANSWERED, joined, probed, spec},
            create_cluster,
            precheck::precheck,
        },
        testing::{self, KUBERNETES},
    };

    #[test]
    fn a_node_says_where_the_name_leads_and_asks_only_an_address_that_is_another() {
        let spec = testing::sample("three-nodes.yaml");
        let endpoint = &spec.control_plane_endpoint;
        let (address, domain) = (endpoint.address.unwrap().to_string(), &endpoint.domain);
        let block = |line: &str| format!("{HOSTS_BEGIN}\n192.0.2.1  n1.x n1\n{line}\n{HOSTS_END}\n");
        let line = |address: &str| block(&format!("{address}  {domain}"));
        for (is_node, hosts, answers, wanted) in [
            (false, line("192.0.2.9"), true, String::new()),
            (true, format!("192.0.2.9  {domain}\n"), true, String::new()),
            (true, block(""), true, String::new()),
            (true, line(&address), false, format!("{address}\nok\n")),
            (true, line("192.0.2.9"), true, "192.0.2.9\nok\n".to_owned()),
            (true, line("192.0.2.9"), false, "192.0.2.9\nrefused\n".to_owned()),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let path = |name: &str| directory.path().join(name).display().to_string();
            fs::write(path("hosts"), hosts).unwrap();
            if is_node {
                fs::write(path("kubelet.conf"), "").unwrap();
            }
            let kubectl = if answers { "echo ok" } else { "echo what; echo refused; exit 1" };
            testing::program(directory.path(), "kubectl", kubectl);
            let text = text(&spec).unwrap().replace("/etc/hosts", &path("hosts"));
            let text = text.replace("/etc/kubernetes/kubelet.conf", &path("kubelet.conf"));
            let output = testing::run_script(directory.path(), &format!("set -eu\n{text}"));
            assert!(output.status.success(), "{output:?}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted, "{is_node} {answers}");
            assert!(parse(&wanted).is_some(), "{wanted}");
        }
    }

    #[test]
    fn a_node_says_where_the_name_leads_in_its_pod_of_kube_proxy() {
        let spec = spec();
        let endpoint = &spec.control_plane_endpoint;
        let (address, domain) = (endpoint.address.unwrap().to_string(), &endpoint.domain);
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let hosts = format!("{HOSTS_BEGIN}\n{address}  {domain}\n{HOSTS_END}\n");
        fs::write(path("hosts"), hosts).unwrap();
        fs::write(path("kubelet.conf"), "").unwrap();
        let volumes = directory.path().join("pods/a-b/volumes/kubernetes.io~configmap/kube-proxy");
        fs::create_dir_all(volumes).unwrap();
        fs::write(path("pods/a-b/etc-hosts"), format!("127.0.0.1 localhost\n192.0.2.9\t{domain}\n")).unwrap();
        let text = |spec: &Spec| {
            let text = text(spec).unwrap().replace("/etc/hosts", &path("hosts"));
            let text = text.replace("/etc/kubernetes/kubelet.conf", &path("kubelet.conf"));
            text.replace("/var/lib/kubelet/pods", &path("pods"))
        };
        let mut alone = spec.clone();
        alone.hosts.retain(|host| host.name != "n3");
        for (spec, kubectl, reached) in [
            (&spec, "case \"$*\" in *https://192.0.2.9:6443*) echo ok ;; *) exit 1 ;; esac", Some("ok")),
            (&spec, "echo what; echo refused; exit 1", Some("refused")),
            (&spec, "exit 124", Some("no answer")),
            // No other control plane can stand in.
            (&alone, "echo refused; exit 1", None),
        ] {
            testing::program(directory.path(), "kubectl", kubectl);
            let output = testing::run_script(directory.path(), &format!("set -eu\n{}", text(spec)));
            let said = String::from_utf8(output.stdout).unwrap();
            let last = reached.map(|said| format!("{said}\n")).unwrap_or_default();
            assert_eq!(said, format!("{address}\nok\n192.0.2.9\n{last}"));
            let leads = parse(&said).unwrap();
            assert_eq!((leads.refused, leads.in_pods.as_deref()), (None, Some("192.0.2.9")));
            assert_eq!(leads.is_cut_off, reached.is_some_and(|said| said != "ok"));
        }
    }

    /// n1 and n3 are control planes. `answers`: n2 reaches the API at the address that its pods use.
    #[tokio::test]
    async fn pods_of_a_node_follow_the_name_to_another_control_plane() {
        for (file, in_pods, silent, answers, moves) in [
            ("192.0.2.1", "192.0.2.1", None, true, false),
            // Other checks handle an API that does not answer at the address in the file.
            ("192.0.2.1", "192.0.2.1", None, false, false),
            ("192.0.2.3", "192.0.2.1", None, true, true),
            ("192.0.2.3", "192.0.2.3", None, true, false),
            ("192.0.2.1", "192.0.2.1", Some("n1"), false, true),
            // kk cannot reach n1, but n2 can.
            ("192.0.2.1", "192.0.2.1", Some("n1"), true, false),
            ("192.0.2.1", "192.0.2.3", Some("n1"), true, false),
            ("192.0.2.1", "192.0.2.3", Some("n1"), false, false),
            // Otherwise a control plane that stands in for another could never leave the cluster.
            ("192.0.2.1", "192.0.2.3", None, true, true),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let mut spec = spec();
            spec.control_plane_endpoint.address = Some(file.parse().unwrap());
            let session = testing::session(spec, directory.path());
            let mut probed = probed(&session, Some(ANSWERED)).await;
            probed.facts.get_mut("n2").unwrap().reply(
                &LEADS,
                format!("{file}\nok\n{in_pods}\n{}\n", if answers { "ok" } else { "refused" }),
            );
            let other = probed.facts.get_mut("n3").unwrap();
            joined(other);
            other.reply(&crate::base::cluster_state::API, ANSWERED);
            if let Some(silent) = silent {
                probed.facts.remove(silent);
                probed.failures.insert(silent.to_owned(), kk_engine::Failure::new("no route to host"));
            }
            let inputs = session.create_inputs(&probed).await.unwrap();
            let from = pods_from(&inputs, &probed.facts["n2"]);
            assert_eq!(from.is_some(), moves, "{file} {in_pods} {silent:?} {answers} {from:?}");
            let moving: Vec<_> =
                crate::capabilities::nodes::moving(&inputs).iter().map(|host| host.name.clone()).collect();
            assert_eq!(moving.contains(&"n2".to_owned()), moves, "{moving:?}");
        }
    }

    /// The address of a node that does not answer.
    const SILENT: &str = "silent";

    /// The findings and the marked nodes, if the name resolves to `there` on n2 and the file specifies this endpoint.
    async fn plan(address: &str, there: &str, changes: bool) -> (Vec<(Severity, String)>, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let mut spec = spec();
        spec.control_plane_endpoint.address = Some(address.parse().unwrap());
        spec.control_plane_endpoint.external_address =
            !spec.control_planes().iter().any(|host| host.internal_address.to_string() == address);
        let session = testing::session(spec.clone(), directory.path());
        let nodes = ["n1", "n2"].map(|name| format!("Node\t{name}\tTrue\t{KUBERNETES}\t\t\t\n")).concat();
        let mut probed = probed(&session, Some(&(nodes + ANSWERED))).await;
        let facts = probed.facts.get_mut("n2").unwrap();
        if there == SILENT {
            facts.time_out(&LEADS);
        } else {
            facts.reply(&LEADS, there);
        }
        let mut inputs = session.create_inputs(&probed).await.unwrap();
        if changes {
            inputs.command = crate::model::command::Command::Upgrade;
        }
        let found = precheck(&create_cluster::capabilities(&spec), &inputs);
        let is_about_it = |text: &str| text.starts_with("the API ") || text.contains("the name of the API");
        let found = found.into_iter().filter(|finding| is_about_it(&finding.message));
        let pipeline = create_cluster::pipeline(&inputs).unwrap();
        let tasks = pipeline.modules.iter().flat_map(|module| &module.tasks);
        let order: Vec<_> = tasks.clone().map(|task| &*task.name).collect();
        let position = |name: &str| order.iter().position(|task| *task == name).unwrap();
        assert!(
            position("mark_moves") < position("write_hosts_block"),
            "the mark is what a killed run leaves"
        );
        let mark =
            tasks.filter(|task| &*task.name == "mark_moves").flat_map(|task| task.hosts.keys().cloned());
        (found.map(|finding| (finding.severity, finding.message)).collect(), mark.collect())
    }

    #[tokio::test]
    async fn the_api_moves_to_another_address_when_all_nodes_have_seen_it_there() {
        let (first, balancer) = ("192.0.2.1", "192.0.2.200");
        for (address, there, changes, said, marked) in [
            (balancer, "192.0.2.200\nok\n", false, None, false),
            (balancer, "", false, None, false),
            (
                balancer,
                SILENT,
                false,
                Some((Severity::Error, "did not report which address the name of the API has")),
                false,
            ),
            (
                balancer,
                "192.0.2.100\nok\n",
                false,
                Some((Severity::Adapted, "moves from 192.0.2.100 to")),
                true,
            ),
            (balancer, "192.0.2.1\nok\n", false, Some((Severity::Adapted, "moves from 192.0.2.1 to")), true),
            (
                balancer,
                "192.0.2.1\nrefused\n",
                false,
                Some((Severity::Error, "192.0.2.200, the controlPlaneEndpoint of the file: refused")),
                true,
            ),
            (
                balancer,
                "192.0.2.1\nok\n",
                true,
                Some((Severity::Error, "is at 192.0.2.1, but the file sets 192.0.2.200")),
                true,
            ),
            (first, "192.0.2.200\nok\n", false, Some((Severity::Adapted, "moves from 192.0.2.200 to")), true),
            (first, "192.0.2.3\nok\n", false, None, false),
            (
                first,
                "192.0.2.200\nrefused\n",
                false,
                Some((Severity::Adapted, "moves from 192.0.2.200 to")),
                true,
            ),
        ] {
            let (found, marks) = plan(address, there, changes).await;
            assert_eq!(marks == ["n2"], marked, "{address} {there} {marks:?}");
            match said {
                None => assert_eq!(found, []),
                Some((severity, words)) => {
                    assert!(
                        found.iter().any(|(is, text)| *is == severity && text.contains(words)),
                        "{found:?}"
                    );
                }
            }
        }
    }
}
