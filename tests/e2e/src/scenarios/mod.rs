//! The scenarios, a file each, and the groups in which CI runs them.

mod add_nodes;
mod addons;
mod address;
mod again;
mod api_sick;
mod auto_renew;
mod bad_input;
mod bad_setting;
mod balanced;
mod balancer;
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
mod from_cluster;
mod groups;
mod ha;
mod host_down;
mod hostile_host;
mod identity;
mod init_fails;
mod init_registry;
mod kill;
mod kill_anywhere;
mod kubesphere;
mod network_addons;
mod offline;
mod package;
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

pub(crate) use groups::GROUPS;
pub(crate) use kubesphere::figures as kubesphere_samples;
pub(crate) use kubesphere::full as kubesphere_full;
pub(crate) use upgrade::{FROM, TO};

/// The newest Kubernetes next to the default one.
const BOTH: &[&str] = &["--kubernetes", FROM, "--kubernetes", TO];

/// The firewall and router of the scenarios `network-policy` and `network-addon`.
const KUBE_ROUTER: &[&str] = &["--with", "kube-router"];

/// For charts, and for the image of ks-installer.
const HELM: &[&str] = &["--with", "helm"];
