//! Formats the state of a cluster for people.

use kk_cluster::{CertificateStatus, KubeSphereStatus, MemberDetail, NodeState, Status};

use super::{Paint, Table, findings, plan, text};

/// Number of certificates in a status: `kk certs check-expiration` shows the others.
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
    if !status.etcd_alarms.is_empty() {
        let alarms: Vec<&str> = status.etcd_alarms.iter().map(String::as_str).collect();
        out += &format!("etcd has alarms: {}\n", alarms.join(", "));
    }
    if !status.api_answers {
        out += "API: no control plane answers\n";
    }
    if let Some(kubesphere) = &status.kubesphere {
        out += &components(kubesphere);
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

fn components(kubesphere: &KubeSphereStatus) -> String {
    let version = kubesphere.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    let mut table = Table::new(["COMPONENT", "STATE", "MESSAGE"]);
    for one in &kubesphere.components {
        table.row([one.name.clone(), one.phase.clone(), one.message.clone()]);
    }
    let table = if kubesphere.components.is_empty() { String::new() } else { table.render(super::WIDEST) };
    format!("\nKubeSphere{version}: {}\n{table}", kubesphere.phase)
}

/// A table with a row for each certificate.
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

/// A table with a row for each member of etcd.
pub fn members(all: &[(String, Option<MemberDetail>)]) -> String {
    let mut table =
        Table::new(["HOST", "ROLE", "CLUSTER", "VERSION", "SIZE", "IN USE", "REVISION", "ALARMS"]);
    for (host, member) in all {
        let Some(member) = member else {
            table.row([host.as_str(), "does not answer", "", "", "", "", "", ""].map(str::to_owned));
            continue;
        };
        let role = match member {
            MemberDetail { learner: true, .. } => "learner",
            MemberDetail { leader: true, .. } => "leader",
            _ => "follower",
        };
        let mib = |bytes: u64| format!("{} MiB", bytes.div_ceil(1 << 20));
        table.row([
            host.clone(),
            role.to_owned(),
            member.cluster.clone(),
            member.version.clone(),
            mib(member.db_bytes),
            mib(member.db_bytes_in_use),
            member.revision.to_string(),
            member.errors.join(", "),
        ]);
    }
    let mut out = table.render(super::WIDEST);
    let clusters: Vec<_> = all.iter().filter_map(|(_, one)| Some(&one.as_ref()?.cluster)).collect();
    if clusters.windows(2).any(|two| two[0] != two[1]) {
        out += "\nthese members belong to different clusters: was a host left out of a restore? Stop its etcd \
                (systemctl stop etcd), and run kk create cluster\n";
    }
    out
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
