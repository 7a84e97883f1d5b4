//! The group `core`.

use super::super::{
    BOTH, FROM, HELM, TO, again, certs, create, damage, delete, kill, kubesphere, offline, repair, restore,
    shell_operator, upgrade,
};
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "core",
    when: When::Always,
    chains: &[
        &[
            Scenario::new(
                "create",
                "three fresh hosts become a cluster whose Service answers by name across nodes",
                100,
                5,
                create::run,
            ),
            Scenario::new(
                "again",
                "the same create again changes nothing, restarts nothing and says so",
                8,
                3,
                again::run,
            )
            .covers(&["crates/kk-engine/src/plan/"]),
            Scenario::new(
                "repair",
                "create repairs exactly what was broken, on exactly the hosts where it was",
                30,
                5,
                repair::run,
            )
            .covers(&[capability!("programs"), capability!("runtime"), capability!("kubelet")]),
            Scenario::new(
                "some-damage",
                "four of the damages of the scenario damage, repaired in the same way",
                160,
                12,
                damage::run_some,
            )
            .covers(&[
                capability!("control_plane"), capability!("etcd"), capability!("dns"),
                capability!("nodes"),
            ]),
            Scenario::new(
                "certs",
                "kk certs shows all certificates and renews one or all, also when it is killed",
                120,
                8,
                certs::run,
            )
            .covers(&[capability!("kubeconfig"), "crates/kk-cluster/src/base/certificates/"]),
            Scenario::new(
                "snapshot",
                "objects that were deleted are back after a restore of the newest snapshot",
                120,
                8,
                restore::run_newest,
            )
            .covers(&[capability!("etcd_backup"), capability!("etcd_restore")]),
            Scenario::new(
                "shell-operator",
                "one kubectl apply starts the image with seven hooks, and each does its work",
                110,
                12,
                shell_operator::run,
            )
            .covers(&["crates/shell-operator/", "deploy/hooks/", "deploy/image/"]),
            Scenario::new(
                "delete",
                "delete -A leaves every host as it was before create",
                17,
                5,
                delete::run,
            )
            .covers(&[capability!("os"), capability!("manifests")]),
        ],
        &[
            Scenario::new(
                "kill-init",
                "kk killed in the middle of init: the next create makes a whole cluster",
                55,
                6,
                kill::run_init,
            ),
        ],
        &[
            Scenario::new(
                "delta",
                "a cluster from a bundle gets a node from it, and by a delta the next minor version; nothing goes elsewhere",
                380,
                20,
                offline::delta::run,
            )
            .needs(BOTH)
            .covers(&[capability!("images"), capability!("versions"), "crates/kk-artifact/"]),
        ],
        &[
            Scenario::new(
                "upgrade",
                "a cluster gets the next minor version of Kubernetes, and its Services answer all the while",
                300,
                25,
                upgrade::run,
            )
            .needs(&[
                "--kubernetes", FROM, "--kubernetes", TO, "--with", "etcd=3.6.15", "--with",
                "runc=1.4.2",
            ])
            .covers(&["crates/kk/src/commands/upgrade.rs", "crates/kk-cluster/src/base/rollout.rs"]),
        ],
        &[
            Scenario::new(
                "kubesphere",
                "one create brings up KubeSphere's stand-ins; killed, changed, healed, and removed",
                145,
                12,
                kubesphere::run,
            )
            .needs(HELM)
            .covers(&[
                capability!("kubesphere"), "crates/ks-installer/", "crates/ks-spec/",
                "deploy/ks-installer/", "crates/kk-cluster/src/base/supply/installer.rs",
            ]),
        ],
    ],
};
