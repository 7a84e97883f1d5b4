//! Checks whether Services answer on a node: the data path that every pod needs.

use kk_config::{Host, Spec};
use kk_engine::{Facts, Question};

use crate::{
    base::shell::{ASK_URL, script},
    model::inputs::Inputs,
};

/// The answer of a node about the Services of the API and of DNS: for each Service that does not answer, the reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Services {
    /// Whether the host is a node. Other hosts report nothing about Services.
    is_node: bool,
    api: Option<String>,
    dns: Option<String>,
}

/// The question to every node.
pub(crate) const SERVICES: Question<Services> = Question::new("services", "", parse);

pub(super) fn question(spec: &Spec) -> Question<Services> {
    SERVICES.with_snippet(text(spec))
}

fn text(spec: &Spec) -> String {
    let [api, dns] = [api(spec), dns(spec)];
    script(&[("api", &api), ("dns", &dns)], &format!("{ASK_URL}{}", include_str!("services.sh")))
}

/// A URL of the API through its Service.
pub(crate) fn api(spec: &Spec) -> String {
    format!("https://{}:443/livez", spec.network.api_service_address())
}

/// A URL of CoreDNS through the DNS Service. CoreDNS serves HTTP at its metrics port, so that the host needs no DNS client. There
/// is no page at this path, so that the probes of many nodes do not cost CoreDNS a page of metrics each.
pub(crate) fn dns(spec: &Spec) -> String {
    format!("http://{}:9153/", spec.network.dns_service_address())
}

/// The script prints nothing on a host that is not a node.
fn parse(printed: &str) -> Option<Services> {
    if printed.is_empty() {
        return Some(Services::default());
    }
    let refused = |name: &str| {
        let said = printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'))?;
        Some((said != "ok").then(|| said.to_owned()))
    };
    Some(Services { is_node: true, api: refused("api")?, dns: refused("dns")? })
}

/// Why kube-proxy must restart on a node: the API answers to kk, but not through its Service on that node.
pub(super) fn broken(inputs: &Inputs, host: &Host, facts: &Facts) -> Option<String> {
    said(inputs, host, facts, "kube-system/kube-proxy")?.api
}

/// Why the DNS Service does not answer on a node where the Service of the API does.
pub(crate) fn dns_broken(inputs: &Inputs, host: &Host, facts: &Facts) -> Option<String> {
    let said = said(inputs, host, facts, "kube-system/coredns")?;
    if said.api.is_some() { None } else { said.dns }
}

/// The answer of a node that is Ready, in a cluster that has this workload.
fn said(inputs: &Inputs, host: &Host, facts: &Facts, workload: &str) -> Option<Services> {
    let state = &inputs.state;
    let is_there = state.answered && state.workloads.contains_key(workload);
    let is_node = is_there && inputs.has_joined(host) && inputs.is_ready(host);
    if is_node { facts.answer(&SERVICES).answered() } else { None }
}

/// Whether a node has reported that one of the Services does not answer.
pub(crate) fn fail(facts: &Facts) -> bool {
    let said = facts.answer(&SERVICES).answered();
    said.is_some_and(|said| said.api.is_some() || said.dns.is_some())
}

/// Whether a node has reported that both Services answer. A missing answer does not count.
pub(crate) fn work(inputs: &Inputs, facts: &Facts) -> bool {
    let both = Services { is_node: true, api: None, dns: None };
    inputs.spec.kubernetes.disable_kube_proxy || facts.answer(&SERVICES).answered() == Some(both)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing;

    /// The answer of a node with this `curl`.
    fn said(is_node: bool, curl: &str) -> Services {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        if is_node {
            fs::write(path("kubelet.conf"), "").unwrap();
        }
        fs::write(path("uptime"), "0.5 7\n").unwrap();
        testing::program(directory.path(), "curl", &format!("for url; do :; done\n{curl}"));
        // Each pause takes 3 s by this clock.
        testing::program(directory.path(), "sleep", "echo $(($(cut -d . -f 1 uptime) + 3)).0 >uptime");
        let text = text(&testing::sample("three-nodes.yaml"))
            .replace("/etc/kubernetes/kubelet.conf", &path("kubelet.conf"))
            .replace("/proc/uptime", &path("uptime"));
        let output = testing::run_script(directory.path(), &text);
        assert!(output.status.success(), "{output:?}");
        parse(&String::from_utf8(output.stdout).unwrap()).unwrap()
    }

    #[test]
    fn a_node_says_which_service_does_not_answer_and_why() {
        let refused = |api: Option<&str>, dns: Option<&str>| Services {
            is_node: true,
            api: api.map(str::to_owned),
            dns: dns.map(str::to_owned),
        };
        let api_is_dead = "case $url in https:*) echo 'no route' >&2; exit 7 ;; esac";
        let dns_is_late = "case $url in http:*) [ -e late ] || { : >late; exit 28; } ;; esac";
        assert_eq!(said(false, "exit 7"), Services::default());
        assert_eq!(said(true, "exit 0"), refused(None, None));
        assert_eq!(said(true, api_is_dead), refused(Some("no route"), None));
        assert_eq!(said(true, dns_is_late), refused(None, None));
        assert_eq!(said(true, "echo dead >&2; exit 28"), refused(Some("dead"), Some("dead")));
    }

    #[test]
    fn an_answer_that_was_cut_is_none() {
        assert_eq!(parse("dns\tok\n"), None);
    }
}
