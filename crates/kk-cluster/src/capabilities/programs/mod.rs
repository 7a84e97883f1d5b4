//! Binaries, which are downloaded once to the control machine and then uploaded to the hosts that lack them.

mod download;
mod fetch;
mod upload_kube_programs;
mod upload_node_tools;
mod upload_programs;
mod upload_runtime;

use std::time::Duration;

use kk_artifact::Component;
use kk_config::Host;
use kk_engine::{Action, Facts, ProbeSpec, SlotKey, Task};

use crate::{
    base::{error::BuildError, slots},
    capabilities::kubelet,
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
    },
};
pub(crate) use upload_programs::UploadPrograms;

/// Time limit for an upload; it allows for slow links.
pub(crate) const UPLOAD_TIMEOUT: Duration = Duration::from_hours(1);

/// The binaries that the other capabilities need.
pub(crate) struct Programs;

impl Capability for Programs {
    fn name(&self) -> &'static str {
        "programs"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn asks(&self, _inputs: &Inputs, _host: &Host, probe: &mut ProbeSpec) {
        probe.files.extend(["/usr/local/bin/*", "/opt/cni/bin/*"].map(str::to_owned));
        probe.disks.insert("/usr/local/bin".to_owned());
    }

    /// Uploads are in the order of need: binaries that must start first are uploaded first.
    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        let mut tasks = download::tasks(inputs);
        tasks.push(upload_runtime::task(inputs));
        tasks.push(upload_kube_programs::task(inputs));
        tasks.push(upload_node_tools::task(inputs));
        Ok(tasks)
    }
}

/// Downloads to the control machine only.
pub(crate) fn download(inputs: &Inputs) -> Vec<Task> {
    download::tasks(inputs)
}

/// Replaces the binaries of a running component in the host's turn, by the task that restarts it, so that a binary that does not
/// start affects only one host. Adds the upload to the actions of that task, and returns the slot to wait for. `None` if nothing
/// is replaced.
pub(crate) fn replace_in_turn(
    inputs: &Inputs,
    host: &Host,
    component: Component,
    actions: &mut Vec<Box<dyn Action>>,
) -> Option<SlotKey> {
    if !waits_for_turn(inputs, host, component) || !changes(inputs, host, component) {
        return None;
    }
    actions.push(Box::new(UploadPrograms::new(inputs, host, &[component])));
    Some(slots::fetched_slot(component, inputs.arch(host)).key())
}

/// Whether a component is uploaded in its turn, not with the binaries whose upload restarts nothing. containerd starts runc and
/// the CNI plugins for each container, so they belong to its turn. A kubelet that crashes would restart as another version, so
/// its binary waits, too.
fn waits_for_turn(inputs: &Inputs, host: &Host, component: Component) -> bool {
    let runtime = inputs.runtime;
    let unit = match component {
        Component::Etcd => "etcd",
        of_runtime if runtime.components.contains(&of_runtime) => runtime.unit,
        Component::Kubelet => {
            return inputs.facts(host).is_some_and(|facts| kubelet::changes_in_turn(inputs, host, facts));
        }
        _ => return false,
    };
    let is_active =
        |facts: &Facts| facts.units.get(&format!("{unit}.service")).is_some_and(|unit| unit.active);
    inputs.facts(host).is_some_and(is_active)
}

/// Whether this run replaces the binaries of a component on a host.
pub(crate) fn changes(inputs: &Inputs, host: &Host, component: Component) -> bool {
    inputs
        .facts(host)
        .is_some_and(|facts| UploadPrograms::new(inputs, host, &[component]).check(facts).is_needed())
}

#[cfg(test)]
mod tests {
    use kk_engine::{Change, FileFact, UnitFact};

    use super::*;
    use crate::{
        capabilities::{etcd::Etcd, nodes::Nodes, runtime},
        testing,
    };

    /// A cluster with other binaries than the file specifies. Either etcd, containerd and the kubelets all run, or none of them
    /// does.
    #[tokio::test]
    async fn programs_that_run_are_replaced_by_the_task_that_starts_them_again() {
        let spec = testing::sample("three-nodes.yaml");
        for runs in [false, true] {
            let (mut probed, directory) = (testing::fresh(&spec), tempfile::tempdir().unwrap());
            for facts in probed.facts.values_mut() {
                let file = FileFact { sha256: "same".into(), ..FileFact::default() };
                for path in ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"] {
                    facts.files.insert(path.into(), file.clone());
                }
                for unit in ["etcd.service", "containerd.service", "kubelet.service"] {
                    facts.units.insert(unit.into(), UnitFact { active: runs, ..UnitFact::default() });
                }
            }
            let session = testing::session(spec.clone(), directory.path());
            let inputs = session.create_inputs(&probed).await.unwrap();
            let mut tasks = Programs.install(&inputs).unwrap();
            tasks.extend(Etcd.install(&inputs).unwrap());
            tasks.extend(runtime::capability(&spec).install(&inputs).unwrap());
            tasks.extend(Nodes.install(&inputs).unwrap());
            let uploads = |name: &str, component: &str| -> Vec<bool> {
                let task = tasks.iter().find(|task| task.name == name).unwrap();
                let uploads = |(host, work): (&String, &kk_engine::HostWork)| {
                    let lines =
                        work.actions.iter().filter_map(|action| match action.check(&probed.facts[host]) {
                            Change::Needed(lines) => Some(lines.concat()),
                            Change::None => None,
                        });
                    lines.collect::<String>().contains(&format!("upload {component} "))
                };
                task.hosts.iter().map(uploads).collect()
            };
            for (component, upload, start) in [
                ("etcd", "upload_runtime", "start_etcd"),
                ("containerd", "upload_runtime", "start_containerd"),
                ("runc", "upload_runtime", "start_containerd"),
                ("cni-plugins", "upload_node_tools", "start_containerd"),
                ("kubelet", "upload_kube_programs", "update_kubelet_settings"),
            ] {
                assert_eq!(uploads(upload, component), [!runs; 3], "{component}");
                assert_eq!(uploads(start, component), [runs; 3], "{component}");
            }
            // The current binary cannot start with the settings of another version.
            for (start, settings) in [
                ("start_etcd", "write /etc/etcd.env"),
                ("start_containerd", "write /etc/containerd/config.toml"),
                ("update_kubelet_settings", "write /etc/systemd/system/kubelet.service"),
            ] {
                let task = tasks.iter().find(|task| task.name == start).unwrap();
                for (host, work) in &task.hosts {
                    let lines: Vec<String> = work
                        .actions
                        .iter()
                        .map(|action| format!("{:?}", action.check(&probed.facts[host])))
                        .collect();
                    let at = |text: &str| lines.iter().position(|line| line.contains(text));
                    assert_eq!(
                        (at("upload "), at(settings).is_some()),
                        (runs.then_some(0), runs),
                        "{lines:?}"
                    );
                }
            }
            // Only binaries that users start have no turn.
            assert_eq!(uploads("upload_runtime", "crictl"), [true; 3]);
            assert_eq!(uploads("upload_kube_programs", "kubeadm"), [true; 3]);
        }
    }
}
