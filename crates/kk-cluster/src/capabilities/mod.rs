//! The capabilities: one directory a subject, one value for it, one file a task; the file's name is the task's.
//!
//! Families with several kinds (`balancer`, `network`, `runtime`) are directories of such values; only they name a kind.

pub(crate) mod addons;
pub(crate) mod auto_renew;
pub(crate) mod balancer;
pub(crate) mod ca_rotation;
pub(crate) mod control_plane;
pub(crate) mod dns;
pub(crate) mod etcd;
pub(crate) mod etcd_backup;
pub(crate) mod etcd_restore;
pub(crate) mod images;
pub(crate) mod kube_proxy;
pub(crate) mod kubeconfig;
pub(crate) mod kubelet;
pub(crate) mod kubesphere;
pub(crate) mod manifests;
pub(crate) mod network;
pub(crate) mod nodes;
pub(crate) mod os;
pub(crate) mod programs;
pub(crate) mod registry;
pub(crate) mod runtime;
pub(crate) mod verify;
pub(crate) mod versions;
