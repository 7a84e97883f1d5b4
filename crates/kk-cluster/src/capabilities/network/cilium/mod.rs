//! Cilium: an agent on each node and an operator. Helm installs the chart of the project, as an addon of the phase `network`.

mod values;

use std::time::Duration;

use kk_artifact::{CILIUM_REPOSITORY, Component};
use kk_config::{Addon, AddonChart, AddonPhase, ChartSource, Host, Role, Secret, Spec};
use kk_engine::{Facts, ProbeSpec};

use super::check;
use crate::{
    base::{
        findings::Findings,
        requirements::{ImageStage, Port, ProgramStage, Ready, Workload},
        supply::OwnAddon,
    },
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
    },
};

/// The name of the chart and of its release.
pub(super) const NAME: &str = "cilium";
const NAMESPACE: &str = "kube-system";
/// The oldest kernel (Cilium 1.20, "System Requirements").
const OLDEST_KERNEL: (u32, u32) = (5, 10);
/// Kernels of RHEL 8 have what Cilium needs from newer ones (the same page).
const KERNEL_OF_RHEL_8: (u32, u32) = (4, 18);

const WORKLOADS: &[Workload] = &[
    Workload { namespace: NAMESPACE, path: "daemonset/cilium", metrics: None },
    Workload { namespace: NAMESPACE, path: "deployment/cilium-operator", metrics: None },
];

/// Cilium with the values of kk and of the file.
pub(super) struct Cilium;

impl Capability for Cilium {
    fn name(&self) -> &'static str {
        "network"
    }

    fn stage(&self) -> Stage {
        Stage::AddOns
    }

    /// On all control planes, as for addons.
    fn programs(&self, _spec: &Spec, host: &Host) -> Vec<(ProgramStage, Component)> {
        if host.has_role(&Role::ControlPlane) {
            vec![(ProgramStage::Tools, Component::Helm)]
        } else {
            Vec::new()
        }
    }

    fn images(&self, cluster: &Cluster, host: &Host) -> Vec<(ImageStage, String)> {
        if !host.is_node() {
            return Vec::new();
        }
        [Component::Cilium, Component::CiliumOperator]
            .map(|component| (ImageStage::Node, cluster.images.of(component)))
            .to_vec()
    }

    fn ports(&self, spec: &Spec, host: &Host) -> Vec<Port> {
        if !host.is_node() {
            return Vec::new();
        }
        let mut ports = vec![Port::tcp(4240, "cilium health"), Port::tcp(4244, "cilium hubble")];
        if !values::changes_tunnel(spec) {
            ports.push(Port::udp(8472, "cilium vxlan"));
        }
        ports
    }

    /// The links of the agent, and a link for each pod.
    fn interfaces(&self) -> &'static [&'static str] {
        &["cilium*", "lxc*"]
    }

    fn asks(&self, _inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        check::asks(host, probe);
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        check::refuse_another(inputs, NAME, found);
        check::refuse_foreign(inputs, NAME, "05-cilium.conflist", found);
        check::warn_of_other_networks(inputs, NAME, "05-cilium.conflist", found);
        for (host, facts) in inputs.nodes().into_iter().filter(|(_, facts)| is_too_old(facts)) {
            let (major, minor) = OLDEST_KERNEL;
            found.error(
                host,
                format!("the kernel {} is older than {major}.{minor}, which Cilium needs", facts.kernel),
                "use a newer kernel, or set spec.network.plugin to flannel",
            );
        }
    }

    fn ready(&self, _cluster: &Cluster) -> Vec<Ready> {
        WORKLOADS.iter().copied().map(Ready::Workload).collect()
    }
}

/// Whether the kernel of a host is known and too old.
fn is_too_old(facts: &Facts) -> bool {
    let mut numbers = facts.kernel.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    let Some(kernel) = numbers.next().zip(numbers.next()) else { return false };
    kernel < OLDEST_KERNEL && !(kernel == KERNEL_OF_RHEL_8 && facts.kernel.contains(".el8"))
}

/// The addon that installs it.
pub(super) fn addon(cluster: &Cluster) -> OwnAddon {
    let spec = cluster.spec;
    // A mirror has the same chart, so it is not part of its name.
    let repo = CILIUM_REPOSITORY.to_owned();
    let version = cluster.versions.of(Component::Cilium);
    let own = &spec.network.cilium_values;
    let chart = AddonChart {
        source: ChartSource::Repository { repo, name: NAME.to_owned(), version },
        below: None,
        values_file: None,
        values: (!own.is_empty()).then(|| Secret::new(serde_json::Value::Object(own.clone()).to_string())),
        secrets: Vec::new(),
        wait: false,
        is_open: false,
    };
    let addon = Addon {
        name: NAME.to_owned(),
        namespace: Some(NAMESPACE.to_owned()),
        phase: AddonPhase::Network,
        chart: Some(chart),
        manifests: Vec::new(),
        retries: 0,
        delay: Duration::ZERO,
    };
    OwnAddon { addon, values: values::of(cluster).to_string(), workloads: WORKLOADS }
}

#[cfg(test)]
mod tests {
    use kk_config::NetworkPlugin;
    use kk_engine::{Action as _, Facts, FileFact, Plan, SlotKey, actions::File};
    use serde_json::json;

    use super::{NAMESPACE, is_too_old};
    use crate::{
        base::{
            cluster_state::{API, INITIALISED},
            host_layout::{NETWORK_ADDONS, NOTES},
            probed::Probed,
        },
        capabilities::addons::STATE,
        commands::{create_cluster, session::Session},
        testing,
    };

    fn spec() -> kk_config::Spec {
        let mut spec = testing::sample("three-nodes.yaml");
        spec.network.plugin = NetworkPlugin::Cilium;
        spec
    }

    async fn tasks(session: &Session, probed: &Probed) -> Vec<String> {
        let inputs = session.create_inputs(probed).await.unwrap();
        let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
        plan.changes().into_iter().map(|task| format!("{} {}", task.host, task.task)).collect()
    }

    #[test]
    fn old_kernels_are_named_and_unknown_ones_are_not() {
        for (kernel, old) in [
            ("5.10.0-28-amd64", false),
            ("6.1.0", false),
            ("5.4.0-150-generic", true),
            ("4.19.90-2312.1.0.0255.oe2003sp4.x86_64", true),
            ("4.18.0-553.el8_10.x86_64", false),
            ("4.18.0-80.custom", true),
            ("", false),
        ] {
            let facts = Facts { kernel: kernel.to_owned(), ..Facts::default() };
            assert_eq!(is_too_old(&facts), old, "{kernel}");
        }
    }

    #[tokio::test]
    async fn helm_installs_the_chart_on_a_control_plane_before_nodes_are_ready() {
        let spec = spec();
        let directory = tempfile::tempdir().unwrap();
        let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
        let tasks = tasks(&session, &fresh).await;
        for task in ["node1 install_addon_cilium", "node1 upload_node_tools", "node1 wait_until_ready"] {
            assert!(tasks.contains(&task.to_owned()), "{task}: {tasks:?}");
        }
        assert!(!tasks.iter().any(|task| task.contains("flannel")), "{tasks:?}");
        let inputs = session.create_inputs(&fresh).await.unwrap();
        let pipeline = create_cluster::pipeline(&inputs).unwrap();
        let all = || pipeline.modules.iter().flat_map(|module| &module.tasks);
        let wait = all().find(|task| task.name == "wait_until_ready").unwrap();
        let needs: Vec<String> = wait.hosts["node1"].needs.iter().map(SlotKey::to_string).collect();
        assert!(needs.iter().any(|slot| slot.contains("network_addon(cilium)")), "{needs:?}");
    }

    #[tokio::test]
    async fn a_bundle_has_its_chart_its_images_and_helm() {
        let mut spec = spec();
        spec.components.cilium = Some("1.20.1".into());
        spec.registry.private_registry = Some("hub.local".into());
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec, directory.path());
        let manifest = session.manifest(&[kk_config::Arch::Amd64].into()).await.unwrap();
        let charts: Vec<_> = manifest.charts.iter().map(ToString::to_string).collect();
        assert_eq!(charts, ["cilium 1.20.1 of https://helm.cilium.io"]);
        assert!(manifest.components.contains_key("helm"));
        for image in ["quay.io/cilium/cilium:v1.20.1", "quay.io/cilium/operator-generic:v1.20.1"] {
            assert!(manifest.images.iter().any(|one| one.to_string() == image), "{image}");
        }
        assert!(!manifest.images.iter().any(|one| one.to_string().contains("flannel")));
    }

    #[tokio::test]
    async fn a_mirror_does_not_change_the_release() {
        let mut spec = spec();
        let directory = tempfile::tempdir().unwrap();
        let note = async |spec: &kk_config::Spec| {
            let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(spec));
            session.create_inputs(&fresh).await.unwrap().addons[0].note()
        };
        let direct = note(&spec).await;
        spec.download.mirror = Some("https://files.example.com".into());
        assert_eq!(note(&spec).await, direct);
    }

    /// The control plane reports these workloads and this release, and has the notes of an earlier create.
    async fn running(session: &Session, workloads: &[&str], revision: u32) -> Probed {
        let mut probed = testing::fresh(session.spec());
        let (note, files) = {
            let inputs = session.create_inputs(&probed).await.unwrap();
            let pipeline = create_cluster::pipeline(&inputs).unwrap();
            let of_addons = pipeline.modules.into_iter().filter(|module| module.name == "network-addons");
            let mut files = kk_engine::ProbeSpec::default();
            for action in of_addons
                .flat_map(|module| module.tasks)
                .flat_map(|task| task.hosts.into_values())
                .flat_map(|work| work.actions)
            {
                action.asks(&mut files);
            }
            (inputs.addons[0].note(), files.files)
        };
        assert!(
            files.contains(NETWORK_ADDONS) && files.contains(&format!("{NOTES}/cilium.yaml")),
            "{files:?}"
        );
        let facts = probed.facts.get_mut("node1").unwrap();
        facts.reply(&INITIALISED, "yes");
        let line = |name: &&str| format!("{name}\t1\t1\n");
        facts.reply(&API, workloads.iter().map(line).collect::<String>() + "end\n");
        facts.reply(
            &STATE,
            format!("Note\tcilium\t{note}Installed\tcilium\t2\nRelease\t{NAMESPACE}/cilium\t{revision}\tdeployed\nend\n"),
        );
        probed
    }

    #[tokio::test]
    async fn a_release_or_a_workload_that_is_lost_is_installed_again() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        let (agent, operator) = ("DaemonSet\tkube-system/cilium", "Deployment\tkube-system/cilium-operator");
        for (workloads, revision, again) in [
            (&[agent, operator][..], 2, false),
            (&[agent, operator], 1, true),
            (&[operator], 2, true),
            (&[agent], 2, true),
        ] {
            let probed = running(&session, workloads, revision).await;
            let inputs = session.create_inputs(&probed).await.unwrap();
            let needed = crate::capabilities::addons::needed(&inputs).count();
            assert_eq!(needed == 1, again, "{workloads:?} {revision}");
        }
    }

    #[tokio::test]
    async fn a_running_cluster_keeps_it() {
        let mut spec = spec();
        let directory = tempfile::tempdir().unwrap();
        spec.network.plugin = NetworkPlugin::None;
        let mut probed = testing::fresh(&spec);
        let note = format!("{NOTES}/cilium.yaml");
        assert!(File::text(note.as_str(), "").check(&probed.facts["node1"]).is_needed());
        probed.facts.get_mut("node1").unwrap().files.insert(note, FileFact::default());
        let session = testing::session(spec, directory.path());
        let found = session.plan_create(&probed).await.unwrap().findings;
        let words = "the network plugin of the cluster is cilium, but the file sets none";
        assert!(found.iter().any(|one| one.message == words), "{found:?}");
    }

    #[tokio::test]
    async fn values_follow_the_file() {
        let mut spec = spec();
        let values = async |spec: &kk_config::Spec| {
            let directory = tempfile::tempdir().unwrap();
            let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(spec));
            let inputs = session.create_inputs(&fresh).await.unwrap();
            let text = inputs.addons[0].values.clone().unwrap();
            serde_json::from_slice::<serde_json::Value>(&text).unwrap()
        };
        insta::assert_snapshot!("values", serde_json::to_string_pretty(&values(&spec).await).unwrap());
        spec.kubernetes.disable_kube_proxy = true;
        spec.registry.private_registry = Some("hub.local:5000".into());
        spec.registry.namespace_override = Some("k8s".into());
        spec.network.pods_v6 = Some("fd00:40::/56".parse().unwrap());
        let changed = values(&spec).await;
        assert_eq!(changed["kubeProxyReplacement"], true);
        assert_eq!(changed["ipv6"], json!({"enabled": true}));
        assert_eq!(changed["image"]["override"], "hub.local:5000/k8s/cilium:v1.20.2");
        assert_eq!(changed["operator"]["image"]["override"], "hub.local:5000/k8s/operator-generic:v1.20.2");
    }
}
