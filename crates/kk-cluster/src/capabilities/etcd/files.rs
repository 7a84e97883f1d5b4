//! The files that etcd reads at its start: environment and unit.

use kk_config::Host;
use kk_engine::{Action, Facts, actions::File};
use serde_json::json;

use crate::{BuildError, inputs::Inputs};

/// Both files of one member.
pub(super) fn files(inputs: &Inputs, host: &Host, facts: &Facts) -> Result<Vec<Box<dyn Action>>, BuildError> {
    let values = json!({"negative_nice": facts.can_raise_limits, "data_dir": inputs.spec.etcd.data_dir});
    let unit = inputs.templates.render("etcd/etcd.service", &values)?;
    Ok(vec![
        Box::new(File::text("/etc/etcd.env", environment(inputs, host)?)),
        Box::new(File::text("/etc/systemd/system/etcd.service", unit)),
    ])
}

/// The file that says, from the first time that a member is healthy, that it belongs to a cluster: without its data it must
/// not begin a new one. etcd reads it at its next start, so nothing restarts for it.
pub(super) const JOINED: &str = "/etc/etcd-joined.env";

/// Its content.
pub(super) const JOINED_TEXT: &str = "# Written by kk.\nETCD_INITIAL_CLUSTER_STATE=existing\n";

/// The file as an action.
pub(super) fn joined() -> File {
    File::text(JOINED, JOINED_TEXT)
}

fn environment(inputs: &Inputs, host: &Host) -> Result<String, BuildError> {
    let etcd = &inputs.spec.etcd;
    let mut members: Vec<String> = inputs
        .spec
        .etcd_hosts()
        .iter()
        .map(|member| format!("etcd-{}=https://{}:{}", member.name, member.internal_address, etcd.peer_port))
        .collect();
    // A set: another order in the Cluster file must not restart etcd.
    members.sort();
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
    Ok(inputs.templates.render(
        "etcd/etcd.env",
        &json!({
            "name": format!("etcd-{}", host.name),
            "host": host.name,
            "address": host.internal_address,
            "port": etcd.port,
            "peer_port": etcd.peer_port,
            "data_dir": etcd.data_dir,
            "initial_cluster": members.join(","),
            "token": format!("kubekey-{}", inputs.spec.name),
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

#[cfg(test)]
mod tests {
    use super::environment;
    use crate::testing;

    /// It would restart every member.
    #[tokio::test]
    async fn another_order_of_the_members_is_no_change() {
        let directory = tempfile::tempdir().unwrap();
        let text = async |members: &str| {
            let spec = testing::spec(&format!(
                "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
                 - {{name: a, address: 192.0.2.1}}\n  - {{name: b, address: 192.0.2.2}}\n  - {{name: c, address: 192.0.2.3}}\n  \
                 roleGroups: {{etcd: {members}, control-plane: [a], worker: [a]}}\n"
            ));
            let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
            let inputs = session.create_inputs(&fresh).await.unwrap();
            environment(&inputs, &spec.hosts[1]).unwrap()
        };
        let before = text("[a, b, c]").await;
        assert!(before.contains("etcd-c=https://192.0.2.3:2380"), "{before}");
        assert_eq!(before, text("[c, b, a]").await);
    }
}
