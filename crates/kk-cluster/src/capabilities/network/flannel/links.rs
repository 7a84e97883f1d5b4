//! flannel's links on a node: whether they belong to the node's pod range, and carry packets to other nodes.

use std::collections::BTreeMap;

use kk_config::{Host, Spec, v1alpha2::FlannelBackend};
use kk_engine::{Facts, Question};

use super::backend;
use crate::{
    base::{
        cluster_state::Node,
        findings::Findings,
        shell::{ASK_URL, script},
    },
    capabilities::{kube_proxy::services, network::restart::Broken},
    model::inputs::Inputs,
};

/// The answer of a node. `subnet` is missing if flannel has not recorded a range yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Links {
    /// The range that flannel recorded, with its first address: `10.233.65.1/24`.
    subnet: Option<String>,
    agent: Option<String>,
    bridge: Option<String>,
    range: Option<String>,
    /// The number of other nodes' ranges to which the node has a route.
    routes: Option<usize>,
    /// The address of another node's link, and why that link does not answer.
    silent_peer: Option<(String, String)>,
}

pub(crate) const LINKS: Question<Links> = Question::new("flannel_links", "", parse);

pub(super) fn question(spec: &Spec) -> Question<Links> {
    LINKS.with_snippet(text(spec))
}

fn text(spec: &Spec) -> String {
    let vxlan = if backend(spec) == Some(FlannelBackend::Vxlan) { "yes" } else { "" };
    script(&[("vxlan", vxlan)], &format!("{ASK_URL}{}", include_str!("links.sh")))
}

fn parse(printed: &str) -> Option<Links> {
    let mut links = Links::default();
    for line in printed.lines() {
        let (word, text) = line.split_once('\t')?;
        let said = Some(text.to_owned());
        match word {
            "subnet" => links.subnet = said,
            "agent" => links.agent = said,
            "bridge" => links.bridge = said,
            "range" => links.range = said,
            "routes" => links.routes = Some(text.trim().parse().ok()?),
            "peer" => {
                let (address, why) = text.split_once('\t')?;
                links.silent_peer = (why != "ok").then(|| (address.to_owned(), why.to_owned()));
            }
            _ => return None,
        }
    }
    // Only the line of the peer follows the number of routes: an answer without that number is truncated.
    (links.subnet.is_some() == links.routes.is_some()).then_some(links)
}

/// The answers of nodes that are Ready, if flannel runs in the cluster.
fn said<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, &'a Facts, Links)> {
    let runs = inputs.state.answered && inputs.state.workloads.contains_key("kube-flannel/kube-flannel-ds");
    let of_node = |(host, facts): (&'a Host, &'a Facts)| {
        let is_node = runs && inputs.has_joined(host) && inputs.is_ready(host);
        let links = facts.answer(&LINKS).answered().filter(|_| is_node)?;
        Some((host, facts, links))
    };
    inputs.nodes().into_iter().filter_map(of_node).collect()
}

/// The failures of flannel's links, by node.
pub(super) fn broken(inputs: &Inputs) -> BTreeMap<String, Broken> {
    let said = said(inputs);
    let mut all: BTreeMap<String, Broken> =
        said.iter().map(|(host, _, links)| (host.name.clone(), of_node(inputs, host, links))).collect();
    // If packets between two nodes are lost, either node may be the cause.
    for (host, facts, links) in &said {
        let Some((other, address, why)) = silent_peer(inputs, links) else { continue };
        let others = inputs.facts(other);
        if !services::fail(facts) && !others.is_some_and(services::fail) {
            continue;
        }
        let text = format!("the link of {} at {address} does not answer to {}: {why}", other.name, host.name);
        for name in [&host.name, &other.name] {
            if let Some(broken) = all.get_mut(name).filter(|broken| broken.agent.is_none()) {
                broken.agent = Some(text.clone());
            }
        }
    }
    all.retain(|_, broken| *broken != Broken::default());
    all
}

/// Compares the answer of a node with the answer of the API.
fn of_node(inputs: &Inputs, host: &Host, links: &Links) -> Broken {
    let nodes = &inputs.state.nodes;
    let given = nodes.get(&host.name).and_then(|node| node.pods.first());
    let subnet = links.subnet.as_deref();
    // If the ranges differ, pods are deleted, so both ranges must be known.
    let other_range = || {
        let (given, subnet) = (given?, subnet?);
        (network_of(subnet)? != network_of(given)?)
            .then(|| format!("flannel uses the range {subnet}, but the node has {given}"))
    };
    let has_pods = |node: &Node| node.ready && !node.pods.is_empty();
    let own = nodes.get(&host.name).is_some_and(has_pods);
    let others = nodes.values().filter(|node| has_pods(node)).count() - usize::from(own);
    let lacks_routes = || {
        let routes = links.routes.filter(|routes| *routes < others)?;
        Some(format!("the node has routes to the pods of {routes} of {others} other nodes"))
    };
    Broken {
        agent: links.agent.clone().or_else(lacks_routes),
        bridge: links.bridge.clone(),
        range: links.range.clone().or_else(other_range),
    }
}

/// Address and length of the network of `ADDRESS/LENGTH`.
fn network_of(text: &str) -> Option<(u32, u32)> {
    let (address, length) = text.split_once('/')?;
    let address: std::net::Ipv4Addr = address.parse().ok()?;
    let length: u32 = length.parse().ok().filter(|length| (1..=32).contains(length))?;
    Some((u32::from(address) >> (32 - length), length))
}

/// The node whose link does not answer, its address, and why. A node that is not Ready, or that kk cannot reach, is not returned.
fn silent_peer<'a>(inputs: &Inputs<'a>, links: &Links) -> Option<(&'a Host, String, String)> {
    let (address, why) = links.silent_peer.clone()?;
    let link = network_of(&format!("{address}/32"))?.0;
    let owns = |host: &&Host| {
        let pods = inputs.state.nodes.get(&host.name).and_then(|node| node.pods.first());
        let of = pods.and_then(|pods| network_of(pods));
        of.is_some_and(|(network, length)| link >> (32 - length) == network)
    };
    let nodes = inputs.nodes().into_iter().map(|(host, _)| host);
    let other = nodes.filter(|host| inputs.is_ready(host)).find(owns)?;
    Some((other, address, why))
}

/// If both nodes reach the pods of CoreDNS, a firewall may be the reason why a link does not answer.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    let broken = broken(inputs);
    for (host, _, links) in said(inputs) {
        let Some((other, address, why)) = silent_peer(inputs, &links) else { continue };
        if broken.get(&host.name).is_none_or(|broken| broken.agent.is_none()) {
            found.warning(
                host,
                format!("the link of {} at {address} does not answer: {why}", other.name),
                "pods of these two nodes may not reach each other: allow UDP 8472 between the hosts, and \
                 TCP 10256 from the pod network",
            );
        }
    }
}

/// Whether a node has reported that its links work. A missing answer does not count as "yes".
pub(crate) fn work(inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
    let Some(links) = facts.answer(&LINKS).answered() else { return false };
    links.subnet.is_some()
        && of_node(inputs, host, &links) == Broken::default()
        && silent_peer(inputs, &links).is_none()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::testing;

    /// A node with intact links of flannel, two pods, and routes to two other nodes.
    struct Fake {
        directory: tempfile::TempDir,
        addresses: &'static str,
        routes: &'static str,
        curl: &'static str,
    }

    const ADDRESSES: &str = "3: flannel.1    inet 10.9.2.0/32 scope global flannel.1\n5: cni0    inet 10.9.2.1/24 brd 10.9.2.255 scope global cni0\n";
    const ROUTES: &str =
        "10.9.1.0/24 via 10.9.1.0 dev flannel.1 onlink\n10.9.10.0/24 via 10.9.10.0 dev flannel.1 onlink\n";

    impl Fake {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let node = Self { directory, addresses: ADDRESSES, routes: ROUTES, curl: "exit 0" };
            for link in ["flannel.1", "cni0", "vetha1", "vethb2"] {
                node.write(&format!("net/{link}/flags"), "0x1003\n");
            }
            for link in ["vetha1", "vethb2"] {
                node.write(&format!("net/{link}/master/x"), "");
                // A link of a pod that ended, and a link that the runtime still knows.
                let interfaces = format!(
                    r#"{{"interfaces":[{{"mac":"02:00:00:00:00:01","name":"cni0"}},{{"name":"{link}"}},{{"name":"veth0dead"}}]}}"#
                );
                node.write(&format!("cni/results/cbr0-{link}-eth0"), &interfaces);
            }
            node.write(
                "flannel/subnet.env",
                "FLANNEL_NETWORK=10.9.0.0/16\nFLANNEL_SUBNET=10.9.2.1/24\nFLANNEL_MTU=1450\n",
            );
            node.write("kubelet.conf", "");
            node.write("uptime", "1000.5 7\n");
            node
        }

        fn path(&self, name: &str) -> std::path::PathBuf {
            self.directory.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            fs::write(path, text).unwrap();
        }

        fn run(&self, text: &str) -> std::process::Output {
            self.write("addresses", self.addresses);
            self.write("routes", self.routes);
            let program = |name: &str, text: &str| testing::program(self.directory.path(), name, text);
            program(
                "ip",
                "case \" $*\" in *' show root '*) cat routes ;; *' address show '*) link=${*#*dev }; grep \" ${link%% *} \" addresses || : ;; *) echo \"$*\" >>made ;; esac",
            );
            program("curl", &format!("for url; do :; done\necho \"$url\" >>asked\n{}", self.curl));
            program("sleep", "echo $(($(cut -d . -f 1 uptime) + 3)).0 >uptime");
            let here = self.directory.path().display().to_string();
            let text = [
                ("/sys/class/net", "net"),
                ("/var/lib/cni", "cni"),
                ("/run/flannel", "flannel"),
                ("/etc/kubernetes", ""),
                ("/proc/uptime", "uptime"),
            ]
            .into_iter()
            .fold(text.to_owned(), |text, (from, to)| text.replace(from, &format!("{here}/{to}")));
            testing::run_script(self.directory.path(), &text)
        }

        /// The answer of the node.
        fn said(&self) -> Links {
            let output = self.run(&text(&testing::sample("three-nodes.yaml")));
            assert!(output.status.success(), "{output:?}");
            parse(&String::from_utf8(output.stdout).unwrap()).unwrap()
        }

        fn remove(&self, name: &str) {
            let path = self.path(name);
            if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
        }
    }

    fn asked_peer(node: &Fake) -> String {
        fs::read_to_string(node.path("asked")).unwrap()
    }

    #[test]
    fn a_node_whose_links_are_well_says_so_and_asks_the_next_one() {
        let node = Fake::new();
        let well = Links { subnet: Some("10.9.2.1/24".into()), routes: Some(2), ..Links::default() };
        assert_eq!(node.said(), well);
        assert_eq!(asked_peer(&node), "http://10.9.10.0:10256/healthz\n");
        let last = Fake { routes: "10.9.1.0/24 via 10.9.1.0 dev flannel.1 onlink\n", ..Fake::new() };
        last.said();
        assert_eq!(asked_peer(&last), "http://10.9.1.0:10256/healthz\n", "after the last comes the first");
    }

    #[test]
    fn a_node_without_routes_asks_nobody() {
        let node = Fake { routes: "", ..Fake::new() };
        let alone = Links { subnet: Some("10.9.2.1/24".into()), routes: Some(0), ..Links::default() };
        assert_eq!(node.said(), alone);
        assert!(!node.path("asked").exists());
    }

    #[test]
    fn nothing_is_said_of_a_host_that_is_no_node_or_has_just_started() {
        let node = Fake::new();
        node.remove("kubelet.conf");
        assert_eq!(node.said(), Links::default());
        let node = Fake::new();
        node.remove("flannel");
        node.write("uptime", "100.5 7\n");
        assert_eq!(node.said(), Links::default());
    }

    #[test]
    fn what_is_broken_is_named() {
        type Break = fn(&mut Fake);
        let cases: [(&str, Break, &str); 12] = [
            ("agent", |node| node.remove("flannel"), "flannel has not written the range"),
            ("agent", |node| node.remove("net/flannel.1"), "the link flannel.1 is not there"),
            ("agent", |node| node.write("net/flannel.1/flags", "0x1002\n"), "the link flannel.1 is down"),
            (
                "agent",
                |node| node.addresses = "5: cni0    inet 10.9.2.1/24 scope global cni0\n",
                "does not have the address 10.9.2.0",
            ),
            ("bridge", |node| node.remove("net/cni0"), "the link cni0 is not there"),
            ("bridge", |node| node.write("net/cni0/flags", "0x1002\n"), "the link cni0 is down"),
            (
                "bridge",
                |node| node.addresses = "3: flannel.1    inet 10.9.2.0/32 scope global flannel.1\n",
                "cni0 does not have the address 10.9.2.1/24",
            ),
            ("bridge", |node| node.remove("net/vethb2/master"), "not connected to the link cni0: vethb2"),
            (
                "range",
                |node| node.addresses = "3: flannel.1    inet 10.9.2.0/32 scope global flannel.1\n5: cni0    inet 10.88.0.1/24 scope global cni0\n",
                "cni0 has 10.88.0.1/24, and the pods of the node are in 10.9.2.1/24",
            ),
            (
                "",
                |node| {
                    node.remove("net/cni0");
                    node.remove("net/vetha1");
                    node.remove("net/vethb2");
                },
                "",
            ),
            ("peer", |node| node.curl = "echo 'timed out' >&2; exit 28", "timed out"),
            // The output of curl -v.
            (
                "",
                |node| node.curl = "printf '* connect to 10.9.10.0 port 10256 failed: Connection refused\\ncurl: (7) Failed to connect\\n' >&2; exit 7",
                "",
            ),
        ];
        for (part, breaks, words) in cases {
            let mut node = Fake::new();
            breaks(&mut node);
            let links = node.said();
            let peer = links.silent_peer.map(|(address, why)| {
                assert_eq!(address, "10.9.10.0");
                why
            });
            let said =
                [("agent", links.agent), ("bridge", links.bridge), ("range", links.range), ("peer", peer)];
            for (name, said) in said {
                let right = if name == part {
                    said.as_ref().is_some_and(|said| said.contains(words))
                } else {
                    said.is_none()
                };
                assert!(right, "{words}: {name} {said:?}");
            }
        }
    }

    #[test]
    fn pods_are_connected_to_a_bridge_with_the_addresses_of_before() {
        let node = Fake { addresses: "", ..Fake::new() };
        node.remove("net/cni0");
        node.remove("net/vethb2/master");
        node.write("net/vethb2/brport/hairpin_mode", "0");
        let output = node.run(&format!("kk_do() {{ \"$@\"; }}\n{}", include_str!("mend_bridge.sh")));
        assert!(output.status.success(), "{output:?}");
        let made = fs::read_to_string(node.path("made")).unwrap();
        assert_eq!(
            made,
            "link add cni0 address 02:00:00:00:00:01 type bridge\nlink set cni0 mtu 1450\naddress add 10.9.2.1/24 dev cni0\nlink set cni0 up\nlink set vethb2 master cni0 up\n"
        );
        assert_eq!(fs::read_to_string(node.path("net/vethb2/brport/hairpin_mode")).unwrap(), "1\n");
    }

    #[test]
    fn an_answer_that_was_cut_is_none() {
        assert_eq!(parse("subnet\t10.9.2.1/24\nagent\tgone\n"), None);
    }
}
