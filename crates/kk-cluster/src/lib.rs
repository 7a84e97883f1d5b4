//! All knowledge of Kubernetes on hosts: the capabilities of a cluster, and the pipelines made of them.
//!
//! The entry point is [`Session`]: it loads what is on the control machine, probes the hosts, and builds the plans of a
//! command.

mod actions;
mod artifacts;
mod ca_copy;
mod capabilities;
mod capability;
mod certificates;
mod cluster_state;
mod command;
mod encoding;
mod error;
mod findings;
mod host_layout;
mod images;
mod inputs;
mod kubeadm;
mod kubeconfig;
mod offline;
mod owner;
mod pipelines;
mod pki;
mod precheck;
mod probe;
#[cfg(test)]
#[path = "../../shell-operator/tests/it/cluster/programs.rs"]
mod programs;
mod requirements;
mod rollout;
mod session;
mod shared_files;
mod shell;
mod slots;
mod status;
mod templates;
#[cfg(test)]
mod testing;
mod yaml;

pub use capabilities::control_plane::RENEWABLE;
pub use capabilities::{
    ca_rotation::{Authorities, Restarts, Round},
    etcd::member_status::MemberDetail,
    etcd_restore::Snapshot,
    os::packages::host_packages,
    registry::trust_own_registry,
};
pub use error::BuildError;
pub use inputs::{Drain, Leaving, Options, Probed};
pub use kubeconfig::programs as kubeconfig_programs;
pub use session::{
    Backup, Certificates, Comparison, Create, Delete, Fetch, Hops, Rotation, Session, Settings,
};
pub use status::{
    CertificateStatus, ComponentStatus, KubeSphereStatus, MemberStatus, NodeState, NodeStatus, Status,
};
pub use templates::{TemplateError, Templates};
