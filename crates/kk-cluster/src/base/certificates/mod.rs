//! Certificates on hosts, as the probe reports them: a script reads them there, the control machine evaluates them.
//!
//! Only certificates leave a host, never their keys. The capabilities that own the certificates decide when to renew them.

mod validity;

use std::collections::{BTreeMap, BTreeSet};

use kk_config::Host;
use kk_engine::{Facts, Question};

use crate::base::{encoding::from_base64, findings::Findings, kubeconfig};

pub(crate) use validity::{Age, Validity};

/// The certificates of a host by name. Missing certificates have no entry.
pub(crate) const CERTIFICATES: Question<BTreeMap<String, Certificate>> =
    Question::new("certificates", include_str!("read.sh"), parse);

/// A certificate, or the kubeconfig that contains it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// `None` if no certificate can be read.
    pub validity: Option<Validity>,
    /// Whether its private key exists.
    pub has_key: bool,
    /// Whether the kubeconfig contains the CA of the cluster.
    pub has_ca: bool,
    /// The address of the API in the kubeconfig.
    pub server: String,
    /// The SHA-256 of the certificates (DER) in a PEM file. During a rotation, one file contains two CAs.
    pub sums: BTreeSet<String>,
}

/// The certificates of a host; empty if the host gave no answer.
pub(crate) fn of(facts: &Facts) -> BTreeMap<String, Certificate> {
    facts.answer(&CERTIFICATES).answered().unwrap_or_default()
}

/// The validity of the client certificate in a kubeconfig.
pub(crate) fn of_kubeconfig(text: &str) -> Option<Validity> {
    let data = text.lines().find_map(|line| line.trim().strip_prefix("client-certificate-data:"))?;
    Validity::of_pem(&from_base64(data.trim())?)
}

/// Reports that a host gave no answer.
pub(crate) fn unanswered(host: &Host, facts: &Facts, found: &mut Findings) {
    found.unanswered(host, &facts.answer(&CERTIFICATES), "how long its certificates are valid");
}

fn parse(text: &str) -> Option<BTreeMap<String, Certificate>> {
    let body = text.trim_end().strip_suffix("end")?;
    let mut found = BTreeMap::new();
    // Neither PEM nor Base64 has an @.
    for part in format!("\n{body}").split("\n@").skip(1) {
        let (head, content) = part.split_once('\n').unwrap_or((part, ""));
        let [name, key, ca, server] = head.splitn(4, ' ').collect::<Vec<_>>()[..] else { return None };
        let (validity, sums) = if content.starts_with("-----") {
            (Validity::of_pem(content.as_bytes()), kubeconfig::authorities_of_pem(content.as_bytes()))
        } else {
            (from_base64(content.trim()).and_then(|pem| Validity::of_pem(&pem)), BTreeSet::new())
        };
        let server = server.trim_matches('"').to_owned();
        let certificate = Certificate { validity, has_key: key == "key", has_ca: ca == "ca", server, sums };
        found.insert(name.to_owned(), certificate);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;
    use crate::{base::encoding::base64, testing::certificate};

    #[test]
    fn a_kubeconfig_ends_with_its_certificate() {
        let pem = certificate(365, 100);
        let text = format!("users:\n- user:\n    client-certificate-data: {}\n", base64(pem.as_bytes()));
        assert_eq!(of_kubeconfig(&text), Validity::of_pem(pem.as_bytes()));
        assert_eq!(of_kubeconfig("users: []\n"), None);
    }

    #[test]
    fn what_a_control_plane_holds_is_read_without_its_keys() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let key = "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n";
        let (ca, leaf) = (certificate(3650, 3000), certificate(365, 100));
        write("kubernetes/pki/ca.crt", &ca);
        write("kubernetes/pki/ca.key", key);
        write("kubernetes/pki/apiserver.crt", &leaf);
        write("kubernetes/pki/front-proxy-client.crt", "no certificate");
        write("kubernetes/pki/front-proxy-client.key", key);
        write("kubelet/pki/kubelet-client-current.pem", &(leaf.clone() + key));
        let conf = |ca: &str| {
            format!(
                "    certificate-authority-data: {}\n    server: https://a:6443\n    client-certificate-data: {}\n    client-key-data: {}\n",
                base64(ca.as_bytes()),
                base64(leaf.as_bytes()),
                base64(key.as_bytes())
            )
        };
        write("kubernetes/admin.conf", &conf(&ca));
        write("kubernetes/scheduler.conf", &conf(&leaf));
        write("kubernetes/controller-manager.conf", "{}");
        let here = directory.path().display().to_string();
        let script = include_str!("read.sh")
            .replace("/etc/kubernetes", &format!("{here}/kubernetes"))
            .replace("/var/lib/kubelet", &format!("{here}/kubelet"));
        let ask = || {
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        };
        let printed = ask();
        assert!(!printed.contains("secret"), "{printed}");
        assert!(!printed.contains(&base64(key.as_bytes())));
        let found = parse(&printed).unwrap();
        let validity = Validity::of_pem(leaf.as_bytes());
        assert!(validity.is_some());
        let sums = kubeconfig::authorities_of_pem(leaf.as_bytes());
        assert_eq!(sums.len(), 1);
        let wanted = |has_key, has_ca, server: &str| Certificate {
            validity,
            has_key,
            has_ca,
            server: server.into(),
            sums: if server == "-" { sums.clone() } else { BTreeSet::new() },
        };
        assert_eq!(found["apiserver"], wanted(false, false, "-"));
        assert_eq!(found["admin.conf"], wanted(true, true, "https://a:6443"));
        assert_eq!(found["scheduler.conf"], wanted(true, false, "https://a:6443"));
        assert_eq!(found["kubelet-client"], wanted(true, false, "-"));
        assert_eq!(found["controller-manager.conf"], Certificate::default());
        assert_eq!((found["front-proxy-client"].validity, found["front-proxy-client"].has_key), (None, true));
        assert_eq!(found["ca"].validity, Validity::of_pem(ca.as_bytes()));
        assert!(!found.contains_key("super-admin.conf") && !found.contains_key("kubelet-server"));
        assert_eq!(parse("@apiserver key - -\n"), None, "an answer that was cut off is none");
        // Expiry is reported even if the host has no key to sign with.
        write("kubernetes/manifests/kube-apiserver.yaml", "");
        fs::remove_file(directory.path().join("kubernetes/pki/ca.key")).unwrap();
        assert_eq!(parse(&ask()).unwrap()["apiserver"], wanted(false, false, "-"));
        fs::remove_file(directory.path().join("kubernetes/pki/ca.crt")).unwrap();
        assert_eq!(parse(&ask()).unwrap()["admin.conf"], wanted(true, false, "https://a:6443"));
    }
}
