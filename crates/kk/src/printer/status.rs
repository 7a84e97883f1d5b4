//! What a cluster looks like, for people.

use kk_cluster::{CertificateStatus, NodeState, Status};

use super::{Paint, Table, findings, plan, text};

/// Certificates that a status names: the rest is in `kk certs check-expiration`.
const SOONEST: usize = 3;

/// Nodes, etcd, certificates, findings and drift.
pub fn render(status: &Status) -> String {
    let mut nodes = Table::new(["NODE", "ADDRESS", "STATE", "VERSION", "ROLES"]);
    for node in &status.nodes {
        let version = node.version.clone().unwrap_or_default();
        nodes.row([
            node.name.clone(),
            node.address.clone(),
            state(node.state).into(),
            version,
            node.roles.join(", "),
        ]);
    }
    let mut out = nodes.render(super::WIDEST);
    let healthy = status.etcd.iter().filter(|member| member.healthy == Some(true)).count();
    let sick: Vec<&str> = status
        .etcd
        .iter()
        .filter(|member| member.healthy != Some(true))
        .map(|member| member.host.as_str())
        .collect();
    out += &format!("\netcd: {healthy} of {} healthy", status.etcd.len());
    out += &if sick.is_empty() { "\n".to_owned() } else { format!(" (not: {})\n", sick.join(", ")) };
    if !status.api_answers {
        out += "API: no control plane answers\n";
    }
    out += &format!("\n{}", certificates(&status.certificates[..status.certificates.len().min(SOONEST)]));
    if !status.findings.is_empty() {
        out += &format!("\n{}", findings::render(&status.findings, Paint::PLAIN, super::WIDEST));
    }
    if status.drift.is_empty() {
        out += "\na create would change nothing\n";
    } else {
        out += &format!("\na create would make {}:\n", plan::total(&status.drift));
        out += &text::indent(&plan::render(&status.drift, Paint::PLAIN), 2);
    }
    out
}

/// A row for each.
pub fn certificates(all: &[CertificateStatus]) -> String {
    let mut table = Table::new(["HOST", "CERTIFICATE", "ENDS", "LEFT"]);
    for one in all {
        let left = match one.days {
            None => "cannot be read".to_owned(),
            Some(days) if days < 0 => "expired".to_owned(),
            Some(days) => format!("{days} days"),
        };
        let left = if one.due { format!("{left} (kk create cluster renews it)") } else { left };
        table.row([one.host.clone(), one.name.clone(), one.ends.clone().unwrap_or_default(), left]);
    }
    table.render(super::WIDEST)
}

fn state(state: NodeState) -> &'static str {
    match state {
        NodeState::Ready => "Ready",
        NodeState::NotReady => "NotReady",
        NodeState::Missing => "not in the cluster",
        NodeState::Unknown => "unknown: the API does not answer",
        NodeState::Silent => "the host does not answer",
    }
}
