//! What makes the control machine and the nodes trust the registry.

use std::path::{Path, PathBuf};

use kk_config::Spec;

/// The directory, in the form of `certsPath`, with the CA of a registry and nothing else.
pub(super) fn directory(certificates: &Path) -> PathBuf {
    certificates.join("certs.d")
}

/// Names the CA that [`kk init registry`](super) has made, where the file names no certificates for its registry. The nodes get
/// it, and pushes of the control machine use it. `directory`: that of the cluster in the working directory.
pub fn trust_own_registry(spec: &mut Spec, cluster: &Path) {
    let Some(address) = spec.own_registry().map(|own| own.address) else { return };
    let trust = directory(&super::certificates(cluster));
    if !trust.join("ca.crt").exists() {
        return;
    }
    let auth = spec.registry.auths.entry(address).or_default();
    if auth.certs_path.is_none() && !auth.plain_http {
        auth.certs_path = Some(trust.display().to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn the_file_s_own_certificates_win() {
        let directory = tempfile::tempdir().unwrap();
        let trust = super::directory(&super::super::certificates(directory.path()));
        let with = |auths: &str| {
            let mut spec = testing::spec(&format!(
                "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
                 - {{name: a, address: 192.0.2.1}}\n  roleGroups: {{etcd: [a], control-plane: [a], worker: [a], registry: [a]}}\n  \
                 registry: {{privateRegistry: hub.local/team, auths: {auths}}}\n"
            ));
            trust_own_registry(&mut spec, directory.path());
            spec.registry.auths.get("hub.local").and_then(|auth| auth.certs_path.clone())
        };
        assert_eq!(with("{}"), None, "there is no CA yet");
        std::fs::create_dir_all(&trust).unwrap();
        std::fs::write(trust.join("ca.crt"), "x").unwrap();
        let ours = Some(trust.display().to_string());
        for (auths, expected) in [
            ("{}", ours.clone()),
            ("{hub.local: {username: u, password: p}}", ours),
            ("{hub.local: {certsPath: /own}}", Some("/own".to_owned())),
            ("{hub.local: {plainHTTP: true}}", None),
        ] {
            assert_eq!(with(auths), expected, "{auths}");
        }
    }
}
