//! From the document as written to the [`Spec`]: defaults, types and the checks that need more than one field.
//!
//! Each part takes its section of the document and the place of that section. Where something is wrong it is
//! reported and any value stands in for it: a configuration with an error never leaves this crate.

mod addons;
mod calico;
mod components;
mod directories;
mod endpoint;
mod etcd;
mod flags;
mod hosts;
mod kubernetes;
mod kubesphere;
mod manifest;
mod network;
mod no_effect;
mod operating_systems;
mod proxy_args;
mod registry;
mod removed;
mod roles;
mod set_values;
mod source;
mod syntax;
mod system;
mod typed;

pub use endpoint::KUBE_VIP_VARIABLES;
pub use registry::component_version;
pub use syntax::go_duration;

pub(crate) use manifest::manifest;
pub(crate) use no_effect::warn_of_fields_without_effect;

use crate::Overrides;
use crate::findings::{At, Findings};
use crate::spec::{Role, Spec};
use crate::v1alpha2::{API_VERSION, Cluster};
use crate::yaml::Node;

/// Checks the whole document and makes the spec of it.
///
/// `second` is the `ClusterConfiguration` of the file.
pub(crate) fn normalise(
    cluster: Cluster,
    second: Option<&Node>,
    overrides: &Overrides,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> Spec {
    if !cluster.api_version.is_empty() && cluster.api_version != API_VERSION {
        let message = format!("apiVersion `{}` is not known", cluster.api_version);
        out.error(at.key("apiVersion"), message, format!("this program reads {API_VERSION}"));
    }
    let name = cluster.metadata.name;
    if name.is_empty() {
        out.missing(at.key("metadata"), "the cluster has no name", "add `name: my-cluster` under `metadata`");
    } else if !syntax::is_dns_name(&name) {
        out.error(
            at.key("metadata").key("name"),
            format!("`{name}` cannot name a cluster"),
            syntax::DNS_NAME,
        );
    }

    let doc = cluster.spec;
    let at = at.key("spec");
    let mut hosts = hosts::hosts(&doc.hosts, doc.bastion.as_ref(), at, out);
    let role_groups = roles::assign(&mut hosts, &doc.role_groups, at, out);
    endpoint::check_bind_address(
        doc.control_plane_endpoint.internal_loadbalancer,
        &doc.kubernetes.apiserver_args,
        at,
        out,
    );
    let kubernetes = kubernetes::kubernetes(doc.kubernetes, overrides, at.key("kubernetes"), out);
    etcd::check(&doc.etcd, at.key("etcd"), out);
    system::check(&doc.system, at.key("system"), out);
    let network = network::network(&doc.network, &kubernetes, &hosts, at, out);
    let control_plane_endpoint = endpoint::endpoint(
        doc.control_plane_endpoint,
        &hosts,
        &role_groups,
        at.key("controlPlaneEndpoint"),
        out,
    );
    network::check_addresses(&network, &hosts, &control_plane_endpoint, at, out);
    registry::check(&doc.registry, at.key("registry"), out);
    let hosts_of_registry = role_groups.get(&Role::Registry).is_some_and(|names| !names.is_empty());
    if doc.registry.is_harbor() && hosts_of_registry {
        out.warning(
            at.key("registry").key("type"),
            "kk does not install Harbor on the hosts of the role group `registry`",
            "install it with its own installer, or remove the type: kk init registry sets up a plain \
             registry",
        );
    }
    directories::check((&doc.etcd, &doc.registry, &kubernetes), hosts_of_registry, at, out);
    let addons = addons::addons(doc.addons, &network.plugin, at.key("addons"), out);
    let kubesphere = kubesphere::kubesphere(doc.kubesphere, second, overrides, at.key("kubesphere"), out);
    system::check_dns(&doc.dns, at.key("dns"), out);
    let spec = Spec {
        name,
        hosts,
        control_plane_endpoint,
        system: doc.system,
        etcd: doc.etcd,
        kubernetes,
        network,
        dns: doc.dns,
        registry: doc.registry,
        download: registry::download(doc.download, at.key("download"), out),
        components: registry::components(doc.components, &overrides.components, at.key("components"), out),
        addons,
        kubesphere,
        role_groups,
    };
    registry::check_ports(&spec, at.key("registry"), out);
    spec
}
