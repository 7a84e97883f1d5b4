//! `kk upgrade`: one minor version after the other, and one turn of nodes after the other. Each turn has its own plan.

use std::collections::BTreeSet;

use kk_artifact::Component;
use kk_config::{ComponentKind, Host, KubeVersion, Role};
use kk_engine::{CONTROL, Facts, Module, Pipeline, Task};

use crate::commands::create_cluster::{self, Staged};
use crate::{
    base::{error::BuildError, findings::Findings, slots},
    capabilities::{control_plane, etcd, images::Images, nodes::turn, programs, versions::of_any_version},
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
        options::Drain,
    },
};

/// The versions through which a cluster is upgraded, including the target: no minor version may be skipped (Kubernetes, "Version
/// Skew Policy"). `known`: patch versions to choose from for the minor versions in between.
///
/// # Errors
/// A downgrade, or a minor version without a known patch version.
pub(crate) fn hops(
    from: KubeVersion,
    to: KubeVersion,
    known: &[KubeVersion],
) -> Result<Vec<KubeVersion>, BuildError> {
    if to < from {
        return Err(BuildError::config(
            format!("the cluster has Kubernetes {from}, and {to} is older"),
            "Kubernetes cannot be downgraded: specify a newer version",
        ));
    }
    let newest = |minor: u32| {
        let of_minor = known.iter().filter(|version| version.major == to.major && version.minor == minor);
        of_minor.max().copied().ok_or_else(|| {
            BuildError::config(
                format!(
                    "kk has no checksums of a Kubernetes v{}.{minor}, which the upgrade to {to} needs on \
                     its way",
                    to.major
                ),
                "add the checksums of one to the file in spec.download.catalogue",
            )
        })
    };
    let mut hops = (from.minor + 1..to.minor).map(newest).collect::<Result<Vec<_>, _>>()?;
    hops.push(to);
    Ok(hops)
}

/// Refuses an upgrade in which a control plane would get an older version than it has. This happens if a run that ended early
/// left other nodes behind.
///
/// # Errors
/// A control plane has a newer version than one in `hops`.
pub(crate) fn refuse_older(inputs: &Inputs, hops: &[KubeVersion]) -> Result<(), BuildError> {
    let Some((newest, host)) = control_plane::newest(inputs) else { return Ok(()) };
    let Some(hop) = hops.iter().find(|hop| **hop < newest) else { return Ok(()) };
    let hint = if hops.last().is_some_and(|target| *target < newest) {
        format!(
            "Kubernetes cannot be downgraded: run kk upgrade with --with-kubernetes {newest}, or with \
             spec.kubernetes.version: {newest} in the file, to upgrade the other nodes"
        )
    } else {
        format!(
            "other nodes are so far behind that the upgrade needs {hop} first: upgrade them to its minor \
             version by hand"
        )
    };
    Err(BuildError::config(
        format!("the control plane {} has Kubernetes {newest}, and {hop} is older", host.name),
        hint,
    ))
}

/// The version from which the upgrade continues: the oldest version of the file's nodes. A run that ended early may have left
/// them with two versions. Nodes outside the file do not count, because kk does not manage them.
///
/// # Errors
/// A node whose version cannot be read.
pub(crate) fn oldest(inputs: &Inputs) -> Result<Option<KubeVersion>, BuildError> {
    let nodes =
        inputs.spec.nodes().into_iter().filter_map(|host| inputs.state.nodes.get_key_value(&host.name));
    let version = |(name, node): (&String, &crate::base::cluster_state::Node)| {
        node.version.parse::<KubeVersion>().map_err(|_| {
            BuildError::config(
                format!("node {name} reports version {:?}, which is not a Kubernetes version", node.version),
                "check its kubelet: kubelet --version",
            )
        })
    };
    let versions: Vec<KubeVersion> = nodes.map(version).collect::<Result<_, _>>()?;
    Ok(versions.into_iter().min())
}

/// The hosts in the order of their turns: etcd members that are not nodes, the control plane whose API is used, the other control
/// planes, workers.
pub(crate) fn order<'a>(inputs: &Inputs<'a>) -> Vec<&'a Host> {
    let rank = |host: &&Host| match host {
        host if !host.is_node() => 0,
        host if host.name == inputs.api_host.name => 1,
        host if host.has_role(&Role::ControlPlane) => 2,
        _ => 3,
    };
    let mut hosts: Vec<_> = inputs.spec.hosts.iter().filter(|host| inputs.facts(host).is_some()).collect();
    hosts.sort_by_key(rank);
    hosts
}

/// The components except Kubernetes that get another version than the cluster has, as `etcd 3.6.12 -> 3.6.14`.
pub(crate) fn other_components(inputs: &Inputs) -> Vec<String> {
    let recorded = of_any_version(&inputs.presence, inputs.api_host, inputs.spec).unwrap_or_default();
    let images = || inputs.requirements.images.values().flatten().map(|(_, name)| name);
    let is_used = |component: &Component| match inputs.versions.image(*component) {
        Some(_) => images().any(|name| *name == inputs.images.of(*component)),
        None if component.kind() == ComponentKind::Manifest => {
            inputs.published.components().any(|published| published == *component)
        }
        None => inputs.wanted_programs().iter().any(|(program, _)| program == component),
    };
    let step = |component: Component| {
        let (there, wanted) = (recorded.of_component(component)?, inputs.versions.of(component));
        (there != wanted).then(|| format!("{component} {there} -> {wanted}"))
    };
    Component::versioned().filter(is_used).filter_map(step).collect()
}

/// Conditions for an upgrade, in addition to the conditions for a create.
pub(crate) fn findings(inputs: &Inputs, found: &mut Findings) {
    let first = "run kk create cluster with the current version of the cluster first: it repairs it";
    if !inputs.is_initialised() {
        return found.error(None, "there is no running cluster", "run kk create cluster first");
    }
    if !inputs.state.answered {
        return found.error(inputs.api_host, "its API does not answer", first);
    }
    for host in inputs.spec.nodes() {
        match inputs.facts(host) {
            None => found.error(
                host,
                "it does not answer, and would not be upgraded",
                "repair it, or remove it (kk delete node)",
            ),
            Some(_) if !inputs.has_joined(host) => {
                found.error(host, "it is not in the cluster", "kk add nodes joins it");
            }
            Some(facts) if !inputs.is_ready(host) && !turn::is_begun(facts) => {
                found.error(host, "it is not Ready", first);
            }
            Some(_) => {}
        }
    }
    // A killed run may have left a member that is still starting: no other member is restarted before it is healthy.
    for host in inputs.spec.etcd_hosts() {
        let is_sick = |facts: &Facts| etcd::is_healthy(facts) != Some(true) && !turn::is_begun(facts);
        if inputs.facts(host).map_or(!host.is_node(), is_sick) {
            found.warning(
                host,
                "its member of etcd is not healthy, or does not report its health",
                "no other member is restarted before it is healthy; kk create cluster with the current \
                 version of the cluster repairs it",
            );
        }
    }
}

/// The plan for the hosts of one turn, while the other hosts keep running: all tasks of a create except add-ons. A node that
/// changes is drained before the change and accepts pods again after it.
pub(crate) fn turn(inputs: &Inputs, names: &BTreeSet<String>, how: &Drain) -> Result<Turn, BuildError> {
    let mut modules = TurnModules::of(inputs)?;
    let drained: Vec<_> = inputs
        .nodes()
        .into_iter()
        .filter(|(host, facts)| {
            let waits = turn::is_begun(facts) || modules.change(host, facts);
            names.contains(&host.name) && waits && turn::drains(inputs, host, facts)
        })
        .map(|(host, _)| host)
        .collect();
    let all = modules.on_hosts.iter_mut().chain(&mut modules.verification);
    for task in all.flat_map(|module| &mut module.tasks) {
        after_drain(task, &drained);
    }
    let begin = drained.iter().flat_map(|host| turn::begin(inputs, host, how)).collect();
    let mut pipeline = modules.pipeline(inputs, &drained);
    pipeline.modules.insert(0, Module::new("drain", begin));
    Ok(Turn { pipeline, drained: drained.into_iter().map(|host| host.name.clone()).collect() })
}

/// The turn of some hosts.
pub(crate) struct Turn {
    pub pipeline: Pipeline,
    /// The nodes whose pods are moved first, by name.
    pub drained: BTreeSet<String>,
}

/// The modules of a create, without add-ons.
struct TurnModules {
    on_hosts: Vec<Module>,
    verification: Vec<Module>,
}

impl TurnModules {
    fn of(inputs: &Inputs) -> Result<Self, BuildError> {
        let (mut on_hosts, mut verification) = (Vec::new(), Vec::new());
        for Staged { stage, module } in create_cluster::modules(inputs)? {
            match stage {
                Stage::Hosts => on_hosts.push(module),
                Stage::AddOns => {}
                Stage::Verification => verification.push(module),
            }
        }
        Ok(Self { on_hosts, verification })
    }

    /// Whether the modules change a host, not counting the verification.
    fn change(&self, host: &Host, facts: &Facts) -> bool {
        let tasks = self.on_hosts.iter().flat_map(|module| &module.tasks);
        let actions = tasks.filter_map(|task| task.hosts.get(&host.name)).flat_map(|work| &work.actions);
        actions.into_iter().any(|action| action.check(facts).is_needed())
    }

    /// The turns of these hosts end before the verification.
    fn pipeline(self, inputs: &Inputs, in_turn: &[&Host]) -> Pipeline {
        let end = in_turn.iter().flat_map(|host| turn::end(inputs, host)).collect();
        let mut modules = self.on_hosts;
        modules.push(Module::new("turn", end));
        modules.extend(self.verification);
        Pipeline::new(modules).outside(inputs.outside().map(|host| host.name.clone()))
    }
}

/// Downloads the binaries of this version to the control machine, and brings its images to the nodes, because an add-on of a new
/// version starts on all nodes, before and after their turns. Nothing is started or stopped. If an earlier run ended in a host's
/// turn, its runtime may not answer; such a host gets the missing images in its turn.
pub(crate) fn fetch(inputs: &Inputs) -> Result<Pipeline, BuildError> {
    let mut pipeline = create_cluster::pipeline(inputs)?;
    pipeline.modules.retain(|module| module.name == Images.name());
    let in_turn: Vec<_> = inputs.nodes().into_iter().filter(|(_, facts)| turn::is_begun(facts)).collect();
    for task in pipeline.modules.iter_mut().flat_map(|module| &mut module.tasks) {
        task.hosts.retain(|name, _| !in_turn.iter().any(|(host, _)| host.name == *name));
    }
    pipeline.modules.insert(0, Module::new("programs", programs::download(inputs)));
    // The runtimes run already.
    Ok(pipeline.outside(inputs.spec.hosts.iter().map(|host| host.name.clone())))
}

/// Rolls the hosts whose turn failed back to the version of these inputs. Their pods have moved already, or could not move. The
/// turns of other hosts are over or still to come, so nothing changes on them.
pub(crate) fn put_back(inputs: &Inputs) -> Result<Pipeline, BuildError> {
    let mut modules = TurnModules::of(inputs)?;
    let hosts: Vec<_> = inputs.hosts().into_iter().map(|(host, _)| host.name.as_str()).collect();
    for task in modules.on_hosts.iter_mut().flat_map(|module| &mut module.tasks) {
        // This task only reads from another control plane.
        if task.name == control_plane::RESTORE_SHARED_FILES {
            continue;
        }
        let others =
            task.hosts.iter_mut().filter(|(host, _)| *host != CONTROL && !hosts.contains(&host.as_str()));
        others.for_each(|(_, work)| work.actions.clear());
    }
    let begun = inputs.nodes().into_iter().filter(|(_, facts)| turn::is_begun(facts));
    let begun: Vec<_> = begun.map(|(host, _)| host).collect();
    Ok(modules.pipeline(inputs, &begun))
}

/// kubeadm and kubectl are uploaded while pods move, because no running component uses them. Binaries of running components are
/// replaced after the drain.
fn after_drain(task: &mut Task, drained: &[&Host]) {
    if task.background {
        return;
    }
    for host in drained {
        if let Some(work) = task.hosts.get_mut(&host.name) {
            work.needs.push(slots::drained_slot(&host.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kk_config::{NEWEST_MINOR, OLDEST_MINOR};
    use kk_engine::{FileFact, PlannedTask, Severity};

    use super::*;
    use crate::{
        base::host_layout::UPGRADING,
        capabilities::etcd::HEALTHY,
        commands::{
            add_nodes::tests::{ANSWERED, probed, spec},
            session::Create,
        },
        testing,
    };

    fn version(text: &str) -> KubeVersion {
        text.parse().unwrap()
    }

    #[test]
    fn every_minor_version_is_a_hop_with_its_newest_known_patch() {
        let patches = (OLDEST_MINOR..=NEWEST_MINOR).flat_map(|minor| [0, 2, 5].map(|patch| (minor, patch)));
        let known: Vec<_> = patches.map(|(minor, patch)| KubeVersion { major: 1, minor, patch }).collect();
        for minor in OLDEST_MINOR..NEWEST_MINOR - 1 {
            let of = |minor, patch| KubeVersion { major: 1, minor, patch };
            let way = hops(of(minor, 1), of(minor + 2, 1), &known).unwrap();
            assert_eq!(way, [of(minor + 1, 5), of(minor + 2, 1)]);
        }
        for (from, to, way) in [
            ("v1.36.4", "v1.37.1", &["v1.37.1"][..]),
            ("v1.36.2", "v1.36.5", &["v1.36.5"]),
            ("v1.36.4", "v1.36.4", &["v1.36.4"]),
            ("v1.34.9", "v1.37.0", &["v1.35.5", "v1.36.5", "v1.37.0"]),
        ] {
            let wanted: Vec<_> = way.iter().map(|text| version(text)).collect();
            assert_eq!(hops(version(from), version(to), &known).unwrap(), wanted, "{from} {to}");
        }
        let error = hops(version("v1.36.4"), version("v1.36.3"), &known).unwrap_err();
        assert!(error.to_string().contains("v1.36.3 is older"), "{error}");
        let error = hops(version("v1.35.0"), version("v1.37.0"), &known[..3]).unwrap_err();
        assert!(error.to_string().contains("kk has no checksums of a Kubernetes v1.36"), "{error}");
    }

    /// The versions of the upgrade that these tests plan, whatever the default version is.
    const FROM: &str = "v1.36.4";
    const TO: &str = "v1.37.1";

    /// The nodes n1 and n2 at [`FROM`], as the API returns them. n2 has these taints.
    fn nodes(taints: &str) -> String {
        format!("Node\tn1\tTrue\t{FROM}\t\t\t\nNode\tn2\tTrue\t{FROM}\t\t{taints}\t\n")
    }

    /// The turn of these hosts in an upgrade to [`TO`]. n2 has the taints `taints`.
    async fn turn_of(names: &[&str], taints: &str, mark: bool) -> Create {
        let directory = tempfile::tempdir().unwrap();
        let before = testing::session(two_nodes(FROM), directory.path());
        let mut probed = probed(&before, Some(&(nodes(taints) + ANSWERED))).await;
        probed.facts.get_mut("n1").unwrap().reply(&HEALTHY, "yes");
        if mark {
            let n2 = probed.facts.get_mut("n2").unwrap();
            n2.files.insert(UPGRADING.into(), FileFact::default());
        }
        let session = testing::session(two_nodes(TO), directory.path());
        let how = Drain { force: false, timeout: Duration::from_mins(1) };
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        session.plan_turn(&probed, names, &how).await.unwrap()
    }

    fn two_nodes(version: &str) -> kk_config::Spec {
        let mut spec = spec();
        spec.hosts.truncate(2);
        for host in ["n3", "n4"] {
            assert!(!spec.hosts.iter().any(|known| known.name == host));
        }
        spec.kubernetes.version = self::version(version);
        spec
    }

    fn names(tasks: &[PlannedTask]) -> Vec<String> {
        tasks.iter().map(|task| format!("{} {}", task.host, task.task)).collect()
    }

    fn position(tasks: &[String], task: &str) -> usize {
        tasks.iter().position(|one| one == task).unwrap_or_else(|| panic!("no {task} in {tasks:#?}"))
    }

    #[tokio::test]
    async fn a_node_is_drained_before_its_first_change_and_takes_pods_after_its_last() {
        let turn = turn_of(&["n2"], "", false).await;
        let errors = turn.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let errors: Vec<_> = errors.filter(|finding| !finding.message.contains("cannot reach")).collect();
        assert!(errors.is_empty(), "{errors:?}");
        let tasks = names(&turn.plan.changes());
        let order =
            ["n2 begin_turn_n2", "n2 drain_n2", "n2 start_kubelet", "n2 uncordon_n2", "n2 end_turn_n2"];
        let positions: Vec<_> = order.iter().map(|task| position(&tasks, task)).collect();
        assert!(positions.is_sorted(), "{tasks:#?}");
        assert!(!tasks.iter().any(|task| task.contains("kube_proxy") || task.contains("apply_manifests")));
    }

    #[tokio::test]
    async fn programs_come_to_this_machine_and_images_to_the_nodes_before_any_turn() {
        let directory = tempfile::tempdir().unwrap();
        let before = testing::session(two_nodes(FROM), directory.path());
        let probed = probed(&before, Some(&(nodes("") + ANSWERED))).await;
        let fetch = testing::session(two_nodes(TO), directory.path()).plan_fetch(&probed).await.unwrap();
        let tasks = names(&fetch.plan.changes());
        for program in ["kubeadm", "kubelet", "kubectl"] {
            position(&tasks, &format!("control download_{program}"));
        }
        for task in ["n1 pull_control_plane_images", "n1 pull_node_images", "n2 pull_node_images"] {
            position(&tasks, task);
        }
        let travels = |task: &String| task.starts_with("control download_") || task.contains(" pull_");
        assert!(tasks.iter().all(travels), "{tasks:#?}");

        // In its turn, a host may have no runtime.
        let mut begun = probed;
        begun.facts.get_mut("n2").unwrap().files.insert(UPGRADING.into(), FileFact::default());
        let fetch = testing::session(two_nodes(TO), directory.path()).plan_fetch(&begun).await.unwrap();
        let tasks = names(&fetch.plan.changes());
        position(&tasks, "n1 pull_node_images");
        assert!(!tasks.iter().any(|task| task.starts_with("n2 ")), "{tasks:#?}");
    }

    #[tokio::test]
    async fn a_control_plane_gets_its_parts_before_its_kubelet() {
        let tasks = names(&turn_of(&["n1"], "", false).await.plan.changes());
        let order =
            ["drain_n1", "publish_settings", "apply_changed_settings", "start_kubelet", "uncordon_n1"];
        let positions: Vec<_> = order.iter().map(|task| position(&tasks, &format!("n1 {task}"))).collect();
        assert!(positions.is_sorted(), "{tasks:#?}");
        assert!(!tasks.iter().any(|task| task.starts_with("n2") && !task.ends_with("write_hosts_block")));
    }

    #[tokio::test]
    async fn a_node_whose_turn_has_failed_is_put_back_without_another_drain() {
        let (newer, session) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let newer = testing::session(two_nodes(TO), newer.path());
        let session = testing::session(two_nodes(FROM), session.path());
        let nodes = "Node\tn1\tTrue\tv1.37.1\t\t\t\nNode\tn2\tFalse\tv1.37.1\t\t\t\n";
        let mut probed = probed(&newer, Some(&(nodes.to_owned() + ANSWERED))).await;
        probed.facts.get_mut("n2").unwrap().files.insert(UPGRADING.into(), FileFact::default());
        let plan = session.plan_put_back(&probed, BTreeSet::from(["n2".to_owned()])).await.unwrap();
        let tasks = names(&plan.plan.changes());
        for (of, word) in
            [("n2", "drain_"), ("n2", "begin_turn"), ("n1", "publish_settings"), ("n1", "apply_changed")]
        {
            assert!(!tasks.iter().any(|task| task.starts_with(of) && task.contains(word)), "{tasks:#?}");
        }
        let order = ["n2 start_kubelet", "n2 uncordon_n2", "n2 end_turn_n2"];
        let positions: Vec<_> = order.iter().map(|task| position(&tasks, task)).collect();
        assert!(positions.is_sorted(), "{tasks:#?}");
    }

    #[tokio::test]
    async fn a_node_that_somebody_has_cordoned_stays_so_and_one_that_was_left_in_its_turn_does_not() {
        let cordoned = "node.kubernetes.io/unschedulable:NoSchedule";
        for (taints, mark, drained) in [(cordoned, false, false), (cordoned, true, true), ("", false, true)] {
            let tasks = names(&turn_of(&["n2"], taints, mark).await.plan.changes());
            assert_eq!(tasks.contains(&"n2 drain_n2".to_owned()), drained, "{taints} {mark}");
            assert_eq!(tasks.contains(&"n2 uncordon_n2".to_owned()), drained, "{taints} {mark}");
        }
    }
}
