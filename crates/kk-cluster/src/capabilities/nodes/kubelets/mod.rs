//! The kubelets of nodes: their settings from the cluster, the order of their restarts, and proof that they work.

pub(super) mod local_api;
pub(super) mod pods_known;
pub(super) mod rollout;
pub(super) mod start_kubelet;
mod static_pods;
pub(super) mod update_kubelet_settings;
