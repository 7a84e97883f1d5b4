//! Ask pods from every node: the pods of CoreDNS by their addresses, and through the Service.
//!
//! A pod answers only if packets pass in both directions between its node and the querying node. Therefore this detects nodes
//! whose pods cannot reach each other, even if the API and all pods look healthy.

use std::{fmt::Write as _, time::Duration};

use kk_engine::{
    Action, Apply, Change, Facts, Failure, HostWork, Load, Script, Slots, Task, actions::Command,
};

use crate::{
    base::{
        requirements::{Port, Protocol},
        shell::{ASK_URL, script},
        slots,
    },
    capabilities::kube_proxy::services,
    model::inputs::Inputs,
};

/// A node learns of new endpoints a moment after the pods are ready, unless kube-proxy waits before it queries a restarted API
/// server again: see `new_service.sh`.
const PATIENCE: Duration = Duration::from_mins(5);

/// One round trip for each node, on all nodes at once.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task =
        Task::new("ask_pods", "Ask pods from every node").timeout(PATIENCE + Duration::from_mins(2));
    for (host, _) in inputs.nodes() {
        let ask = Ask { node: host.name.clone(), services: services(inputs), hint: hint(inputs) };
        let work = HostWork::new(vec![Box::new(ask)])
            .needs(slots::pod_addresses_slot().key())
            .needs(slots::node_tools_slot(&host.name))
            .provides(slots::pods_asked_slot(&host.name));
        task = task.on(&host.name, work);
    }
    task
}

/// The lines of the Services of DNS and of the API, if kube-proxy routes them.
fn services(inputs: &Inputs) -> String {
    if inputs.spec.kubernetes.disable_kube_proxy {
        return String::new();
    }
    let [api, dns] = [services::api(inputs.spec), services::dns(inputs.spec)];
    format!("the DNS Service\t{dns}\nthe Service of the API\t{api}\n")
}

fn text() -> String {
    format!("{ASK_URL}{}", include_str!("ask_pods.sh"))
}

fn hint(inputs: &Inputs) -> String {
    let mut hint =
        "pods of different nodes must reach each other: check firewalls, and internalAddress, whose \
         interface the pod network uses"
            .to_owned();
    for port in inputs.requirements.ports(inputs.api_host) {
        let Port { number, protocol, program } = *port;
        if protocol == Protocol::Udp {
            let _ = write!(hint, " ({program}: UDP {number} between the hosts)");
        }
    }
    hint
}

/// Queries the addresses in the slot.
#[derive(Clone)]
struct Ask {
    node: String,
    services: String,
    hint: String,
}

impl Ask {
    /// `pods` contains lines of a name, a tab, and a URL.
    fn command(&self, pods: &str) -> Command {
        let patience = PATIENCE.as_secs().to_string();
        let variables = [("node", self.node.as_str()), ("patience", patience.as_str())];
        Command::new(
            "query the pods of CoreDNS and the Services of DNS and the API",
            script(&variables, &text()),
        )
        .file("pods", format!("{pods}{}", self.services).into_bytes())
    }

    fn script(&self, values: &Slots, facts: &Facts) -> Result<Script, Failure> {
        let pods = values
            .get(&slots::pod_addresses_slot())
            .ok_or_else(|| Failure::new("the addresses of pods were not read"))?;
        match self.command(&pods).apply(facts) {
            Apply::Script(script) => Ok(script),
            _ => Err(Failure::new("only scripts can be made late")),
        }
    }
}

impl Action for Ask {
    fn check(&self, facts: &Facts) -> Change {
        self.command("").check(facts)
    }

    fn apply(&self, facts: &Facts) -> Apply {
        let (ask, facts) = (self.clone(), facts.clone());
        Apply::Late(Box::new(move |values| ask.script(values, &facts)))
    }

    fn load(&self) -> Load {
        Load::Wait
    }

    /// Pods are queried first: if they answer but a Service does not, nothing routes the Service.
    fn hint(&self, stderr: &str) -> Option<String> {
        let of_routes = "the pods answer, so kube-proxy does not route the Service: see \"kubectl -n kube-system logs -l k8s-app=kube-proxy\"";
        Some(if stderr.contains("no answer of pod ") { self.hint.clone() } else { of_routes.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kk_engine::Action as _;

    use super::Ask;
    use crate::{base::shell::script, testing};

    /// Runs the script on a node with this script as `curl`. Returns whether it succeeds, and its last message.
    fn ask(curl: &str) -> (bool, String) {
        let directory = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| testing::program(directory.path(), name, text);
        program("curl", &format!("for url; do :; done\n{curl}"));
        program("sleep", "exit 0");
        let pods =
            "pod a of node1\thttp://10.1.0.2:9153/metrics\npod b of node2\thttp://[fd00::2]:9153/metrics\n";
        fs::write(directory.path().join("pods"), pods).unwrap();
        let text = script(&[("node", "node3"), ("patience", "5")], &super::text());
        // The clock of the test advances by a second with each call.
        let library =
            "kk_uptime() { echo . >>ticks; wc -l <ticks; }; kk_fail() { echo \"$*\" >&2; return 1; }";
        let output = testing::run_script(directory.path(), &format!("{library}\n{text}"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said.lines().last().unwrap_or_default().to_owned())
    }

    #[test]
    fn the_hint_is_about_what_does_not_answer() {
        let ask = Ask { node: "node3".into(), services: String::new(), hint: "the network".into() };
        let pod =
            "from node3 there is no answer of pod b of node2 at http://x, and of the DNS Service at http://y";
        assert_eq!(ask.hint(pod).unwrap(), "the network");
        let service = "from node3 there is no answer of a new Service at http://y";
        assert!(ask.hint(service).unwrap().contains("kube-proxy"));
    }

    #[test]
    fn all_addresses_must_answer() {
        assert_eq!(ask("echo \"$url\" >>asked; exit 0"), (true, String::new()));
    }

    #[test]
    fn one_that_answers_late_is_waited_for() {
        let late = "[ -e \"late${url##*/}\" ] || { : >\"late${url##*/}\"; exit 7; }";
        assert_eq!(ask(late), (true, String::new()));
    }

    #[test]
    fn each_that_does_not_answer_is_named_with_both_nodes() {
        let (ok, said) = ask("case $url in *10.1.0.2*) ;; *) echo 'timed out' >&2; exit 28 ;; esac");
        assert!(!ok);
        assert_eq!(said, "from node3 there is no answer of pod b of node2 at http://[fd00::2]:9153/metrics");
        let (ok, said) = ask("exit 7");
        assert!(
            !ok && said.contains("pod a of node1 at") && said.contains(", and of pod b of node2 at"),
            "{said}"
        );
    }
}
