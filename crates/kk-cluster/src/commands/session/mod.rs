//! One command from its file to its plan: the files on the control machine, the connections to the hosts, one probe of each host.

mod addons;
pub(crate) mod installed;
mod plan;
pub(super) mod probe;
pub(super) mod requirements;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use kk_config::{Host, PrivateKey, RegistryAuth, Secret, Spec};
use kk_connector::{Connection, HostKeyPolicy, LocalConnection, SshConfig, SshConnection};
use kk_engine::Owner;

use crate::{
    base::{artifacts::Artifacts, error::BuildError, owner::owner, token::Token},
    capabilities::{addons::secret_values, registry::trust_own_registry, runtime},
    model::options::{Leaving, Options},
};

pub use plan::{Certificates, Create, Delete};

/// The settings from the command line.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The directory `kubekey`: downloads, and a directory for each cluster.
    pub workdir: PathBuf,
    /// Templates of the user that replace the built-in ones.
    pub templates: Option<PathBuf>,
    /// How host keys are checked.
    pub host_keys: HostKeyPolicy,
    /// Choices of this run.
    pub options: Options,
}

/// Everything that a command uses. Nothing is changed and no host is contacted until a caller requests it.
pub struct Session {
    pub(super) spec: Spec,
    pub(super) settings: Settings,
    pub(super) artifacts: Artifacts,
    pub(super) connections: BTreeMap<String, Arc<dyn Connection>>,
    pub(super) token: Token,
    pub(super) owner: Owner,
}

impl Session {
    /// Reads the files of the control machine that the Cluster file names. It uses neither the network nor a host.
    ///
    /// # Errors
    /// A mistake in the file, or a file of the control machine that cannot be read.
    pub fn open(mut spec: Spec, settings: Settings) -> Result<Self, BuildError> {
        let directory = settings.workdir.join(&spec.name);
        trust_own_registry(&mut spec, &directory);
        runtime::check_files(&spec)?;
        let bundle = settings.options.bundle.clone();
        let artifacts = Artifacts::open(&spec, &settings.workdir, bundle)?;
        let connections =
            spec.hosts.iter().map(|host| (host.name.clone(), connection(host, settings.host_keys))).collect();
        let owner = owner(&settings.workdir.join(&spec.name));
        Ok(Self { artifacts, connections, token: Token::new(), owner, spec, settings })
    }

    /// Imports the bundle's contents into the store from which binaries and images are sent, and returns the number of bytes that
    /// were new.
    ///
    /// # Errors
    /// The bundle is damaged, or the directory cannot be written.
    pub async fn import(&self) -> Result<u64, BuildError> {
        self.artifacts.import().await
    }

    /// The contents of the Cluster file.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// `kubekey/<cluster>`.
    pub fn directory(&self) -> PathBuf {
        self.settings.workdir.join(&self.spec.name)
    }

    /// The connection to each host, by name. A host is contacted on the first request to it.
    pub fn connections(&self) -> &BTreeMap<String, Arc<dyn Connection>> {
        &self.connections
    }

    /// The owner by which the command locks hosts.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Texts that no listener may show.
    pub fn secrets(&self) -> Vec<Secret> {
        let mut secrets = vec![self.token.secret.clone(), self.token.text()];
        let inline = |key: &Option<PrivateKey>| match key {
            Some(PrivateKey::Inline(key)) => Some(key.clone()),
            _ => None,
        };
        for host in &self.spec.hosts {
            secrets.extend(host.password.clone());
            secrets.extend(host.sudo_password.clone());
            secrets.extend(inline(&host.private_key));
            if let Some(bastion) = &host.bastion {
                secrets.extend(bastion.password.clone());
                secrets.extend(inline(&bastion.private_key));
            }
        }
        let charts = self.spec.addons.iter().filter_map(|addon| addon.chart.as_ref());
        secrets.extend(charts.clone().flat_map(|chart| chart.secrets.iter().cloned()));
        // A file that cannot be read is reported when the plan is built.
        let files = charts.filter_map(|chart| std::fs::read_to_string(chart.values_file.as_ref()?).ok());
        secrets.extend(files.flat_map(|text| secret_values(&text)));
        for pair in self.spec.registry.auths.values().filter_map(RegistryAuth::credentials) {
            secrets.extend([pair.password.clone(), runtime::basic_auth(pair)]);
        }
        secrets
    }

    /// The same cluster without some of its hosts.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn without(&self, leaving: &Leaving) -> Result<Self, BuildError> {
        let mut spec = self.spec.clone();
        spec.hosts.retain(|host| !leaving.has(host));
        let connections = self.connections.iter().filter(|(host, _)| !leaving.names.contains(*host));
        Ok(Self {
            artifacts: Artifacts::open(&spec, &self.settings.workdir, self.settings.options.bundle.clone())?,
            connections: connections.map(|(host, way)| (host.clone(), way.clone())).collect(),
            token: self.token.clone(),
            owner: self.owner.clone(),
            settings: self.settings.clone(),
            spec,
        })
    }
}

impl Session {
    /// The same hosts with another Cluster file.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub(super) fn with_spec(&self, spec: Spec) -> Result<Self, BuildError> {
        Ok(Self {
            artifacts: Artifacts::open(&spec, &self.settings.workdir, self.settings.options.bundle.clone())?,
            connections: self.connections.clone(),
            token: self.token.clone(),
            owner: self.owner.clone(),
            settings: self.settings.clone(),
            spec,
        })
    }
}

fn connection(host: &Host, host_keys: HostKeyPolicy) -> Arc<dyn Connection> {
    if host.local {
        return Arc::new(LocalConnection::new(&host.name, host.sudo_password.clone()));
    }
    Arc::new(SshConnection::new(SshConfig::from_host(host, host_keys)))
}

#[cfg(test)]
mod tests {
    use crate::testing;

    #[test]
    fn every_secret_of_the_file_is_masked() {
        let directory = tempfile::tempdir().unwrap();
        let key = |word: &str| format!(r#""-----BEGIN TEST-----\n{word}\n-----END TEST-----""#);
        let text = format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
             - {{name: a, address: 192.0.2.1, user: u, password: word-1, privateKey: {}}}\n  roleGroups: {{etcd: [a], control-plane: [a], worker: [a]}}\n  \
             bastion: {{address: 192.0.2.9, user: u, password: word-3, privateKey: {}}}\n  \
             registry: {{auths: {{hub.example.org: {{username: u, password: word-5}}}}}}\n  \
             addons: [{{name: a, sources: {{chart: {{path: a, values: [a.dbPassword=word-6], valuesFile: {}}}}}}}]\n",
            key("word-2"),
            key("word-4"),
            directory.path().join("values.yaml").display(),
        );
        std::fs::write(directory.path().join("values.yaml"), "db: {password: word-7}\n").unwrap();
        let secrets = testing::session(testing::spec(&text), directory.path()).secrets();
        // One of them is "u:word-5" in Base64, as in hosts.toml.
        for secret in ["word-1", "word-2", "word-3", "word-4", "word-5", "dTp3b3JkLTU=", "word-6", "word-7"] {
            assert!(secrets.iter().any(|known| known.expose().contains(secret)), "{secret}");
        }
    }
}
