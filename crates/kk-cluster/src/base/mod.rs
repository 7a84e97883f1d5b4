//! Code that all other layers use and that depends on none of them: host paths, shell, certificates, versions and images, slots,
//! and the answers of hosts and of the API.

pub(crate) mod api_server;
pub(crate) mod artifacts;
pub(crate) mod ca_copy;
pub(crate) mod certificates;
pub(crate) mod cluster_state;
pub(crate) mod encoding;
pub(crate) mod error;
pub(crate) mod findings;
pub(crate) mod host_layout;
pub(crate) mod images;
pub(crate) mod kubeconfig;
pub(crate) mod owner;
pub(crate) mod pki;
pub(crate) mod probed;
pub(crate) mod questions;
pub(crate) mod requirements;
pub(crate) mod rollout;
pub(crate) mod shared_files;
pub(crate) mod shell;
pub(crate) mod slots;
pub(crate) mod supply;
pub(crate) mod templates;
pub(crate) mod token;
pub(crate) mod yaml;
