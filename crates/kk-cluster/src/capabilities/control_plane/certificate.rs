//! Renews certificates and kubeconfigs of a control plane.

use crate::base::shell::script;

/// Creates the certificates and kubeconfigs in `names` again. If `keep` is not empty, certificates stay valid for their current
/// names.
pub(crate) const RENEW: &str = include_str!("renew_certificates.sh");

/// Creates them again, by the names of kubeadm's phases. kubeadm alone keeps existing certificates, whatever names and dates they
/// have.
pub(crate) fn renew(names: &[&str]) -> String {
    script(&[("names", &names.join(" ")), ("keep", "")], RENEW)
}

/// Removes the record of a renewal. It runs when everything has read the new certificates, so that the next run has nothing to
/// resume.
pub(crate) const RENEWED: &str = "rm -rf /etc/kubernetes/kubekey/renewal\n";

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

    use super::{RENEWED, renew};
    use crate::{base::encoding::base64, testing};

    /// Runs the script below a directory that represents the root directory of a host, with a `kubeadm` that fails for one name.
    fn run(directory: &Path, names: &[&str], fails_at: &str) -> bool {
        let here = directory.display().to_string();
        let program = |name: &str, text: &str| testing::program(directory, name, text);
        let [certificate, key] = ["the certificate\n", "the key\n"].map(|text| base64(text.as_bytes()));
        program(
            "kubeadm",
            &format!(
                "[ \"$4\" != {fails_at} ] || exit 1\npki=$(sed -n 's/^certificatesDir: //p' aside.yaml)\n\
                 case $3 in certs) echo new >$pki/$4.key; echo new >$pki/$4.crt ;;\n\
                 *) printf '    client-certificate-data: {certificate}\\n    client-key-data: {key}\\n' >$8/$4.conf ;; esac"
            ),
        );
        program("systemctl", &format!("echo \"$*\" >>{here}/calls"));
        fs::write(directory.join("config.yaml"), "certificatesDir: /etc/kubernetes/pki\n").unwrap();
        let text = renew(names)
            .replace("/etc/kubernetes", &format!("{here}/kubernetes"))
            .replace("/var/lib/kubelet", &format!("{here}/kubelet"));
        let status = Command::new("sh")
            .args(["-euc", &format!("kk_do() {{ \"$@\"; }}\n{text}")])
            .current_dir(directory)
            .env("PATH", format!("{here}:/usr/bin:/bin"))
            .status()
            .unwrap();
        status.success()
    }

    fn host() -> (tempfile::TempDir, impl Fn(&str) -> String) {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("kubernetes/pki")).unwrap();
        for path in ["pki/apiserver.crt", "pki/apiserver.key", "pki/front-proxy-client.crt", "kubelet.conf"] {
            fs::write(directory.path().join("kubernetes").join(path), "old\n").unwrap();
        }
        let here = directory.path().to_owned();
        (directory, move |path| fs::read_to_string(here.join(path)).unwrap_or_default())
    }

    #[test]
    fn what_cannot_be_made_stays_as_it_is_and_is_taken_up_by_the_next_run() {
        let (directory, read) = host();
        assert!(!run(directory.path(), &["apiserver", "front-proxy-client"], "front-proxy-client"));
        assert_eq!(read("kubernetes/pki/apiserver.crt"), "new\n");
        assert_eq!(read("kubernetes/pki/front-proxy-client.crt"), "old\n");
        assert_eq!(read("kubernetes/kubekey/renewal/names"), "apiserver\nfront-proxy-client\n");
        assert!(!run(directory.path(), &["scheduler.conf"], "scheduler"));
        assert!(read("kubernetes/kubekey/renewal/names").contains("front-proxy-client\n"));
        assert!(run(directory.path(), &["front-proxy-client"], "none"));
        assert_eq!(read("kubernetes/pki/front-proxy-client.crt"), "new\n");
        assert!(RENEWED.contains("/etc/kubernetes/kubekey/renewal"));
    }

    #[test]
    fn a_kubelet_gets_its_certificate_as_the_file_that_it_renews() {
        let (directory, read) = host();
        assert!(run(directory.path(), &["kubelet.conf"], "none"));
        let current = "kubelet/pki/kubelet-client-current.pem";
        assert_eq!(read(current), "the certificate\nthe key\n");
        let link = directory.path().join(current);
        assert!(link.symlink_metadata().unwrap().is_symlink(), "the kubelet replaces a link only");
        assert_eq!(fs::metadata(&link).unwrap().permissions().mode() & 0o777, 0o600);
        let named = link.display();
        assert_eq!(
            read("kubernetes/kubelet.conf"),
            format!("    client-certificate: {named}\n    client-key: {named}\n")
        );
        assert_eq!(read("calls"), "restart kubelet.service\n");
    }
}
