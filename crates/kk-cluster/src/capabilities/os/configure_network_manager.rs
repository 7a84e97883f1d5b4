//! Keep `NetworkManager` away from the interfaces of pods.

use kk_engine::{
    Action, HostWork, Task,
    actions::{File, Unit, any_needed},
};

use crate::model::inputs::Inputs;

/// The drop-in.
const PATH: &str = "/etc/NetworkManager/conf.d/99-kubekey.conf";
/// The unit.
pub(super) const UNIT: &str = "NetworkManager.service";

/// `NetworkManager` would remove addresses and routes of these interfaces. The file lists them before they exist. `+=` keeps the
/// interfaces that the administrator listed.
fn text(interfaces: &[&str]) -> String {
    let names: Vec<String> = interfaces.iter().map(|name| format!("interface-name:{name}")).collect();
    format!(
        "# Written by kk. Changes made here are replaced by the next run.\n[keyfile]\nunmanaged-devices+={}\n",
        names.join(";")
    )
}

/// Applies to nodes on which `NetworkManager` runs.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("configure_network_manager", "Configure NetworkManager");
    for (host, facts) in inputs.nodes() {
        if !facts.units.get(UNIT).is_some_and(|unit| unit.active) {
            continue;
        }
        let mut actions: Vec<Box<dyn Action>> =
            vec![Box::new(File::text(PATH, text(&inputs.requirements.interfaces)))];
        let reload = Unit::started(UNIT).reload().force_restart(any_needed(&actions, facts));
        actions.push(Box::new(reload));
        task = task.on(&host.name, HostWork::new(actions));
    }
    task
}

/// Requests the facts for the task. The pipeline that is built before the probe does not contain the task, so it cannot request
/// them.
pub(super) fn asks(probe: &mut kk_engine::ProbeSpec) {
    File::text(PATH, "").asks(probe);
    probe.units.insert(UNIT.to_owned());
}

#[cfg(test)]
mod tests {
    use kk_config::NetworkPlugin;

    use crate::testing;

    #[tokio::test]
    async fn the_interfaces_of_the_plugin_of_the_file_are_named() {
        for (plugin, named) in [
            (None, "kube-ipvs0 cni0 flannel* veth* nodelocaldns"),
            (
                Some(NetworkPlugin::None),
                "kube-ipvs0 cni0 flannel* veth* cali* tunl* vxlan.calico cilium* lxc* nodelocaldns",
            ),
        ] {
            let mut spec = testing::sample("all-in-one.yaml");
            spec.network.plugin = plugin.unwrap_or(spec.network.plugin);
            let directory = tempfile::tempdir().unwrap();
            let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
            let inputs = session.create_inputs(&fresh).await.unwrap();
            let text = super::text(&inputs.requirements.interfaces);
            let list = text.trim_end().split_once("unmanaged-devices+=").unwrap().1;
            let wanted: Vec<_> = named.split(' ').map(|name| format!("interface-name:{name}")).collect();
            assert_eq!(list, wanted.join(";"));
        }
    }
}
