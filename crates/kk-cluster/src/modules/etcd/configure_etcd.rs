//! Configure etcd: its environment file and its unit.

use kk_config::Host;
use kk_engine::{
    Action, HostWork, Task,
    actions::{Directory, File},
};
use serde_json::json;

use crate::{BuildError, Target};

/// All members are named in each file; the file never changes once the cluster is there.
pub(super) fn task(target: &Target) -> Result<Task, BuildError> {
    let mut task = Task::new("configure_etcd", "Configure etcd");
    for host in target.spec.etcd_hosts() {
        let data = Directory::new(&target.spec.etcd.data_dir).mode(0o700).owner("etcd:etcd");
        let mut actions: Vec<Box<dyn Action>> = vec![Box::new(data)];
        actions.extend(files(target, host)?);
        let configured = super::start_etcd::configured(&host.name);
        task = task.on(&host.name, HostWork::new(actions).provides(configured.key()));
    }
    Ok(task)
}

/// What etcd reads at its start.
pub(super) fn files(target: &Target, host: &Host) -> Result<Vec<Box<dyn Action>>, BuildError> {
    let unit = target
        .templates
        .render("etcd/etcd.service", &json!({"negative_nice": target.facts(host).can_raise_limits}))?;
    Ok(vec![
        Box::new(File::text("/etc/etcd.env", environment(target, host)?)),
        Box::new(File::text("/etc/systemd/system/etcd.service", unit)),
    ])
}

fn environment(target: &Target, host: &Host) -> Result<String, BuildError> {
    let etcd = &target.spec.etcd;
    let members: Vec<String> = target
        .spec
        .etcd_hosts()
        .iter()
        .map(|member| format!("etcd-{}=https://{}:{}", member.name, member.internal_address, etcd.peer_port))
        .collect();
    let optional: Vec<String> = [
        ("ETCD_QUOTA_BACKEND_BYTES", etcd.quota_backend_bytes.map(|n| n.to_string())),
        ("ETCD_MAX_REQUEST_BYTES", etcd.max_request_bytes.map(|n| n.to_string())),
        ("ETCD_MAX_SNAPSHOTS", etcd.max_snapshots.map(|n| n.to_string())),
        ("ETCD_MAX_WALS", etcd.max_wals.map(|n| n.to_string())),
        ("ETCD_LOG_LEVEL", etcd.log_level.clone()),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(format!("{name}={}", value?)))
    .collect();
    Ok(target.templates.render(
        "etcd/etcd.env",
        &json!({
            "name": format!("etcd-{}", host.name),
            "host": host.name,
            "address": host.internal_address,
            "port": etcd.port,
            "peer_port": etcd.peer_port,
            "data_dir": etcd.data_dir,
            "initial_cluster": members.join(","),
            "token": format!("kubekey-{}", target.spec.name),
            "heartbeat_interval_ms": etcd.heartbeat_interval_ms,
            "election_timeout_ms": etcd.election_timeout_ms,
            "snapshot_count": etcd.snapshot_count,
            "auto_compaction_retention": etcd.auto_compaction_retention,
            "metrics": etcd.metrics,
            "optional": optional,
            "extra": etcd.extra_args,
        }),
    )?)
}
