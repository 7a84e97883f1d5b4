//! The group `settings`.

use super::super::{bad_setting, edits, etcd_backup, from_cluster, identity, status};
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "settings",
    when: When::InTurn,
    chains: &[
        &[
            Scenario::new(
                "edits",
                "what a running cluster cannot take is refused before the first change; the rest is rolled out",
                270,
                20,
                edits::run,
            )
            .covers(&[
                "crates/kk-cluster/src/model/kubeadm/",
                "crates/kk-cluster/src/base/questions/settings.rs",
                "crates/kk-cluster/src/base/questions/settings.sh",
                "crates/kk-config/",
            ]),
            Scenario::new(
                "status",
                "kk status writes nothing, and its exit code and words tell drift and hosts that do not answer",
                60,
                6,
                status::run,
            )
            .covers(&["crates/kk-cluster/src/commands/status.rs", "crates/kk/src/commands/look.rs"]),
            Scenario::new(
                "identity",
                "a delete of another cluster's hosts changes nothing and says what it saw",
                10,
                6,
                identity::run,
            )
            .covers(&["crates/kk-cluster/src/base/owner.rs", "crates/kk-cluster/src/base/ca_copy.rs"]),
            Scenario::new(
                "from-cluster",
                "the file that kk writes from a running cluster changes nothing when it is applied",
                20,
                6,
                from_cluster::run,
            )
            .covers(&["crates/kk/src/commands/create_config/", "crates/kk/src/commands/kubectl.rs"]),
        ],
        &[
            Scenario::new(
                "bad-setting",
                "a setting that cannot work stops at the first host, and the file put right heals it",
                340,
                25,
                bad_setting::run,
            )
            .covers(&[
                "crates/kk-cluster/src/model/kubeadm/", capability!("kubelet"), capability!("kube_proxy"),
            ]),
            Scenario::new(
                "etcd-backup",
                "backups of etcd are whole or not there: killed, with a full disk, moved by an edit, rotated",
                35,
                8,
                etcd_backup::run,
            )
            .covers(&[capability!("etcd_backup")]),
        ],
    ],
};
