//! Ports that the cluster needs and other programs use.

use crate::{
    base::{findings::Findings, host_layout::KUBELET_UNIT, requirements::Protocol},
    capabilities::{etcd, registry},
    model::inputs::Inputs,
};

/// The kernel stores this many bytes of a process name (`TASK_COMM_LEN` without its end, proc(5)).
const COMM: usize = 15;

/// The unit that marks a program as kk's in a record: components of a control plane are pods of the kubelet.
fn unit(program: &str) -> &'static str {
    match program {
        "etcd" => etcd::UNIT,
        "registry" => registry::UNIT_FILE,
        _ => KUBELET_UNIT,
    }
}

pub(crate) fn check(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.hosts() {
        for port in inputs.requirements.ports(host).iter().filter(|port| port.protocol == Protocol::Tcp) {
            let ours = port.program;
            let Some(program) = facts.ports.get(&port.number) else { continue };
            if program[..] == ours[..ours.len().min(COMM)] {
                // A program of another cluster would be stopped, or the two would stop each other.
                if !facts.owns(unit(ours)) {
                    found.error(
                        host,
                        format!("port {} is used by {ours}, which kk did not install", port.number),
                        "remove the software that it belongs to first, or use a host without it",
                    );
                }
                continue;
            }
            // A process that starts or ends during the probe has no name. On a node that has joined, it is the node's own
            // component, which restarted. If that is wrong, the component does not become ready, and kk reports that.
            if program.is_empty() && inputs.has_joined(host) {
                continue;
            }
            let other = if program.is_empty() { "another program" } else { program };
            found.error(
                host,
                format!("port {} is used by {other}", port.number),
                format!("{ours} needs it: stop {other}, or move one of the two"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use kk_engine::FileFact;

    use crate::{
        base::{cluster_state::INITIALISED, host_layout::KUBELET_CONF},
        testing,
    };

    /// The findings about the port of the controller manager if this program uses it.
    async fn said(joined: bool, program: &str) -> Vec<String> {
        said_with(joined, program, "made\t/etc/systemd/system/kubelet.service").await
    }

    async fn said_with(joined: bool, program: &str, record: &str) -> Vec<String> {
        let spec = testing::sample("all-in-one.yaml");
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut probed = testing::fresh(&spec);
        let facts = probed.facts.values_mut().next().unwrap();
        facts.ports.insert(10257, program.into());
        facts.owned = vec![record].into();
        if joined {
            facts.reply(&INITIALISED, "yes");
            for path in [KUBELET_CONF, "/etc/kubernetes/pki/ca.crt"] {
                facts.files.insert(path.into(), FileFact { sha256: "same".into(), ..FileFact::default() });
            }
        }
        let findings = session.plan_create(&probed).await.unwrap().findings;
        findings.into_iter().map(|one| one.message).filter(|message| message.contains("port 10257")).collect()
    }

    #[tokio::test]
    async fn a_program_of_the_same_name_that_is_not_in_the_record_is_somebody_elses() {
        let wanted = "port 10257 is used by kube-controller-manager, which kk did not install";
        assert_eq!(
            said_with(false, "kube-controller", "made\t/etc/systemd/system/etcd.service").await,
            [wanted]
        );
        assert_eq!(said(false, "kube-controller").await, [""; 0]);
    }

    #[tokio::test]
    async fn a_port_of_a_joined_node_without_a_name_is_that_of_a_program_that_starts_again() {
        for (joined, program, expected) in [
            (false, "", Some("port 10257 is used by another program")),
            (false, "nginx", Some("port 10257 is used by nginx")),
            (true, "", None),
            (true, "nginx", Some("port 10257 is used by nginx")),
            (true, "kube-controller", None),
        ] {
            assert_eq!(said(joined, program).await, Vec::from_iter(expected), "{joined} {program}");
        }
    }
}
