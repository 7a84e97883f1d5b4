//! What is looked at on each host before anything is decided.
//!
//! Every action says what its check reads; on top of that come the questions of the precheck, and those whose answers
//! decide which tasks there are.

use kk_config::{Host, Role};
use kk_engine::ProbeSpec;

use crate::{Target, cluster_state, modules, precheck};

/// Everything that is asked of one host, in one round trip. `asks` is what its actions read.
pub(crate) fn probe_spec(target: &Target, asks: ProbeSpec, host: &Host) -> ProbeSpec {
    let spec = target.spec;
    let mut probe = asks;
    let files = [
        "/usr/local/bin/*",
        "/opt/cni/bin/*",
        "/etc/cni/net.d/*",
        "/etc/kubernetes/*",
        "/etc/kubernetes/pki/*",
        "/etc/kubernetes/manifests/*",
        "/etc/ssl/etcd/ssl/ca.pem",
        "/root/.kube/config",
    ];
    probe.files.extend(files.map(str::to_owned));
    probe.files.extend(modules::os::create_directories::directories(target));
    probe
        .units
        .extend(["docker.service", "firewalld.service", "ufw.service", "kubelet.service"].map(str::to_owned));
    probe.tools.extend(precheck::NODE_TOOLS.map(str::to_owned));
    probe.modules.extend(modules::os::kernel_modules(spec).into_iter().map(str::to_owned));
    probe.ports.extend(modules::ports(spec, host).into_iter().map(|(port, _)| port));
    probe.disks.extend(["/usr/local/bin".to_owned(), spec.registry.containerd_data_dir.clone()]);
    probe.values.insert("machine_id".into(), "cat /etc/machine-id".into());
    if host.is_node() {
        probe.values.insert(
            "images".into(),
            "[ -S /run/containerd/containerd.sock ] && ctr -n k8s.io images ls -q".into(),
        );
        let data = kk_connector::quote(&spec.registry.containerd_data_dir).into_owned();
        probe
            .values
            .insert("runtime_data".into(), format!("ls -d {data}/io.containerd.* >/dev/null && echo yes"));
        probe.disks.insert("/var/lib/kubelet".into());
    }
    if host.has_role(&Role::Etcd) {
        let data = kk_connector::quote(&spec.etcd.data_dir).into_owned();
        probe.values.insert("etcd_data".into(), format!("[ -d {data}/member ] && echo yes"));
        probe.values.insert("etcd".into(), modules::etcd::health_command(spec, host));
        probe.disks.insert(spec.etcd.data_dir.clone());
    }
    if host.name == spec.first_control_plane().name {
        probe.values.insert("cluster".into(), cluster_state::QUERY.into());
        probe.values.insert("fixed".into(), precheck::FIXED_SETTINGS.into());
    }
    probe
}
