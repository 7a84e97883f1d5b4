//! Write the names of the hosts into /etc/hosts.

use std::net::Ipv4Addr;

use kk_config::OwnRegistry;
use kk_engine::{Action, Facts, HostWork, ProbeSpec, Question, Task, actions::Block, question};

use crate::{
    base::host_layout::{HOSTS_BEGIN, HOSTS_END},
    capabilities::nodes,
    model::inputs::Inputs,
};

/// Whether cloud-init rewrites /etc/hosts at each boot. If so, the header of the file states it, however that was configured.
pub(crate) const REWRITTEN: Question<bool> = Question::new(
    "hosts_rewritten",
    "if grep -qs manage_etc_hosts /etc/hosts || grep -qsE '^ *manage_etc_hosts: *([Tt]rue|template)' /etc/cloud/cloud.cfg \
     /etc/cloud/cloud.cfg.d/*.cfg; then echo yes; else echo no; fi",
    question::yes_or_no,
);

/// The templates of cloud-init for /etc/hosts, by family of distributions.
const CLOUD_TEMPLATES: [&str; 3] = [
    "/etc/cloud/templates/hosts.debian.tmpl",
    "/etc/cloud/templates/hosts.redhat.tmpl",
    "/etc/cloud/templates/hosts.suse.tmpl",
];

/// Requests the facts for the task. The pipeline that is built before the probe does not contain the blocks in templates yet.
pub(super) fn asks(probe: &mut ProbeSpec) {
    probe.ask(&REWRITTEN);
    for path in CLOUD_TEMPLATES {
        probe.files.insert(path.to_owned());
        Block::new(path, HOSTS_BEGIN, HOSTS_END, "").asks(probe);
    }
}

/// The templates from which cloud-init writes the file on this host.
pub(super) fn templates(facts: &Facts) -> Vec<&'static str> {
    if facts.answer(&REWRITTEN).answered() != Some(true) {
        return Vec::new();
    }
    CLOUD_TEMPLATES.into_iter().filter(|path| facts.files.contains_key(*path)).collect()
}

/// Every host resolves the names of all hosts and of the API. Hosts that a command leaves unchanged in all other respects get the
/// names of new hosts, too. The name of the API does not resolve to a load balancer of kk before that works on the node.
pub(super) fn task(inputs: &Inputs) -> Task {
    let endpoint = inputs.endpoint();
    let wanted = at(inputs, endpoint.address());
    let until_then = endpoint.is_own().then(|| at(inputs, Some(endpoint.direct())));
    let mut task = Task::new("write_hosts_block", "Write /etc/hosts");
    for (host, facts) in inputs.answered() {
        let waits = until_then.as_ref().filter(|_| !nodes::uses_balancer(inputs, facts));
        let blocks = waits.unwrap_or(&wanted).on_host(facts).into_iter();
        let actions = blocks.map(|block| Box::new(block) as Box<dyn Action>);
        task = task.on(&host.name, HostWork::new(actions.collect()));
    }
    task
}

/// The names of hosts and of the API.
pub(crate) struct Names(Block);

impl Names {
    /// The block in each file of a host that contains it. To keep the names after a boot at which cloud-init writes the file, its
    /// template contains the block, too. The template also works if user data turned the rewriting on, which overrides any file
    /// of the host.
    pub(crate) fn on_host(&self, facts: &Facts) -> Vec<Block> {
        let files = ["/etc/hosts"].into_iter().chain(templates(facts));
        files.map(|path| self.0.at(path)).collect()
    }
}

/// The names, with this address of the API.
pub(crate) fn at(inputs: &Inputs, api: Option<Ipv4Addr>) -> Names {
    Names(Block::new("/etc/hosts", HOSTS_BEGIN, HOSTS_END, block(inputs, api)))
}

fn block(inputs: &Inputs, api: Option<Ipv4Addr>) -> String {
    let spec = inputs.spec;
    let mut lines = Vec::new();
    for host in &spec.hosts {
        lines.push(format!(
            "{}  {}.{} {}",
            host.internal_address, host.name, spec.kubernetes.cluster_name, host.name
        ));
        if let Some(address) = host.internal_address_v6 {
            lines.push(format!("{address}  {}.{} {}", host.name, spec.kubernetes.cluster_name, host.name));
        }
    }
    let registry = spec.own_registry().filter(OwnRegistry::has_name);
    lines.extend(registry.map(|own| format!("{}  {}", own.host.internal_address, own.name)));
    lines.extend(spec.dns.host_lines().map(str::to_owned));
    lines.extend(inputs.endpoint().hosts_line(api));
    lines.join("\n") + "\n"
}
