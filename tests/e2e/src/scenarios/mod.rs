//! The scenarios, one file each, in the order in which they run: those that share a cluster beside each other.

use std::time::Duration;

use crate::suite::Scenario;

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

/// All of them. Limits are several times what each takes on two cores.
pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "create",
        about: "three fresh hosts become a cluster whose Service answers by name across nodes",
        limit: Duration::from_mins(5),
        in_ci: true,
        run: create::run,
    },
    Scenario {
        name: "again",
        about: "the same create again changes nothing, restarts nothing and says so",
        limit: Duration::from_mins(3),
        in_ci: true,
        run: again::run,
    },
    Scenario {
        name: "repair",
        about: "create repairs exactly what was broken, on exactly the hosts where it was",
        limit: Duration::from_mins(5),
        in_ci: true,
        run: repair::run,
    },
    Scenario {
        name: "some-damage",
        about: "four of the damages of the scenario damage, repaired in the same way",
        limit: Duration::from_mins(12),
        in_ci: true,
        run: damage::run_some,
    },
    Scenario {
        name: "status",
        about: "kk status writes nothing, and its exit code and words tell drift and hosts that do not answer",
        limit: Duration::from_mins(6),
        in_ci: true,
        run: status::run,
    },
    Scenario {
        name: "certs",
        about: "kk certs shows all certificates and renews one or all, also when it is killed",
        limit: Duration::from_mins(8),
        in_ci: true,
        run: certs::run,
    },
    Scenario {
        name: "etcd-backup",
        about: "backups of etcd are whole or not there: killed, with a full disk, moved by an edit, rotated",
        limit: Duration::from_mins(8),
        in_ci: true,
        run: etcd_backup::run,
    },
    Scenario {
        name: "shell-operator",
        about: "one kubectl apply starts the image with seven hooks, and each does its work",
        limit: Duration::from_mins(12),
        in_ci: true,
        run: shell_operator::run,
    },
    Scenario {
        name: "identity",
        about: "a delete of another cluster's hosts changes nothing and says what it saw",
        limit: Duration::from_mins(6),
        in_ci: true,
        run: identity::run,
    },
    Scenario {
        name: "edits",
        about: "what a running cluster cannot take is refused before the first change; the rest is rolled out",
        limit: Duration::from_mins(20),
        in_ci: true,
        run: edits::run,
    },
    Scenario {
        name: "bad-setting",
        about: "a setting that cannot work stops at the first host, and the file put right heals it",
        limit: Duration::from_mins(25),
        in_ci: true,
        run: bad_setting::run,
    },
    Scenario {
        name: "delete",
        about: "delete -A leaves every host as it was before create",
        limit: Duration::from_mins(5),
        in_ci: true,
        run: delete::run,
    },
    Scenario {
        name: "bad-input",
        about: "each wrong input is named before the first change where it can be known, with its exit code",
        limit: Duration::from_mins(8),
        in_ci: true,
        run: bad_input::run,
    },
    Scenario {
        name: "init-fails",
        about: "a taken port or a missing image is named, etcd keeps its data, and the next create succeeds",
        limit: Duration::from_mins(8),
        in_ci: true,
        run: init_fails::run,
    },
    Scenario {
        name: "ctrl-c",
        about: "Ctrl-C ends tidily with code 130, and the next create succeeds",
        limit: Duration::from_mins(6),
        in_ci: true,
        run: ctrl_c::run,
    },
    Scenario {
        name: "kill",
        about: "kk killed in the middle of etcd, init and join: the next create makes the same cluster",
        limit: Duration::from_mins(12),
        in_ci: true,
        run: kill::run,
    },
    Scenario {
        name: "ha",
        about: "three control planes; the API answers when one host has no power",
        limit: Duration::from_mins(6),
        in_ci: true,
        run: ha::run,
    },
    Scenario {
        name: "add-nodes",
        about: "a worker and a control plane join a cluster that runs, and nothing that was there is disturbed",
        limit: Duration::from_mins(8),
        in_ci: true,
        run: add_nodes::run,
    },
    Scenario {
        name: "delete-nodes",
        about: "a worker and a control plane leave a cluster that goes on, and their hosts are as before",
        limit: Duration::from_mins(10),
        in_ci: true,
        run: delete_nodes::run,
    },
    Scenario {
        name: "address",
        about: "a worker, and a control plane with the only member of etcd, get other addresses; also when kk is killed",
        limit: Duration::from_mins(15),
        in_ci: true,
        run: address::run,
    },
    Scenario {
        name: "address-ha",
        about: "two of three control planes that are members of etcd get other addresses, one after the other",
        limit: Duration::from_mins(15),
        in_ci: false,
        run: address::run_ha,
    },
    Scenario {
        name: "endpoint",
        about: "the API moves from a control plane to a load balancer, also when kk is killed, and back when that is lost",
        limit: Duration::from_mins(15),
        in_ci: false,
        run: endpoint::run,
    },
    Scenario {
        name: "first-leaves",
        about: "a control plane on a new machine is another member of etcd, and the first one leaves when nobody asks it any more",
        limit: Duration::from_mins(15),
        in_ci: false,
        run: first_leaves::run,
    },
    Scenario {
        name: "restore",
        about: "etcd that has lost all its data comes back from a snapshot, also when the restore is killed",
        limit: Duration::from_mins(8),
        in_ci: false,
        run: restore::run,
    },
    Scenario {
        name: "etcd-members",
        about: "etcd grows from one member to three and loses one; data, API servers and other nodes go on",
        limit: Duration::from_mins(12),
        in_ci: false,
        run: etcd_members::run,
    },
    Scenario {
        name: "bastion",
        about: "hosts behind a jump host, without a network plugin; then with one",
        limit: Duration::from_mins(6),
        in_ci: true,
        run: bastion::run,
    },
    Scenario {
        name: "sudo",
        about: "create and delete as a user who needs a password for sudo",
        limit: Duration::from_mins(6),
        in_ci: true,
        run: sudo::run,
    },
    Scenario {
        name: "secrets",
        about: "passwords and keys are in no log, journal, output, process list or world-readable file",
        limit: Duration::from_mins(6),
        in_ci: true,
        run: secrets::run,
    },
    Scenario {
        name: "damage",
        about: "each damage of a long list is repaired by one create, and nothing else is touched",
        limit: Duration::from_mins(40),
        in_ci: false,
        run: damage::run,
    },
    Scenario {
        name: "upgrade",
        about: "a cluster gets the next minor version of Kubernetes, and its Services answer all the while",
        limit: Duration::from_mins(25),
        in_ci: false,
        run: upgrade::run,
    },
    Scenario {
        name: "upgrade-fails",
        about: "a node whose kubelet does not start at the new version is put back, and no other is begun",
        limit: Duration::from_mins(35),
        in_ci: false,
        run: upgrade::fails::run,
    },
    Scenario {
        name: "upgrade-ha",
        about: "three control planes behind a load balancer get the next minor version, and the API answers all the while",
        limit: Duration::from_mins(25),
        in_ci: false,
        run: upgrade::ha::run,
    },
    Scenario {
        name: "certificates",
        about: "certificates that end before long are named; when all have expired, one create repairs the cluster",
        limit: Duration::from_mins(12),
        in_ci: true,
        run: certificates::run,
    },
    Scenario {
        name: "rotate-ca",
        about: "three control planes get other CAs by runs that are killed in each round; the API refuses nobody who knows it",
        limit: Duration::from_mins(20),
        in_ci: false,
        run: rotate_ca::run,
    },
    Scenario {
        name: "auto-renew",
        about: "timers on three control planes renew certificates that end, one after the other",
        limit: Duration::from_mins(12),
        in_ci: false,
        run: auto_renew::run,
    },
    Scenario {
        name: "offline",
        about: "a bundle of an export that was killed makes a cluster, and no packet goes elsewhere than to the hosts",
        limit: Duration::from_mins(15),
        in_ci: false,
        run: offline::run,
    },
    Scenario {
        name: "delta",
        about: "a cluster from a bundle gets a node from it, and by a delta the next minor version; nothing goes elsewhere",
        limit: Duration::from_mins(20),
        in_ci: false,
        run: offline::delta::run,
    },
    Scenario {
        name: "packages",
        about: "a host without socat and conntrack gets them from a bundle, and nothing else; a delete takes them back",
        limit: Duration::from_mins(15),
        in_ci: false,
        run: offline::packages::run,
    },
    Scenario {
        name: "addons",
        about: "a chart and a manifest of a bundle are installed once, healed, changed, and taken up after a kill",
        limit: Duration::from_mins(20),
        in_ci: false,
        run: addons::run,
    },
    Scenario {
        name: "offline-kills",
        about: "exports and pushes that are killed at fifty random moments end as one that nobody killed",
        limit: Duration::from_mins(30),
        in_ci: false,
        run: offline::kills::run,
    },
    Scenario {
        name: "registry",
        about: "pushes that were killed bring the images of a bundle into a registry, and a cluster pulls them from there",
        limit: Duration::from_mins(15),
        in_ci: false,
        run: registry::run,
    },
    Scenario {
        name: "init-registry",
        about: "a registry on a node serves a cluster that pulls from nowhere else, outlives it, and goes without a trace",
        limit: Duration::from_mins(15),
        in_ci: false,
        run: init_registry::run,
    },
    Scenario {
        name: "kubesphere",
        about: "one create brings up KubeSphere's stand-ins; killed, changed, healed, and removed",
        limit: Duration::from_mins(12),
        in_ci: false,
        run: kubesphere::run,
    },
    Scenario {
        name: "kubesphere-toggle",
        about: "a component is switched off and on again; nothing of it is left, and nothing else is touched",
        limit: Duration::from_mins(15),
        in_ci: false,
        run: kubesphere::toggle::run,
    },
    Scenario {
        name: "kubesphere-upgrade",
        about: "an upgrade that asks for KubeSphere ends with it, when the last node has its version",
        limit: Duration::from_mins(20),
        in_ci: false,
        run: kubesphere::upgrade::run,
    },
    Scenario {
        name: "kubesphere-faults",
        about: "what goes wrong with the installer is named and healed; its pod is killed at thirty random moments",
        limit: Duration::from_mins(20),
        in_ci: false,
        run: kubesphere::faults::run,
    },
    Scenario {
        name: "kubesphere-real",
        about: "KubeSphere 3.4.1 itself, from images and a release that are given: log in, make a workspace, again",
        limit: Duration::from_hours(1),
        in_ci: false,
        run: kubesphere::real::run,
    },
    Scenario {
        name: "kubesphere-full",
        about: "real programs of KubeSphere's surroundings are installed, asked, switched off and on, and removed",
        limit: Duration::from_mins(40),
        in_ci: false,
        run: kubesphere::full::run,
    },
    Scenario {
        name: "host-down",
        about: "with hosts switched off, the rest is repaired and what was left is named",
        limit: Duration::from_mins(20),
        in_ci: false,
        run: host_down::run,
    },
    Scenario {
        name: "api-sick",
        about: "an API that does not answer is never taken for a missing one",
        limit: Duration::from_mins(15),
        in_ci: false,
        run: api_sick::run,
    },
    Scenario {
        name: "slow",
        about: "create on hosts with a fifth of a processor and 100 ms of latency succeeds in one go",
        limit: Duration::from_mins(40),
        in_ci: false,
        run: slow::run,
    },
    Scenario {
        name: "two-networks",
        about: "hosts whose default route is another network than the cluster's: pods reach each other",
        limit: Duration::from_mins(10),
        in_ci: false,
        run: two_networks::run,
    },
    Scenario {
        name: "variants",
        about: "other Debian releases, networks and numbers of hosts: create, again and delete",
        limit: Duration::from_mins(40),
        in_ci: false,
        run: variants::run,
    },
    Scenario {
        name: "kill-anywhere",
        about: "kk killed at random moments inside init and join: the next create makes the same cluster",
        limit: Duration::from_mins(90),
        in_ci: false,
        run: kill_anywhere::run,
    },
    Scenario {
        name: "real-kernel",
        about: "a virtual machine with cgroup v2: create, again, reboot, ipvs, nftables, delete",
        limit: Duration::from_mins(90),
        in_ci: false,
        run: real_kernel::run,
    },
    Scenario {
        name: "real-kernel-networks",
        about: "a virtual machine with two networks beside two containers: pods reach each other and a Service",
        limit: Duration::from_mins(45),
        in_ci: false,
        run: real_kernel::networks,
    },
];
