//! Keep `NetworkManager` away from the interfaces of pods.

use kk_engine::{
    Action, HostWork, Task,
    actions::{File, Unit, any_needed},
};

use crate::inputs::Inputs;

/// The drop-in.
const PATH: &str = "/etc/NetworkManager/conf.d/99-kubekey.conf";
/// The unit.
pub(super) const UNIT: &str = "NetworkManager.service";

/// It would take away their addresses and routes. `+=` leaves what the administrator has named.
const TEXT: &str = "# Written by kk. Changes made here are replaced by the next run.\n[keyfile]\n\
    unmanaged-devices+=interface-name:cni0;interface-name:flannel*;interface-name:veth*;interface-name:cali*;\
    interface-name:tunl*;interface-name:vxlan.calico;interface-name:cilium*;interface-name:lxc*;\
    interface-name:kube-ipvs0;interface-name:nodelocaldns\n";

/// On nodes where `NetworkManager` runs.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("configure_network_manager", "Configure NetworkManager");
    for (host, facts) in inputs.nodes() {
        if !facts.units.get(UNIT).is_some_and(|unit| unit.active) {
            continue;
        }
        let mut actions: Vec<Box<dyn Action>> = vec![Box::new(File::text(PATH, TEXT))];
        let reload = Unit::started(UNIT).reload().force_restart(any_needed(&actions, facts));
        actions.push(Box::new(reload));
        task = task.on(&host.name, HostWork::new(actions));
    }
    task
}

/// What the task reads: it is not in a pipeline that is built before the first look.
pub(super) fn asks(probe: &mut kk_engine::ProbeSpec) {
    File::text(PATH, TEXT).asks(probe);
    probe.units.insert(UNIT.to_owned());
}
