//! Install the kubeconfig for root on the control planes.

use kk_engine::{Answer, HostWork, Question, Task, actions::Command, question};

use super::ROOT;
use crate::{
    base::{host_layout::ADMIN_CONF, slots},
    capabilities::control_plane,
    model::inputs::Inputs,
};

/// Whether root's kubeconfig reaches the cluster.
pub(crate) const USABLE: Question<bool> = Question::new("root_kubeconfig", SNIPPET, question::yes_or_no);

const SNIPPET: &str = concat!("theirs=/root/.kube/config\n", include_str!("usable.sh"));

/// A copy: a link would break for tools that refuse other people's files. One that works is the administrator's: contexts
/// and namespaces that were added to it stay.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("install_for_root", "Install kubeconfig for root");
    for (host, facts) in inputs.control_planes() {
        let renewed = control_plane::renews(inputs, host, facts, "admin.conf");
        let copy =
            Command::new(format!("write {ROOT}"), format!("kk_put {ADMIN_CONF} {ROOT} 600 root:root\n"))
                .when(move |facts| {
                    renewed || matches!(facts.answer(&USABLE), Answer::Answered(false) | Answer::NotAsked)
                })
                .reads(|probe| probe.ask(&USABLE));
        task = task.on(&host.name, HostWork::new(vec![Box::new(copy)]).needs(slots::joined_slot(&host.name)));
    }
    task
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    /// A kubeconfig of the administrator's with this CA, and a certificate that is valid for some days.
    fn kubeconfig(ca: &str, days: i64) -> String {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.not_before = time::OffsetDateTime::now_utc() - time::Duration::days(400);
        params.not_after = time::OffsetDateTime::now_utc() + time::Duration::days(days);
        let pem = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem();
        let data = crate::base::encoding::base64(pem.as_bytes());
        format!(
            "clusters:\n- cluster:\n    certificate-authority-data: {ca}\n  name: kubernetes\nusers:\n\
             - name: kubernetes-admin\n  user:\n    client-certificate-data: {data}\n"
        )
    }

    #[test]
    fn a_kubeconfig_that_works_is_left_to_the_administrator() {
        let directory = tempfile::tempdir().unwrap();
        let (ours, theirs) = (directory.path().join("admin.conf"), directory.path().join("config"));
        let script = super::SNIPPET
            .replace("/etc/kubernetes/admin.conf", ours.to_str().unwrap())
            .replace("/root/.kube/config", theirs.to_str().unwrap());
        let answer = || {
            let output = Command::new("sh").args(["-ec", &script]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(answer(), "no\n", "no cluster yet");
        fs::write(&ours, kubeconfig("Q0E=", 300)).unwrap();
        assert_eq!(answer(), "no\n", "root has none yet");
        for (text, usable) in [
            (kubeconfig("Q0E=", 300), "yes\n"),
            (kubeconfig("Q0E=", 300) + "contexts:\n- name: mine\n", "yes\n"),
            (kubeconfig("b3RoZXI=", 300), "no\n"),
            (kubeconfig("Q0E=", -1), "no\n"),
            (kubeconfig("Q0E=", 10), "no\n"),
        ] {
            fs::write(&theirs, text).unwrap();
            assert_eq!(answer(), usable);
        }
        // Short ones by spec.kubernetes.certificateValidityPeriod.
        fs::copy(&theirs, &ours).unwrap();
        assert_eq!(answer(), "yes\n", "there is no better one");
    }
}
