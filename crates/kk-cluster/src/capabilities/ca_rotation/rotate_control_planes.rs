//! Take the control planes through a round of the rotation.

use std::sync::Arc;

use kk_config::Host;
use kk_engine::{HostWork, Task, actions::Command};

use super::{Authorities, Round, rotate_workers, text};
use crate::{
    base::{api_server, host_layout::KUBECTL, shell::script, slots},
    capabilities::{
        balancer::kube_vip,
        control_plane::{self, RESTART, renewal},
        kubeconfig::{self, MAY_BECOME_ROOT},
        nodes::kubelet_works,
    },
    model::{inputs::Inputs, kubeadm},
};

/// Rotates one control plane at a time, until its API server, controller manager, scheduler and kubelet work with the CAs of this
/// round.
pub(super) fn task(inputs: &Inputs, authorities: &Arc<Authorities>, round: Round) -> Task {
    let title = match round {
        Round::TrustBoth => "Make control planes trust both CAs",
        Round::Issue => "Issue the certificates of control planes again",
        Round::TrustNew => "Make control planes trust only the new CAs",
    };
    let mut task = Task::new("rotate_control_planes", title).concurrency(1);
    for (host, facts) in inputs.control_planes() {
        // The names do not depend on what the probe reports about certificates: a certificate that is missing here would become
        // invalid with the old CA.
        let has_super = facts.files.contains_key("/etc/kubernetes/super-admin.conf");
        let mut names = renewal::LEAVES.to_vec();
        names.retain(|name| *name != "super-admin.conf" || has_super);
        let describe = format!("{}, and restart it", describe(round));
        let rotate = Command::new(describe, control_plane(host, round, &names))
            .file("config.yaml", kubeadm::phase_documents(inputs, host).into_bytes())
            .file("ca.new", authorities.cluster.ca_cert().as_bytes())
            .file("ca.key", authorities.cluster.ca_key().expose().as_bytes())
            .file("front-proxy-ca.new", authorities.front_proxy.ca_cert().as_bytes())
            .file("front-proxy-ca.key", authorities.front_proxy.ca_key().expose().as_bytes())
            .hint("does not become ready", "see \"crictl ps -a\" and \"journalctl -u kubelet\" on the host");
        let mut work = HostWork::new(vec![
            Box::new(rotate),
            Box::new(rotate_workers::kubelet(authorities, host, round)),
            Box::new(kubelet_works(inputs, host)),
        ])
        .provides(slots::settings_applied_slot(&host.name));
        if host.name == inputs.api_host.name {
            work.actions.push(kubeconfig::save_again(inputs, authorities.cluster.ca_cert()));
        }
        let of_etcd = inputs.hosts().into_iter().filter(|(host, _)| rotate_workers::asks_etcd(host));
        for (host, _) in of_etcd {
            work = work.needs(slots::etcd_healthy_slot(&host.name));
        }
        task = task.on(&host.name, work);
    }
    task
}

fn control_plane(host: &Host, round: Round, names: &[&str]) -> String {
    let server = api_server::url(host);
    let again = "kube-apiserver kube-controller-manager kube-scheduler";
    let restart = script(
        &[("server", &server), ("node", &host.name), ("again", again), ("manifests", "edit_manifest")],
        RESTART,
    );
    // kube-vip reads its kubeconfig only when it starts.
    let balancer = format!("if [ -e {} ]; then\n{}fi\n", kube_vip::MANIFEST, kube_vip::RESTART);
    let renew = if round == Round::Issue { control_plane::renew(names) } else { String::new() };
    let end = match round {
        Round::TrustBoth => "",
        Round::Issue => control_plane::RENEWED,
        Round::TrustNew => {
            "rm -f \"$pki/signing-ca.crt\"\n[ ! -e /etc/systemd/system/k8s-certs-renew.timer ] || systemctl start k8s-certs-renew.timer\n"
        }
    };
    text(
        round,
        &[("user", &host.user)],
        &[
            KUBECTL,
            include_str!("rotate_control_plane.sh"),
            &renew,
            MAY_BECOME_ROOT,
            include_str!("restart_with_cas.sh"),
            &restart,
            &balancer,
            end,
        ],
    )
}

fn describe(round: Round) -> &'static str {
    match round {
        Round::TrustBoth => "make the control plane trust both CAs",
        Round::Issue => "issue all certificates of the control plane by the new CAs",
        Round::TrustNew => "make the control plane trust only the new CAs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn kube_vip_reads_its_kubeconfig_again_in_each_round() {
        let host = &testing::sample("three-nodes.yaml").hosts[0];
        for round in [Round::TrustBoth, Round::Issue, Round::TrustNew] {
            let text = control_plane(host, round, &["admin.conf"]);
            let rewritten = text.find(include_str!("restart_with_cas.sh")).unwrap();
            let restarted = text.find("kube-vip-$node").unwrap();
            assert!(rewritten < restarted);
        }
    }
}
