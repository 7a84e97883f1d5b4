//! The group `long`.

use super::super::{
    FROM, TO, damage, kill_anywhere, kubesphere, offline, package, real_kernel, slow, upgrade,
};
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "long",
    when: When::OnRequest,
    chains: &[
        &[
            Scenario::new(
                "kill-anywhere",
                "kk killed at random moments inside init and join: the next create makes the same cluster",
                1800,
                90,
                kill_anywhere::run,
            ),
        ],
        &[
            Scenario::new(
                "damage-files",
                "each file of a control plane and of a worker, deleted or emptied, is repaired by one create",
                3300,
                150,
                damage::run_files,
            ),
        ],
        &[
            Scenario::new(
                "offline-kills",
                "exports and pushes that are killed at fifty random moments end as one that was not killed",
                900,
                30,
                offline::kills::run,
            ),
        ],
        &[
            Scenario::new(
                "kubesphere-full",
                "real programs of KubeSphere's surroundings are installed, asked, switched off and on, and removed",
                700,
                40,
                kubesphere::full::run,
            )
            .needs(&[
                "--with", "alertmanager", "--with", "local-path-provisioner", "--with",
                "metrics-server", "--with", "node-exporter", "--with", "prometheus", "--with",
                "prometheus-operator", "--with", "snapshot-controller", "--with", "servers",
            ]),
        ],
        &[
            Scenario::new(
                "kubesphere-real",
                "KubeSphere itself, from images and a release that are given: core, monitoring or an extension, upgrade, removal",
                2700,
                150,
                kubesphere::real::run,
            )
            .needs(&[
                "--kubernetes", FROM, "--kubernetes", TO, "--with", "helm", "--with",
                "local-path-provisioner", "--with", "servers",
            ]),
        ],
        &[
            Scenario::new(
                "upgrade-chain",
                "a cluster of Kubernetes 1.34 gets each minor version up to 1.37",
                500,
                30,
                upgrade::chain::run,
            )
            .needs(upgrade::chain::NEEDS),
        ],
        &[
            Scenario::new(
                "package",
                "the packages of PACKAGES install on hosts of three Debian releases, and kk makes a cluster there",
                400,
                20,
                package::run,
            )
            .covers(&["deploy/package/"]),
        ],
        &[
            Scenario::new(
                "slow",
                "create on hosts with a fifth of a processor and 100 ms of latency succeeds in one go",
                900,
                40,
                slow::run,
            ),
        ],
        &[
            Scenario::new(
                "real-kernel",
                "a virtual machine with cgroup v2: create, again, reboot, ipvs, nftables, delete",
                2700,
                90,
                real_kernel::run,
            ),
        ],
        &[
            Scenario::new(
                "real-kernel-networks",
                "a virtual machine with two networks next to two containers: pods reach each other and a Service",
                1200,
                45,
                real_kernel::networks,
            ),
        ],
    ],
};
