//! Lists the secrets that no listener may show.

use kk_config::{ManifestSource, PrivateKey, Registry, RegistryAuth, Secret, Spec};

use crate::capabilities::{
    addons::{secret_values, secrets_in},
    runtime,
};

/// The secrets of the Cluster file, and those with which kk logs in to registries.
pub fn secrets_of(spec: &Spec) -> Vec<Secret> {
    let mut secrets = Vec::new();
    let inline = |key: &Option<PrivateKey>| match key {
        Some(PrivateKey::Inline(key)) => Some(key.clone()),
        _ => None,
    };
    for host in &spec.hosts {
        secrets.extend(host.password.clone());
        secrets.extend(host.sudo_password.clone());
        secrets.extend(inline(&host.private_key));
        if let Some(bastion) = &host.bastion {
            secrets.extend(bastion.password.clone());
            secrets.extend(inline(&bastion.private_key));
        }
    }
    let charts = spec.addons.iter().filter_map(|addon| addon.chart.as_ref());
    secrets.extend(charts.clone().flat_map(|chart| chart.secrets.iter().cloned()));
    // A file that cannot be read is reported when the plan is built.
    let files = charts.filter_map(|chart| match chart.values_file.as_ref()? {
        ManifestSource::Path(path) => std::fs::read_to_string(path).ok(),
        ManifestSource::Url { .. } | ManifestSource::Published { .. } => None,
    });
    secrets.extend(files.flat_map(|text| secret_values(&text)));
    secrets.extend(secrets_of_registry(&spec.registry));
    secrets.extend(secrets_in(&spec.network.cilium_values.clone().into()));
    if let Some(kubesphere) = &spec.kubesphere {
        secrets.extend(secrets_in(&kubesphere.configuration.clone().into()));
    }
    secrets.extend(kk_artifact::stored_logins());
    secrets
}

/// The passwords for registries, and the credentials with these passwords in Base64.
pub fn secrets_of_registry(registry: &Registry) -> Vec<Secret> {
    let pairs = registry.auths.values().filter_map(RegistryAuth::credentials);
    pairs.flat_map(|pair| [pair.password.clone(), runtime::basic_auth(pair)]).collect()
}
