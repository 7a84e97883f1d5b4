//! Writes the files that etcd reads at its start: its environment files and its unit.

use std::time::Duration;

use kk_config::{Host, Spec};
use kk_engine::{Action, Facts, Question, actions::File, question};
use serde_json::json;

use super::metrics::watches_members;
use super::{confinement, membership};
use crate::{
    base::{error::BuildError, host_layout::ETCD_ENVIRONMENT, shell::script},
    model::inputs::Inputs,
};

/// The time limit that systemd sets for the start of a member. The member reads its database and its log, and receives missing
/// data from the others.
pub(super) const START: Duration = Duration::from_mins(5);

/// The members of a new cluster, which a member reads only at its first start. Therefore, a member that is added or removed later
/// causes no restart of others.
const INITIAL: &str = "/etc/etcd-initial.env";

/// The files of one member.
pub(super) fn files(inputs: &Inputs, host: &Host, facts: &Facts) -> Result<Vec<Box<dyn Action>>, BuildError> {
    let values = json!({
        "negative_nice": facts.can_raise_limits,
        "data_dir": inputs.spec.etcd.data_dir,
        "start_seconds": START.as_secs(),
        "own_user": confinement::has_own_user(inputs, facts),
        "own_view": confinement::has_own_view(facts, &inputs.spec.etcd.data_dir),
    });
    let unit = inputs.templates.render("etcd/etcd.service", &values)?;
    let mut files: Vec<Box<dyn Action>> = vec![
        Box::new(File::text(ETCD_ENVIRONMENT, environment(inputs, host)?)),
        Box::new(File::text("/etc/systemd/system/etcd.service", unit)),
    ];
    if !membership::has_vote(facts) {
        files.push(Box::new(File::text(INITIAL, initial(inputs))));
    }
    Ok(files)
}

/// The port where KubeSphere's Prometheus reads metrics, if it is enabled. Metrics contain no objects, so the port has no TLS. A
/// port with TLS would require a client certificate that also permits changes of all objects.
pub(crate) const METRICS_PORT: u16 = 2381;

/// The port for metrics, if it is open.
pub(super) fn metrics_port(spec: &Spec) -> Option<u16> {
    spec.kubesphere.as_ref().is_some_and(|wanted| watches_members(spec, wanted)).then_some(METRICS_PORT)
}

fn initial(inputs: &Inputs) -> String {
    let etcd = &inputs.spec.etcd;
    let member =
        |host: &&Host| format!("etcd-{}=https://{}:{}", host.name, host.internal_address, etcd.peer_port);
    let mut members: Vec<String> = inputs.spec.etcd_hosts().iter().map(member).collect();
    members.sort();
    format!("# Written by kk.\nETCD_INITIAL_CLUSTER={}\nETCD_INITIAL_CLUSTER_STATE=new\n", members.join(","))
}

/// A file that records, as soon as a member has been healthy, that it belongs to a cluster: without its data, it must not start a
/// new cluster. etcd reads the file at its next start, so nothing restarts because of it.
pub(crate) const JOINED: &str = "/etc/etcd-joined.env";

/// The content of that file.
pub(crate) const JOINED_TEXT: &str = "# Written by kk.\nETCD_INITIAL_CLUSTER_STATE=existing\n";

/// The action that writes that file.
pub(super) fn joined() -> File {
    File::text(JOINED, JOINED_TEXT)
}

/// A note of the file system on which the data of a member was when the member was healthy. If that file system is not mounted,
/// the data is not lost but unavailable. To give up the data, remove the note.
pub(super) const MOUNT_NOTE: &str = "/etc/etcd-mount";

/// The mount point of the data at the time of the probe.
pub(super) const MOUNT: Question<String> = Question::new("etcd_mount", "", question::text);

pub(super) fn mount_question(spec: &Spec) -> Question<String> {
    MOUNT.with_snippet(script(&[("data", &spec.etcd.data_dir)], include_str!("mount.sh")))
}

/// The action that writes the note when the member is healthy.
pub(super) fn mount_note(facts: &Facts) -> Option<File> {
    let mount = facts.answer(&MOUNT).answered().filter(|mount| mount.starts_with('/'))?;
    Some(File::text(MOUNT_NOTE, mount + "\n"))
}

fn environment(inputs: &Inputs, host: &Host) -> Result<String, BuildError> {
    let etcd = &inputs.spec.etcd;
    let watched = metrics_port(inputs.spec).map(|port| format!("http://{}:{port}", host.internal_address));
    let optional: Vec<String> = [
        ("ETCD_LISTEN_METRICS_URLS", watched),
        ("ETCD_QUOTA_BACKEND_BYTES", etcd.quota_backend_bytes.map(|n| n.to_string())),
        ("ETCD_MAX_REQUEST_BYTES", etcd.max_request_bytes.map(|n| n.to_string())),
        ("ETCD_MAX_SNAPSHOTS", etcd.max_snapshots.map(|n| n.to_string())),
        ("ETCD_MAX_WALS", etcd.max_wals.map(|n| n.to_string())),
        ("ETCD_LOG_LEVEL", etcd.log_level.map(|level| level.as_str().to_owned())),
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
            "token": format!("kubekey-{}", inputs.spec.name),
            "heartbeat_interval_ms": etcd.heartbeat_interval,
            "election_timeout_ms": etcd.election_timeout,
            "snapshot_count": etcd.snapshot_count,
            "auto_compaction_retention": etcd.auto_compaction_retention,
            "metrics": etcd.metrics.as_str(),
            "optional": optional,
            "extra": etcd.extra_args,
        }),
    )?)
}

#[cfg(test)]
mod tests {
    use kk_engine::FileFact;

    use super::*;
    use crate::testing;

    /// The files of one host as paths and contents, if the cluster has these members.
    async fn planned(members: &str, joined: bool) -> String {
        let directory = tempfile::tempdir().unwrap();
        let spec = testing::spec(&format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
             - {{name: a, address: 192.0.2.1}}\n  - {{name: b, address: 192.0.2.2}}\n  - {{name: c, address: 192.0.2.3}}\n  \
             roleGroups: {{etcd: {members}, control-plane: [a], worker: [a, b, c]}}\n"
        ));
        let (session, mut probed) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
        let facts = probed.facts.get_mut("b").unwrap();
        if joined {
            let sha256 = kk_util::sha256(JOINED_TEXT.as_bytes());
            facts.files.insert(JOINED.into(), FileFact { sha256, ..FileFact::default() });
        }
        let facts = facts.clone();
        let inputs = session.create_inputs(&probed).await.unwrap();
        let files = files(&inputs, &spec.hosts[1], &facts).unwrap();
        let changes: Vec<_> = files.iter().map(|file| file.check(&facts)).collect();
        format!("{changes:?}\n{}{}", environment(&inputs, &spec.hosts[1]).unwrap(), initial(&inputs))
    }

    #[tokio::test]
    async fn a_member_that_comes_or_goes_restarts_no_other() {
        let [few, more] = [planned("[a, b]", true).await, planned("[a, b, c]", true).await];
        let before_initial = |text: &str| text.split("ETCD_INITIAL_CLUSTER=").next().unwrap().to_owned();
        assert_eq!(before_initial(&few), before_initial(&more));
        assert!(!few.contains(INITIAL) && planned("[a, b]", false).await.contains(INITIAL));
    }

    #[tokio::test]
    async fn another_order_of_the_members_is_no_change() {
        let before = planned("[a, b, c]", false).await;
        assert!(before.contains("etcd-c=https://192.0.2.3:2380"), "{before}");
        assert_eq!(before, planned("[c, b, a]", false).await);
    }

    #[tokio::test]
    async fn metrics_have_a_port_of_their_own_only_where_kubesphere_reads_them() {
        for (document, is_open) in [
            ("etcd: {monitoring: true}", true),
            ("etcd: {monitoring: true, endpointIps: 192.0.2.1}", true),
            ("etcd: {monitoring: true, endpointIps: 198.51.100.1}", false),
            ("etcd: {monitoring: false}", false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let spec = testing::spec(&format!(
                "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  \
                 hosts: [{{name: a, address: 192.0.2.1}}]\n  roleGroups: {{etcd: [a], control-plane: [a], worker: [a]}}\n  \
                 kubesphere: {{image: r.example.com/ks-installer:v1}}\n---\n\
                 apiVersion: installer.kubesphere.io/v1alpha1\nkind: ClusterConfiguration\nmetadata: {{name: ks-installer}}\nspec:\n  {document}\n"
            ));
            let (probed, session) = (testing::fresh(&spec), testing::session(spec.clone(), directory.path()));
            let inputs = session.create_inputs(&probed).await.unwrap();
            let environment = environment(&inputs, &spec.hosts[0]).unwrap();
            let line = "\nETCD_LISTEN_METRICS_URLS=http://192.0.2.1:2381\n";
            assert_eq!(environment.contains(line), is_open, "{document}\n{environment}");
        }
    }
}
