//! `spec.roleGroups`: assigns roles to hosts.

use crate::findings::{At, Findings};
use crate::host_range;
use crate::reader::did_you_mean;
use crate::spec::{Host, Role};
use std::collections::{BTreeMap, HashSet};

const KNOWN_GROUPS: [&str; 5] = ["etcd", "control-plane", "master", "worker", "registry"];
/// Maximum number of missing names that are reported for one range.
const NAMES_SHOWN: usize = 5;

/// Assigns the roles and drops hosts without any. Returns the names by role, in the order of the file.
pub(super) fn assign(
    hosts: &mut Vec<Host>,
    groups: &BTreeMap<String, Vec<String>>,
    spec: At<'_>,
    out: &mut Findings<'_>,
) -> BTreeMap<Role, Vec<String>> {
    let at = spec.key("roleGroups");
    let known: HashSet<String> = hosts.iter().map(|host| host.name.clone()).collect();
    let mut by_role: BTreeMap<Role, Vec<String>> = BTreeMap::new();
    for (group, entries) in groups {
        check_group_name(group, at, out);
        let members = by_role.entry(Role::from_group(group)).or_default();
        for (i, entry) in entries.iter().enumerate() {
            members.extend(members_of(entry, group, &known, (spec, at.key(group).item(i)), out));
        }
    }
    for (role, members) in &mut by_role {
        let mut seen = HashSet::new();
        members.retain(|name| seen.insert(name.clone()));
        for host in hosts.iter_mut().filter(|host| seen.contains(&host.name)) {
            host.roles.insert(role.clone());
        }
    }
    check_groups(groups, &by_role, at, out);
    // If a group could not be read, it is unknown which hosts are idle.
    if !out.is_unread(at) {
        warn_of_idle(hosts, spec.key("hosts"), out);
        hosts.retain(|host| !host.roles.is_empty());
    }
    by_role
}

/// Warns of similar names: any name is allowed, but a misspelt name would leave hosts without their role.
fn check_group_name(group: &str, at: At<'_>, out: &mut Findings<'_>) {
    if let Role::Custom(name) = Role::from_group(group)
        && let Some(hint) = did_you_mean(&name, KNOWN_GROUPS.into_iter())
    {
        out.warning(at.name(group), format!("role group `{group}` is treated as one of your own"), hint);
    }
}

/// The names in an entry of a group, limited to existing hosts.
fn members_of(
    entry: &str,
    group: &str,
    known: &HashSet<String>,
    (spec, at): (At<'_>, At<'_>),
    out: &mut Findings<'_>,
) -> Vec<String> {
    let names = match host_range::expand(entry) {
        Ok(names) => names,
        Err(problem) => {
            let hint = "write node[1:5], node[01:12] or node[1,3,5]";
            out.error(at, format!("`{entry}` is not a host or a range: {problem}"), hint);
            return Vec::new();
        }
    };
    let (names, unknown): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| known.contains(name));
    if !unknown.is_empty() && !out.is_unread(spec.key("hosts")) {
        let shown: Vec<String> = unknown.iter().take(NAMES_SHOWN).map(|name| format!("`{name}`")).collect();
        let more = unknown.len() - shown.len();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        // A single name may be misspelt; a range with unknown names is too long.
        let close = (unknown.len() == 1).then(|| did_you_mean(&unknown[0], known.iter().map(String::as_str)));
        let hint = close.flatten().unwrap_or_else(|| "each name must be one of `spec.hosts`".to_owned());
        let message =
            format!("role group `{group}` names {}{more}, but there is no such host", shown.join(", "));
        out.error(at, message, hint);
    }
    names
}

fn check_groups(
    groups: &BTreeMap<String, Vec<String>>,
    by_role: &BTreeMap<Role, Vec<String>>,
    at: At<'_>,
    out: &mut Findings<'_>,
) {
    // Entries without valid names were reported; the group does not count as empty because of them.
    let is_empty = |role: Role| {
        !groups.iter().any(|(group, entries)| Role::from_group(group) == role && !entries.is_empty())
    };
    if is_empty(Role::ControlPlane) {
        out.missing(at, "there is no control plane", "name at least one host in `roleGroups.control-plane`");
    }
    if is_empty(Role::Etcd) {
        out.missing(at, "there is no etcd member", "name one, three or five hosts in `roleGroups.etcd`");
    }
    let etcd = by_role.get(&Role::Etcd).map_or(0, Vec::len);
    if etcd > 0 && etcd.is_multiple_of(2) {
        let message = format!("{etcd} etcd members tolerate no more failures than {}", etcd - 1);
        out.warning(at.name("etcd"), message, format!("use {} or {}", etcd - 1, etcd + 1));
    }
}

fn warn_of_idle(hosts: &[Host], at: At<'_>, out: &mut Findings<'_>) {
    for (i, host) in
        hosts.iter().enumerate().filter(|(_, host)| host.roles.is_empty() && !host.name.is_empty())
    {
        let message = format!("host `{}` is in no role group, and kk does not change it", host.name);
        out.warning(at.item(i).key("name"), message, "add it to one of `spec.roleGroups`");
    }
}
