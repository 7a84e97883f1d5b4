//! Programs: fetched once to this machine, then sent to the hosts that lack them.

mod download;
mod upload_kube_programs;
mod upload_node_tools;
mod upload_programs;
mod upload_runtime;

use kk_artifact::{Component, LocalFile};
use kk_config::{Arch, Host, Role};
use kk_engine::{Action as _, Module, Slot};

use crate::Target;
use upload_programs::UploadPrograms;

/// Downloads on the control machine. Uploads are in the order of need: what must start first goes first.
pub(crate) fn module(target: &Target) -> Module {
    let mut tasks = download::tasks(target);
    tasks.push(upload_runtime::task(target));
    tasks.push(upload_kube_programs::task(target));
    tasks.push(upload_node_tools::task(target));
    Module::new("binaries", tasks)
}

/// The verified files of a component for an architecture, on this machine.
pub(crate) fn fetched(component: Component, arch: Arch) -> Slot<Vec<LocalFile>> {
    Slot::new(&format!("program {} {}", component.name(), arch.as_str()))
}

/// Programs that start first: the runtime's, and etcd's where it runs.
fn runtime_components(host: &Host) -> Vec<Component> {
    let mut components = Vec::new();
    if host.is_node() {
        components.extend([Component::Containerd, Component::Runc, Component::Crictl]);
    }
    if host.has_role(&Role::Etcd) {
        components.push(Component::Etcd);
    }
    components
}

/// Programs that make a host a node: `kubeadm init` and `join` wait for these only.
fn kube_components(host: &Host) -> Vec<Component> {
    if host.is_node() { vec![Component::Kubeadm, Component::Kubelet] } else { Vec::new() }
}

/// Programs that are needed once the nodes are there.
fn tool_components(host: &Host) -> Vec<Component> {
    if host.is_node() { vec![Component::Kubectl, Component::CniPlugins] } else { Vec::new() }
}

/// Every component that some host needs, by architecture, in groups in the order of need.
fn groups(target: &Target) -> [Vec<(Component, Arch)>; 3] {
    [runtime_components, kube_components, tool_components].map(|components| {
        let mut group = Vec::new();
        for host in &target.spec.hosts {
            for component in components(host) {
                if !group.contains(&(component, target.arch(host))) {
                    group.push((component, target.arch(host)));
                }
            }
        }
        group
    })
}

/// Every component that some host needs, by architecture.
pub(crate) fn wanted(target: &Target) -> Vec<(Component, Arch)> {
    groups(target).concat()
}

/// Whether this run replaces a component's programs on a host.
pub(crate) fn changes(target: &Target, host: &Host, component: Component) -> bool {
    UploadPrograms::new(target, host, &[component]).check(target.facts(host)).is_needed()
}

/// The folder of a component's programs on a host.
pub(crate) fn folder(component: Component) -> &'static str {
    match component {
        Component::CniPlugins => "/opt/cni/bin",
        _ => "/usr/local/bin",
    }
}
