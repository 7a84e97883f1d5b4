//! The cluster file for the lab's hosts: a `KubeKey` v1alpha2 file that needs nothing filled in.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use crate::hosts::Host;
use crate::hosts::furnish::SudoUser;
use crate::mirror::publish;
use crate::mirror::versions::Versions;
use crate::mirror::{servers, tls};
use crate::sys::files::write_secret;
use crate::sys::paths::{self, Paths};

/// Registries that the lab's own registry replaces.
const REGISTRIES: [&str; 4] = ["registry.k8s.io", "ghcr.io", "docker.io", "quay.io"];

/// Writes the file; readable by its owner alone, for it may hold a password.
pub(crate) fn write(file: &Path, text: &str) -> Result<()> {
    write_secret(file, text)
}

/// The first host is the control plane; etcd runs on an odd number of hosts, three at most.
pub(crate) fn text(
    paths: &Paths,
    versions: &Versions,
    kubernetes: &str,
    hosts: &[Host],
    user: Option<&SudoUser>,
) -> Result<String> {
    let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let members = if names.len() < 3 { 1 } else { 3 };
    let workers = if names.len() == 1 { &names[..] } else { &names[1..] };
    let mut text = String::from(
        "# Written by kk-lab for the hosts that run now.\n\
         apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata:\n  name: lab\nspec:\n  hosts:\n",
    );
    for host in hosts {
        writeln!(text, "  - {}", host_entry(host, user))?;
    }
    write!(
        text,
        "  roleGroups:\n    etcd: [{}]\n    control-plane: [{}]\n    worker: [{}]\n",
        names[..members].join(", "),
        names[0],
        workers.join(", ")
    )?;
    write!(text, "{}", CLUSTER.replace("{kubernetes}", kubernetes))?;
    write!(
        text,
        "  download:\n    mirror: {}\n    catalogue: {}\n",
        servers::mirror_url(),
        publish::catalogue_file(paths).display()
    )?;
    write!(text, "  registry:\n    remoteMirrors:\n")?;
    for registry in REGISTRIES {
        writeln!(text, "      {registry}: {{endpoint: [\"https://{}\"]}}", servers::registry_address())?;
    }
    write!(
        text,
        "    auths:\n      \"{}\": {{certsPath: {}}}\n",
        servers::registry_address(),
        tls::ca_directory().display()
    )?;
    writeln!(text, "  components: # what the mirror has, instead of the versions that kk would choose")?;
    for (field, component) in [
        ("etcd", "etcd"),
        ("containerd", "containerd"),
        ("runc", "runc"),
        ("cni", "cni-plugins"),
        ("crictl", "crictl"),
        ("helm", "helm"),
        ("flannel", "flannel"),
        ("flannelCniPlugin", "flannel-cni-plugin"),
        ("coredns", "coredns"),
        ("haproxy", "haproxy"),
    ] {
        writeln!(text, "    {field}: v{}", versions.version(component)?)?;
    }
    writeln!(text, "    pause: \"{}\"", versions.pause)?;
    Ok(text)
}

fn host_entry(host: &Host, user: Option<&SudoUser>) -> String {
    // JSON strings are YAML strings, whatever a password contains.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let name = user.map_or("root", |user| &user.name);
    let password = user.map(|user| format!(", password: {}", quoted(&user.password))).unwrap_or_default();
    format!(
        "{{name: {}, address: {}, internalAddress: {}, user: {}{password}, privateKeyPath: {}}}",
        host.name,
        host.address,
        host.address,
        quoted(name),
        paths::state("id_ed25519").display()
    )
}

/// Settings that differ from the defaults, and why.
const CLUSTER: &str = "  controlPlaneEndpoint:
    domain: lb.kubesphere.local
    address: \"\"
    port: 6443
  etcd:
    type: kubekey
  kubernetes:
    version: v{kubernetes}
    clusterName: cluster.local
    containerManager: containerd
    proxyMode: iptables # the kernel of a small machine may have no IPVS
    kubeletConfiguration:
      # Absolute: the hosts share one disk, whose shares say nothing about a host.
      evictionHard: {nodefs.available: 500Mi, imagefs.available: 500Mi, memory.available: 100Mi}
      imageGCHighThresholdPercent: 100
      imageGCLowThresholdPercent: 99
    kubeProxyConfiguration:
      # Limits of connection tracking are the machine's; a container cannot raise them.
      conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
  network:
    plugin: flannel
    kubePodsCIDR: 10.233.64.0/18
    kubeServiceCIDR: 10.233.0.0/18
";

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn cluster(hosts: u8, user: Option<&SudoUser>) -> Value {
        let paths = Paths::from_env().unwrap();
        let versions = Versions::load(&paths.data).unwrap();
        let hosts: Vec<Host> = (1..=hosts).map(Host::new).collect();
        let kubernetes = versions.version("kubernetes").unwrap();
        serde_saphyr::from_str(&text(&paths, &versions, kubernetes, &hosts, user).unwrap()).unwrap()
    }

    #[test]
    fn etcd_has_an_odd_number_of_members_and_every_host_a_role() {
        for (hosts, members, workers) in [(1, 1, 1), (2, 1, 1), (3, 3, 2), (5, 3, 4)] {
            let groups = &cluster(hosts, None)["spec"]["roleGroups"];
            let count = |name: &str| groups[name].as_array().unwrap().len();
            assert_eq!(
                (count("etcd"), count("control-plane"), count("worker")),
                (members, 1, workers),
                "{hosts} hosts"
            );
        }
    }

    #[test]
    fn any_password_survives() {
        let user = SudoUser { name: "ada".into(), password: "a: \"b\" # {c}'\\".into() };
        let host = &cluster(1, Some(&user))["spec"]["hosts"][0];
        assert_eq!(
            (host["user"].as_str(), host["password"].as_str()),
            (Some("ada"), Some(user.password.as_str()))
        );
    }
}
