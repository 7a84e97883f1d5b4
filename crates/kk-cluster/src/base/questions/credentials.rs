//! Whether a kubelet has usable credentials.

use kk_engine::{Question, question};

/// The kubeconfig exists, and the client certificate that it names exists and has not expired. Without openssl, dates are not
/// checked.
pub(crate) const CREDENTIALS: Question<bool> = Question::new(
    "kubelet_credentials",
    r#"conf=/etc/kubernetes/kubelet.conf
pem=$(sed -n 's/^ *client-certificate: *//p' "$conf" 2>/dev/null | head -n 1)
if [ ! -e "$conf" ]; then echo no
elif [ -z "$pem" ]; then if grep -q 'client-certificate-data:' "$conf"; then echo yes; else echo no; fi
elif [ ! -s "$pem" ]; then echo no
elif ! command -v openssl >/dev/null || openssl x509 -noout -checkend 0 -in "$pem" >/dev/null 2>&1; then echo yes
else echo no; fi"#,
    question::yes_or_no,
);

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use kk_engine::FileFact;

    use super::CREDENTIALS;
    use crate::testing;

    #[test]
    fn a_kubeconfig_without_its_certificate_is_no_credentials() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = |year| {
            let mut wanted = rcgen::CertificateParams::new(vec!["n".to_owned()]).unwrap();
            wanted.not_before = rcgen::date_time_ymd(2000, 1, 1);
            wanted.not_after = rcgen::date_time_ymd(year, 1, 1);
            wanted.self_signed(&key).unwrap().pem()
        };
        fs::write(path("valid.pem"), certificate(4000)).unwrap();
        fs::write(path("expired.pem"), certificate(2001)).unwrap();
        let named = |name: &str| Some(format!("    client-certificate: {}\n", path(name)));
        for (conf, can_work) in [
            (None, "no"),
            (named("gone.pem"), "no"),
            (named("expired.pem"), "no"),
            (named("valid.pem"), "yes"),
            (Some("    client-certificate-data: x\n".to_owned()), "yes"),
            (Some("users: []\n".to_owned()), "no"),
        ] {
            let _ = fs::remove_file(path("kubelet.conf"));
            if let Some(conf) = &conf {
                fs::write(path("kubelet.conf"), conf).unwrap();
            }
            let mut probe = kk_engine::ProbeSpec::default();
            probe.ask(&CREDENTIALS);
            let snippet = probe.questions.values().next().unwrap().snippet.clone();
            let snippet = snippet.replace("/etc/kubernetes/kubelet.conf", &path("kubelet.conf"));
            let output = Command::new("sh").args(["-c", &snippet]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), can_work, "{conf:?}");
        }
    }

    #[tokio::test]
    async fn a_worker_without_credentials_joins_again() {
        let spec = testing::sample("three-nodes.yaml");
        let worker =
            spec.nodes().into_iter().find(|host| !host.has_role(&kk_config::Role::ControlPlane)).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        for (answer, joins) in [(Some("yes"), false), (Some("no"), true), (None, false)] {
            let mut probed = testing::fresh(&spec);
            for facts in probed.facts.values_mut() {
                let file = FileFact { sha256: "same".into(), ..FileFact::default() };
                for path in ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"] {
                    facts.files.insert(path.into(), file.clone());
                }
                match answer {
                    Some(answer) => facts.reply(&CREDENTIALS, answer),
                    None => facts.time_out(&CREDENTIALS),
                }
            }
            let inputs = session.create_inputs(&probed).await.unwrap();
            assert_eq!(!inputs.has_joined(worker), joins, "{answer:?}");
            assert!(inputs.has_joined(inputs.api_host));
        }
    }
}
