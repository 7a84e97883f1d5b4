//! All knowledge of Kubernetes on hosts: the capabilities of a cluster, and the pipelines made of them.
//!
//! The entry point is [`Session`]: it loads what is on the control machine, probes the hosts, and builds the plans of a
//! command.

mod base;
mod capabilities;
mod commands;
#[cfg(test)]
#[expect(dead_code, reason = "other crates use the rest")]
#[path = "../../shell-operator/tests/it/cluster/control_plane.rs"]
mod control_plane;
mod model;
#[cfg(test)]
#[path = "../../shell-operator/tests/it/cluster/programs.rs"]
mod programs;
#[cfg(test)]
mod testing;

pub use base::error::BuildError;
pub use base::kubeconfig::programs as kubeconfig_programs;
pub use base::probed::Probed;
pub use base::templates::{TemplateError, Templates};
pub use base::yaml::parse_untrusted as parse_yaml;
pub use capabilities::control_plane::RENEWABLE;
pub use capabilities::{
    ca_rotation::{Authorities, Restarts, Round},
    etcd::member_status::MemberDetail,
    etcd_restore::Snapshot,
    kubesphere::{ComponentStatus, KubeSphereStatus},
    os::packages::host_packages,
    registry::{registry_for_pushes, trust_own_registry},
};
pub use commands::status::{CertificateStatus, MemberStatus, NodeState, NodeStatus, Status};
pub use commands::{
    etcd::{Backup, Comparison},
    rotate_ca::Rotation,
    session::{Certificates, Create, Delete, Session, Settings, secrets_of, secrets_of_registry},
    upgrade::{Fetch, Hops},
};
pub use model::kubeadm::kubelet_defaults;
pub use model::options::{Drain, Leaving, Options};
