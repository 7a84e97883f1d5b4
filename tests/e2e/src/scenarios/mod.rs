//! The scenarios, a file each, and the groups in which CI runs them.

use crate::selection::When;
use crate::suite::{Group, Scenario};

mod add_nodes;
mod addons;
mod address;
mod again;
mod api_sick;
mod auto_renew;
mod bad_input;
mod bad_setting;
mod balanced;
mod bastion;
mod certificates;
mod certs;
mod create;
mod ctrl_c;
mod damage;
mod delete;
mod delete_nodes;
mod edits;
mod endpoint;
mod etcd_backup;
mod etcd_members;
mod first_leaves;
mod ha;
mod host_down;
mod identity;
mod init_fails;
mod init_registry;
mod kill;
mod kill_anywhere;
mod kubesphere;
mod offline;
mod real_kernel;
mod registry;
mod repair;
mod restore;
mod rotate_ca;
mod secrets;
mod shell_operator;
mod slow;
mod status;
mod sudo;
mod two_networks;
mod upgrade;
mod variants;

pub(crate) use kubesphere::figures as kubesphere_samples;
pub(crate) use kubesphere::full as kubesphere_full;
pub(crate) use upgrade::{FROM, TO};

/// The newest Kubernetes next to the default one.
const BOTH: &[&str] = &["--kubernetes", FROM, "--kubernetes", TO];

/// For charts, and for the image of ks-installer.
const HELM: &[&str] = &["--with", "helm"];

/// A directory of `kk-cluster` that holds a capability.
macro_rules! capability {
    ($name:literal) => {
        concat!("crates/kk-cluster/src/capabilities/", $name, "/")
    };
}

/// All of them. Limits are several times what each takes on two cores. The first group is what `make e2e` runs.
pub(crate) const GROUPS: &[Group] = &[
    Group {
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
                    150,
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
                    110,
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
                    80,
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
                    110,
                    12,
                    kubesphere::run,
                )
                .needs(HELM)
                .covers(&[
                    capability!("kubesphere"), "crates/ks-installer/", "crates/ks-spec/",
                    "deploy/ks-installer/",
                ]),
            ],
        ],
    },
    Group {
        name: "damage",
        when: When::InTurn,
        chains: &[
            &[
                Scenario::new(
                    "damage/1",
                    "the first half of a long list of damages: one create repairs each, and nothing else is touched",
                    470,
                    25,
                    damage::run_first,
                )
                .covers(&[
                    capability!("control_plane"), capability!("etcd"), capability!("kubelet"),
                    capability!("runtime"), capability!("programs"),
                ]),
            ],
            &[
                Scenario::new(
                    "damage/2",
                    "the second half of these damages",
                    470,
                    25,
                    damage::run_second,
                )
                .covers(&[
                    capability!("dns"), capability!("kube_proxy"), capability!("network"),
                    capability!("nodes"), capability!("verify"),
                ]),
            ],
        ],
    },
    Group {
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
                .covers(&["crates/kk-cluster/src/model/kubeadm/", "crates/kk-config/"]),
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
                    30,
                    6,
                    identity::run,
                )
                .covers(&["crates/kk-cluster/src/base/owner.rs", "crates/kk-cluster/src/base/ca_copy.rs"]),
            ],
            &[
                Scenario::new(
                    "bad-setting",
                    "a setting that cannot work stops at the first host, and the file put right heals it",
                    290,
                    25,
                    bad_setting::run,
                )
                .covers(&[
                    "crates/kk-cluster/src/model/kubeadm/", capability!("kubelet"), capability!("kube_proxy"),
                ]),
                Scenario::new(
                    "etcd-backup",
                    "backups of etcd are whole or not there: killed, with a full disk, moved by an edit, rotated",
                    60,
                    8,
                    etcd_backup::run,
                )
                .covers(&[capability!("etcd_backup")]),
            ],
        ],
    },
    Group {
        name: "input",
        when: When::InTurn,
        chains: &[
            &[
                Scenario::new(
                    "api-sick",
                    "an API that does not answer is never taken for a missing one",
                    620,
                    15,
                    api_sick::run,
                )
                .covers(&[capability!("verify"), "crates/kk-cluster/src/base/cluster_state.rs"]),
            ],
            &[
                Scenario::new(
                    "bad-input",
                    "each wrong input is named before the first change where it can be known, with its exit code",
                    170,
                    8,
                    bad_input::run,
                )
                .covers(&["crates/kk-cluster/src/commands/precheck/", "crates/kk/src/error.rs"]),
            ],
            &[
                Scenario::new(
                    "init-fails",
                    "a taken port or a missing image is named, etcd keeps its data, and the next create succeeds",
                    90,
                    8,
                    init_fails::run,
                )
                .covers(&[capability!("control_plane"), capability!("images")]),
            ],
            &[
                Scenario::new(
                    "secrets",
                    "passwords and keys are in no log, journal, output, process list or world-readable file",
                    60,
                    6,
                    secrets::run,
                )
                .covers(&["crates/kk-engine/src/redact.rs"]),
            ],
            &[
                Scenario::new(
                    "sudo",
                    "create and delete as a user who needs a password for sudo",
                    65,
                    6,
                    sudo::run,
                )
                .covers(&["crates/kk-connector/"]),
            ],
            &[
                Scenario::new(
                    "bastion",
                    "hosts behind a jump host, without a network plugin; then with one",
                    100,
                    6,
                    bastion::run,
                )
                .covers(&["crates/kk-connector/", capability!("network")]),
            ],
            &[
                Scenario::new(
                    "two-networks",
                    "hosts whose default route is another network than the cluster's: pods reach each other",
                    60,
                    10,
                    two_networks::run,
                )
                .covers(&[capability!("network")]),
            ],
            &[
                Scenario::new(
                    "ctrl-c",
                    "Ctrl-C ends tidily with code 130, and the next create succeeds",
                    60,
                    6,
                    ctrl_c::run,
                )
                .covers(&["crates/kk/src/cancel.rs"]),
            ],
        ],
    },
    Group {
        name: "kills",
        when: When::InTurn,
        chains: &[
            &[
                Scenario::new(
                    "kill",
                    "kk killed in the middle of etcd, init and join: the next create makes the same cluster",
                    230,
                    12,
                    kill::run,
                )
                .covers(&[capability!("etcd"), capability!("control_plane"), capability!("nodes")]),
            ],
            &[
                Scenario::new(
                    "kill-anywhere/some",
                    "kk killed at four random moments inside init and join: the next create makes the same cluster",
                    300,
                    15,
                    kill_anywhere::run_some,
                )
                .covers(&[capability!("control_plane"), capability!("nodes")]),
            ],
            &[
                Scenario::new(
                    "restore",
                    "etcd that has lost all its data comes back from a snapshot, also when the restore is killed",
                    290,
                    8,
                    restore::run,
                )
                .covers(&[capability!("etcd_restore")]),
            ],
        ],
    },
    Group {
        name: "nodes",
        when: When::InTurn,
        chains: &[
            &[
                Scenario::new(
                    "add-nodes",
                    "a worker and a control plane join a cluster that runs, and nothing that was there is disturbed",
                    170,
                    8,
                    add_nodes::run,
                )
                .covers(&[capability!("nodes"), "crates/kk/src/commands/add_nodes.rs"]),
            ],
            &[
                Scenario::new(
                    "delete-nodes",
                    "a worker and a control plane leave a cluster that goes on, and their hosts are as before",
                    180,
                    10,
                    delete_nodes::run,
                )
                .covers(&[capability!("nodes"), "crates/kk/src/commands/delete_node.rs"]),
            ],
            &[
                Scenario::new(
                    "first-leaves",
                    "a control plane on a new machine is another member of etcd, and the first one leaves when no node asks it any more",
                    200,
                    15,
                    first_leaves::run,
                )
                .covers(&[capability!("nodes"), capability!("etcd")]),
            ],
            &[
                Scenario::new(
                    "address",
                    "a worker, and a control plane with the only member of etcd, get other addresses; also when kk is killed",
                    150,
                    15,
                    address::run,
                )
                .covers(&[capability!("nodes"), capability!("etcd"), capability!("control_plane")]),
            ],
            &[
                Scenario::new(
                    "etcd-members",
                    "etcd grows from one member to three and loses one; data, API servers and other nodes go on",
                    150,
                    12,
                    etcd_members::run,
                )
                .covers(&[capability!("etcd")]),
            ],
        ],
    },
    Group {
        name: "high-availability",
        when: When::InTurn,
        chains: &[
            &[
                Scenario::new(
                    "ha",
                    "three control planes; the API answers when one host has no power",
                    85,
                    6,
                    ha::run,
                )
                .covers(&[capability!("control_plane")]),
            ],
            &[
                Scenario::new(
                    "address-ha",
                    "two of three control planes that are members of etcd get other addresses, one after the other",
                    480,
                    15,
                    address::run_ha,
                )
                .covers(&[capability!("nodes"), capability!("etcd"), capability!("control_plane")]),
            ],
            &[
                Scenario::new(
                    "endpoint",
                    "the API moves from a control plane to a load balancer, also when kk is killed, and back when that is lost",
                    105,
                    15,
                    endpoint::run,
                )
                .covers(&[capability!("nodes")]),
            ],
            &[
                Scenario::new(
                    "host-down",
                    "with hosts switched off, the rest is repaired and what was left is named",
                    270,
                    20,
                    host_down::run,
                )
                .covers(&[capability!("verify")]),
            ],
        ],
    },
    Group {
        name: "upgrades",
        when: When::InTurn,
        chains: &[
            &[
                Scenario::new(
                    "upgrade-ha",
                    "three control planes behind a load balancer get the next minor version, and the API answers all the while",
                    350,
                    25,
                    upgrade::ha::run,
                )
                .needs(BOTH)
                .covers(&["crates/kk/src/commands/upgrade.rs", "crates/kk-cluster/src/base/rollout.rs"]),
            ],
            &[
                Scenario::new(
                    "upgrade-fails",
                    "a node whose kubelet does not start at the new version is put back, and no other is begun",
                    300,
                    35,
                    upgrade::fails::run,
                )
                .needs(BOTH)
                .covers(&["crates/kk/src/commands/upgrade.rs"]),
            ],
            &[
                Scenario::new(
                    "kubesphere-upgrade",
                    "an upgrade that asks for KubeSphere ends with it, when the last node has its version",
                    250,
                    20,
                    kubesphere::upgrade::run,
                )
                .needs(&["--kubernetes", FROM, "--kubernetes", TO, "--with", "helm"])
                .covers(&[capability!("kubesphere")]),
            ],
        ],
    },
    Group {
        name: "certificates",
        when: When::InTurn,
        chains: &[
            &[
                Scenario::new(
                    "rotate-ca",
                    "three control planes get other CAs by runs that are killed in each round; the API refuses no client that knows it",
                    630,
                    20,
                    rotate_ca::run,
                )
                .covers(&[capability!("ca_rotation"), "crates/kk-cluster/src/base/pki/"]),
            ],
            &[
                Scenario::new(
                    "certificates",
                    "certificates that end before long are named; when all have expired, one create repairs the cluster",
                    160,
                    12,
                    certificates::run,
                )
                .covers(&["crates/kk-cluster/src/base/certificates/"]),
            ],
            &[
                Scenario::new(
                    "auto-renew",
                    "timers on three control planes renew certificates that end, one after the other",
                    260,
                    12,
                    auto_renew::run,
                )
                .covers(&[capability!("auto_renew")]),
            ],
        ],
    },
    Group {
        name: "offline",
        when: When::InTurn,
        chains: &[
            &[
                Scenario::new(
                    "offline",
                    "a bundle of an export that was killed makes a cluster, and no packet goes elsewhere than to the hosts",
                    220,
                    15,
                    offline::run,
                )
                .covers(&["crates/kk-artifact/", capability!("images")]),
            ],
            &[
                Scenario::new(
                    "packages",
                    "a host without socat and conntrack gets them from a bundle, and nothing else; a delete takes them back",
                    120,
                    15,
                    offline::packages::run,
                )
                .covers(&["crates/kk-artifact/src/packages/", capability!("os")]),
            ],
            &[
                Scenario::new(
                    "registry",
                    "pushes that were killed bring the images of a bundle into a registry, and a cluster pulls them from there",
                    150,
                    15,
                    registry::run,
                )
                .covers(&["crates/kk-artifact/src/oci/", capability!("registry")]),
            ],
            &[
                Scenario::new(
                    "init-registry",
                    "a registry on a node serves a cluster that pulls from nowhere else, outlives it, and goes without a trace",
                    150,
                    15,
                    init_registry::run,
                )
                .needs(&["--with", "registry"])
                .covers(&[capability!("registry")]),
            ],
            &[
                Scenario::new(
                    "addons",
                    "a chart and a manifest of a bundle are installed once, healed, changed, and taken up after a kill",
                    200,
                    20,
                    addons::run,
                )
                .needs(HELM)
                .covers(&[capability!("addons"), "crates/kk-artifact/src/charts/"]),
            ],
        ],
    },
    Group {
        name: "kubesphere",
        when: When::InTurn,
        chains: &[
            &[
                Scenario::new(
                    "kubesphere-toggle",
                    "a component is switched off and on again; nothing of it is left, and nothing else is touched",
                    330,
                    20,
                    kubesphere::toggle::run,
                )
                .needs(HELM)
                .covers(&[capability!("kubesphere"), "crates/ks-installer/"]),
            ],
            &[
                Scenario::new(
                    "kubesphere-remove",
                    "KubeSphere's stand-ins come into a cluster and go again: the whole API is as before",
                    240,
                    20,
                    kubesphere::remove::run,
                )
                .needs(HELM)
                .covers(&[capability!("kubesphere"), "crates/ks-installer/", "tests/lab/ks-payload/"]),
            ],
            &[
                Scenario::new(
                    "kubesphere-faults",
                    "what goes wrong with the installer is named and healed; its pod is killed at thirty random moments",
                    400,
                    20,
                    kubesphere::faults::run,
                )
                .needs(HELM)
                .covers(&[capability!("kubesphere"), "crates/ks-installer/"]),
            ],
        ],
    },
    Group {
        name: "variants",
        when: When::InTurn,
        chains: &[
            &[
                Scenario::new(
                    "variants/1",
                    "other Debian releases and settings of hosts: create, again and delete",
                    350,
                    25,
                    variants::run_first,
                )
                .covers(&[capability!("os"), capability!("network")]),
            ],
            &[
                Scenario::new(
                    "variants/2",
                    "other networks and kinds of cluster: create, again and delete",
                    350,
                    25,
                    variants::run_second,
                )
                .covers(&[capability!("network"), capability!("kube_proxy")]),
            ],
        ],
    },
    Group {
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
                    "KubeSphere 3.4.1 itself, from images and a release that are given: log in, make a workspace, again, remove",
                    900,
                    60,
                    kubesphere::real::run,
                ),
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
                    "a virtual machine with two networks beside two containers: pods reach each other and a Service",
                    1200,
                    45,
                    real_kernel::networks,
                ),
            ],
        ],
    },
];
