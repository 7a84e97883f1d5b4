//! Pushes into the registry of kk: a port and an account of their own, which hosts do not know.
//!
//! The registry gives every account all rights (distribution, "htpasswd"). So two processes serve the same images. The one from
//! which hosts pull is read-only, whatever account asks. The other one takes pushes, and knows only the account of the control
//! machine: a compromised host cannot replace images that other hosts run.

use std::path::Path;

use kk_config::{OwnRegistry, Registry, RegistryAuth, Secret, Spec};
use kk_util::sha256;

use super::trust;
use crate::base::{error::BuildError, pki::Pki};

/// The account that may push.
pub(super) const ACCOUNT: &str = "kk-push";

/// The password of the account. It is derived from the key of the registry's CA, which does not leave the control machine either:
/// there is no other secret to keep, and hosts get only its hash.
pub(crate) fn password(pki: &Pki) -> Secret {
    let label = "kk: password of the account for pushes\0";
    Secret::new(sha256([label, pki.ca_key().expose()].concat().as_bytes()))
}

/// Adds access to the port for pushes. The file says how images are pulled, so none of its settings is valid here: the account may
/// replace every image, and its password is sent only through TLS to a server with a certificate of the registry's CA.
pub(super) fn add_access(own: &OwnRegistry<'_>, settings: &mut Registry, pki: &Pki) {
    let address = own.pushed_at();
    settings.insecure_registries.retain(|insecure| *insecure != address);
    let access = RegistryAuth {
        username: Some(ACCOUNT.to_owned()),
        password: Some(password(pki)),
        certs_path: Some(trust::directory(pki.directory()).display().to_string()),
        ..RegistryAuth::default()
    };
    settings.auths.insert(address, access);
}

/// The private registry of the file, as the control machine pushes into it. One that [`kk init registry`](super) has set up from
/// here is reached by the address of its host, because the control machine need not know its name. `cluster`: the directory of the
/// cluster on the control machine.
///
/// # Errors
/// The CA of the registry cannot be read.
pub fn registry_for_pushes(spec: &Spec, cluster: &Path) -> Result<Registry, BuildError> {
    let mut settings = spec.registry.clone();
    let Some(own) = spec.own_registry() else { return Ok(settings) };
    let directory = super::certificates(cluster);
    let is_from_here = Pki::has_ca(&directory);
    let address = if is_from_here { own.pushed_at() } else { own.reached_at() };
    let path = settings.private_registry.as_deref().and_then(|name| name.strip_prefix(&own.address));
    settings.private_registry = path.map(|path| format!("{address}{path}"));
    settings.auths = own.auths(&spec.registry);
    if is_from_here {
        let pki = Pki::of_registry(&directory, &own)?;
        add_access(&own, &mut settings, &pki);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn pushes_go_to_the_port_and_by_the_account_that_hosts_do_not_know() {
        let directory = tempfile::tempdir().unwrap();
        let spec = testing::spec(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: t}\nspec:\n  hosts:\n  \
             - {name: a, address: 192.0.2.1}\n  roleGroups: {etcd: [a], control-plane: [a], worker: [a], registry: [a]}\n  \
             registry: {privateRegistry: hub.local/team, insecureRegistries: ['192.0.2.1:5443'], \
             auths: {hub.local: {username: u, password: p, skipTLSVerify: true, plainHTTP: true}}}\n",
        );
        let login = |settings: &Registry, address: &str| {
            let auth = settings.auths[address].clone();
            let is_insecure = settings.insecure_registries.iter().any(|insecure| insecure == address);
            let is_verified = !auth.skip_tls_verify && !auth.plain_http && !is_insecure;
            (auth.username.unwrap(), auth.password.unwrap().expose().to_owned(), is_verified)
        };
        // Not set up from here: there is no key to make the password of.
        let settings = registry_for_pushes(&spec, directory.path()).unwrap();
        assert_eq!(settings.private_registry.as_deref(), Some("192.0.2.1:80/team"));
        assert_eq!(login(&settings, "192.0.2.1:80"), ("u".into(), "p".into(), false));

        let own = spec.own_registry().unwrap();
        let pki = Pki::of_registry(&super::super::certificates(directory.path()), &own).unwrap();
        let password = password(&pki).expose().to_owned();
        pki.save().unwrap();
        let settings = registry_for_pushes(&spec, directory.path()).unwrap();
        assert_eq!(settings.private_registry.as_deref(), Some("192.0.2.1:5443/team"));
        assert_eq!(login(&settings, "192.0.2.1:5443"), (ACCOUNT.into(), password.clone(), true));
        let ca = trust::directory(&super::super::certificates(directory.path()));
        assert_eq!(settings.auths["192.0.2.1:5443"].certs_path.as_deref(), ca.to_str());
        // bcrypt reads no more of a password.
        assert_eq!(password.len(), 64);
    }
}
