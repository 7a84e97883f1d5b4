//! Installs kube-proxy, which provides Services on every node, by kubeadm's own add-on.

mod ipvs;
mod remove_kube_proxy;
mod restart;
pub(crate) mod services;

pub(crate) use ipvs::Ipvs;

use kk_artifact::Component;
use kk_config::{Host, ProxyMode, Spec};
use kk_engine::{ProbeSpec, Task};

use crate::{
    base::{
        error::BuildError,
        findings::Findings,
        requirements::{ImageStage, Manifest, Object, Port, Ready, Workload},
    },
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
        kubeadm,
    },
};

/// kube-proxy, unless the file disables it.
pub(crate) struct KubeProxy;

impl Capability for KubeProxy {
    fn name(&self) -> &'static str {
        "kube-proxy"
    }

    fn stage(&self) -> Stage {
        Stage::AddOns
    }

    fn skipped(&self, cluster: &Cluster) -> Option<&'static str> {
        cluster.spec.kubernetes.disable_kube_proxy.then_some("spec.kubernetes.disableKubeProxy is set")
    }

    fn images(&self, cluster: &Cluster, host: &Host) -> Vec<(ImageStage, String)> {
        let image = || (ImageStage::Node, cluster.images.of(Component::KubeProxy));
        host.is_node().then(image).into_iter().collect()
    }

    /// Its pods mount the directory of the kernel's modules. On a host without its own kernel, the kubelet would create the
    /// directory, and nothing would remove it.
    fn directories(&self, _spec: &Spec) -> Vec<String> {
        vec!["/lib/modules".to_owned()]
    }

    /// The interface of kube-proxy in mode `ipvs`.
    fn interfaces(&self) -> &'static [&'static str] {
        &["kube-ipvs0"]
    }

    fn ports(&self, _spec: &Spec, host: &Host) -> Vec<Port> {
        if host.is_node() { vec![Port::tcp(10256, "kube-proxy")] } else { Vec::new() }
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        if host.is_node() && !inputs.spec.kubernetes.disable_kube_proxy {
            probe.ask(&services::question(inputs.spec));
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        for (host, why) in restart::broken(inputs) {
            let message = format!("the Service of the API does not answer on this node: {why}");
            found.adapted(host, message, "kube-proxy starts again");
        }
        if inputs.spec.kubernetes.proxy_mode != ProxyMode::Ipvs {
            return;
        }
        for (host, facts) in inputs.nodes() {
            let has = |name: &str| facts.features.contains(name) || facts.modules.contains(name);
            if !has("ipvs") && !has("ip_vs") {
                found.error(
                    host,
                    "the kernel has no IPVS",
                    "set spec.kubernetes.proxyMode to iptables or nftables",
                );
            }
        }
    }

    fn manifests(&self, cluster: &Cluster) -> Result<Vec<Manifest>, BuildError> {
        Ok(vec![Manifest {
            name: "kube-proxy",
            note: kubeadm::kube_proxy_documents(cluster),
            file: kubeadm::phase_documents(cluster, cluster.api_host),
            objects: objects(),
            made_by_init: false,
            command: Some(include_str!("apply_kube_proxy.sh")),
        }])
    }

    fn ready(&self, _cluster: &Cluster) -> Vec<Ready> {
        vec![Ready::Workload(Workload {
            namespace: "kube-system",
            path: "daemonset/kube-proxy",
            metrics: None,
        })]
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(restart::tasks(inputs))
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![remove_kube_proxy::task(inputs)]
    }
}

/// The nodes on which kube-proxy restarts in this run.
pub(crate) fn restarted<'a>(inputs: &Inputs<'a>) -> Vec<&'a Host> {
    if inputs.spec.kubernetes.disable_kube_proxy {
        return Vec::new();
    }
    restart::broken(inputs).into_iter().map(|(host, _)| host).collect()
}

/// The objects of kubeadm's add-on (Kubernetes, `cmd/kubeadm/app/phases/addons/proxy`).
fn objects() -> Vec<Object> {
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        Object::new("v1", "ServiceAccount", "kube-system", "kube-proxy"),
        Object::new("v1", "ConfigMap", "kube-system", "kube-proxy"),
        Object::new("apps/v1", "DaemonSet", "kube-system", "kube-proxy"),
        Object::new(rbac, "ClusterRoleBinding", "", "kubeadm:node-proxier"),
        Object::new(rbac, "Role", "kube-system", "kube-proxy"),
        Object::new(rbac, "RoleBinding", "kube-system", "kube-proxy"),
    ]
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use kk_config::ProxyMode;

    use crate::{
        commands::{create_cluster::capabilities, precheck::precheck},
        testing,
    };

    #[tokio::test]
    async fn switched_off_it_needs_nothing_and_finds_nothing() {
        for (off, times) in [(false, 1), (true, 0)] {
            let mut spec = testing::sample("all-in-one.yaml");
            (spec.kubernetes.disable_kube_proxy, spec.kubernetes.proxy_mode) = (off, ProxyMode::Ipvs);
            let directory = tempfile::tempdir().unwrap();
            let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
            let inputs = session.create_inputs(&fresh).await.unwrap();
            let found = precheck(&capabilities(&spec), &inputs);
            let needed = &inputs.requirements;
            let counts = [
                found.iter().filter(|finding| finding.message == "the kernel has no IPVS").count(),
                needed.ports(&spec.hosts[0]).iter().filter(|port| port.program == "kube-proxy").count(),
                needed.images.values().flatten().filter(|(_, image)| image.contains("kube-proxy")).count(),
                needed.manifests.iter().filter(|manifest| manifest.name == "kube-proxy").count(),
                needed.workloads().iter().filter(|workload| workload.path.ends_with("kube-proxy")).count(),
                needed.directories.iter().filter(|path| *path == "/lib/modules").count(),
            ];
            assert_eq!(counts, [times; 6]);
        }
    }

    /// Whether `apply_kube_proxy.sh` restarts the pods if the previous configuration is `there` and kubeadm writes `wanted`.
    /// `killed` is the configuration that a killed run had found.
    fn restarts(there: &str, wanted: &str, killed: Option<&str>) -> bool {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let program = |name: &str, text: &str| testing::program(directory.path(), name, text);
        program("kubectl", "case \"$*\" in *restart*) : >restarted ;; *) cat there ;; esac");
        program("kubeadm", "cat wanted >there");
        fs::write(path("there"), there).unwrap();
        fs::write(path("wanted"), wanted).unwrap();
        if let Some(killed) = killed {
            fs::write(path("kube-proxy.before.kept"), killed).unwrap();
        }
        let here = directory.path().display().to_string();
        let script = include_str!("apply_kube_proxy.sh")
            .replace("/etc/kubernetes/kubekey/kube-proxy.before", &format!("{here}/kube-proxy.before.kept"));
        let status = Command::new("sh")
            .args(["-euc", &format!("kk_do() {{ \"$@\"; }}\n{script}")])
            .current_dir(&directory)
            .env("PATH", format!("{here}:/usr/bin:/bin"))
            .status()
            .unwrap();
        assert!(status.success());
        assert!(!path("kube-proxy.before.kept").exists());
        path("restarted").exists()
    }

    #[test]
    fn kube_proxy_restarts_when_its_configuration_changes() {
        assert!(!restarts("", "new", None), "the first time its pods start with it");
        assert!(!restarts("same", "same", None));
        assert!(restarts("old", "new", None));
        assert!(restarts("new", "new", Some("old")), "a run was killed before the restart");
    }
}
