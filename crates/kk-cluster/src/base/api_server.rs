//! The API server of one control plane, as opposed to the API behind its name (`model/endpoint.rs`).

use kk_config::{ControlPlaneEndpoint, Host};

/// The URL at which the API server of a control plane answers on its own address.
pub(crate) fn url(host: &Host) -> String {
    format!("https://{}:{}", host.internal_address, ControlPlaneEndpoint::API_SERVER_PORT)
}
