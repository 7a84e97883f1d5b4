//! One command from its file to its plan: the files on the control machine, the connections to the hosts, one probe of each host.

mod addons;
pub(crate) mod installed;
mod plan;
pub(super) mod probe;
mod published;
pub(super) mod requirements;
mod secrets;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use kk_config::{Host, Secret, Spec};
use kk_connector::{Connection, HostKeyPolicy, LocalConnection, SshConfig, SshConnection};
use kk_engine::{Owner, Redactor};

use crate::{
    base::{artifacts::Artifacts, error::BuildError, owner::owner, token::Token},
    capabilities::{registry::trust_own_registry, runtime},
    model::options::{Leaving, Options},
};

pub use plan::{Certificates, Create, Delete};
pub use secrets::{secrets_of, secrets_of_registry};

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
    redactor: Redactor,
    published: published::Fetched,
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
        let session = Self {
            artifacts,
            connections,
            token: Token::new(),
            owner,
            spec,
            settings,
            redactor: Redactor::default(),
            published: published::Fetched::default(),
        };
        session.hide(&[session.token.secret.clone(), session.token.text()]);
        session.hide(&secrets_of(&session.spec));
        Ok(session)
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

    /// Removes all secrets that the session knows, also those that it gets to know later.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Adds texts that no listener may show.
    pub(super) fn hide<'s>(&self, secrets: impl IntoIterator<Item = &'s Secret>) {
        self.redactor.add(secrets.into_iter().map(|secret| secret.expose().to_owned()));
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
            redactor: self.redactor.clone(),
            published: self.published.clone(),
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
            redactor: self.redactor.clone(),
            published: self.published.clone(),
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
    use std::process::Command;

    use kk_config::Secret;
    use kk_engine::Redactor;

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
             addons: [{{name: a, sources: {{chart: {{path: a, values: [a.dbPassword=word-6], valuesFile: {}}}}}}}]\n  \
             network: {{plugin: cilium, cilium: {{values: {{hubble: {{token: word-11}}}}}}}}\n  \
             kubesphere: {{image: 'hub.example.org/ks-installer:1', version: v3.4.1}}\n\
             ---\nkind: ClusterConfiguration\nmetadata: {{name: ks-installer}}\nspec:\n  \
             authentication: {{jwtSecret: word-8, oauthOptions: {{identityProviders: [{{provider: {{clientSecret: word-9}}}}]}}}}\n  \
             common: {{es: {{basicAuth: {{enabled: true, username: plain, password: word-10}}}}}}\n",
            key("this-is-word-2-in-a-line"),
            key("this-is-word-4-in-a-line"),
            directory.path().join("values.yaml").display(),
        );
        std::fs::write(directory.path().join("values.yaml"), "db: {password: word-7}\n").unwrap();
        let session = testing::session(testing::spec(&text), directory.path());
        // One of them is "u:word-5" in Base64, as in hosts.toml.
        for secret in [
            "word-1",
            "this-is-word-2-in-a-line",
            "word-3",
            "this-is-word-4-in-a-line",
            "word-5",
            "dTp3b3JkLTU=",
            "word-6",
            "word-7",
            "word-8",
            "word-9",
            "word-10",
            "word-11",
        ] {
            assert_eq!(session.redactor().text(&format!("it is {secret}.")), "it is ***.", "{secret}");
        }
        assert_eq!(session.redactor().text("plain"), "plain");
    }

    /// Every line that is secret is masked by a redactor that was cloned before the key existed.
    fn assert_masked<'k>(redactor: &Redactor, keys: impl Iterator<Item = &'k Secret>) -> usize {
        let mut lines = 0;
        for line in keys.flat_map(|key| key.expose().lines()).filter(|line| !line.starts_with("-----")) {
            assert_eq!(redactor.text(&format!("it is {line}.")), "it is ***.");
            lines += 1;
        }
        lines
    }

    #[tokio::test]
    async fn keys_that_the_run_creates_are_masked() {
        let directory = tempfile::tempdir().unwrap();
        let spec = testing::spec(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: t}\nspec:\n  hosts:\n  \
             - {name: a, address: 192.0.2.1}\n  roleGroups: {etcd: [a], control-plane: [a], worker: [a], registry: [a]}\n  \
             registry: {privateRegistry: hub.local, auths: {hub.local: {username: u, password: word-1}}}\n",
        );
        let probed = testing::fresh(&spec);
        let session = testing::session(spec, directory.path());
        let redactor = session.redactor().clone();
        // A CA, a member, and the client of an API server.
        let inputs = session.create_inputs(&probed).await.unwrap();
        assert!(assert_masked(&redactor, inputs.pki.keys()) >= 9);
        // Three CAs, a kubelet, a member, and the client of an API server.
        let authorities = session.new_authorities(None).unwrap();
        assert!(assert_masked(&redactor, authorities.keys()) >= 18);
        let pki = session.registry_pki(&session.own_registry().unwrap()).unwrap();
        let password = crate::capabilities::registry::password_for_pushes(&pki);
        assert!(assert_masked(&redactor, pki.keys().chain([&password])) >= 7);
    }

    /// The file of `docker login` is found by a variable of the process, so another process opens the session.
    #[test]
    fn passwords_of_docker_login_are_masked() {
        const MARK: &str = "KK_TEST_DOCKER_LOGIN";
        let directory = tempfile::tempdir().unwrap();
        if std::env::var_os(MARK).is_some() {
            let session = testing::session(testing::sample("three-nodes.yaml"), directory.path());
            // "user:word-1" in Base64.
            assert_eq!(session.redactor().text("word-1, dXNlcjp3b3JkLTE="), "***, ***");
            return;
        }
        let file = r#"{"auths": {"hub.example.org": {"auth": "dXNlcjp3b3JkLTE="}}}"#;
        std::fs::write(directory.path().join("config.json"), file).unwrap();
        let test = format!("{}::passwords_of_docker_login_are_masked", module_path!());
        let test = test.split_once("::").unwrap().1;
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env("DOCKER_CONFIG", directory.path())
            .env(MARK, "yes")
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
    }
}
