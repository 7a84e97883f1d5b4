//! One command from its file to its plan: what is on this machine, the way to the hosts, one question to each of them.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use futures::future::join_all;
use kk_artifact::{Artifact, Catalogue, Checksum, Component, Store, StoreSettings, Versions};
use kk_config::{Arch, Host, PrivateKey, Secret, Spec};
use kk_connector::{Connection, HostKeyPolicy, LocalConnection, SshConfig, SshConnection};
use kk_engine::{Facts, Failure, Finding, Plan, ProbeSpec, Severity};
use tokio_util::sync::CancellationToken;

use crate::{
    BuildError, Options, Target,
    cluster_state::ClusterState,
    images::Images,
    kubeadm::Token,
    modules::{basic_auth, binaries, check_registries, removal::Removal},
    pipelines, precheck, probe,
    target::Programs,
    templates::Templates,
    vault::Vault,
};

/// What the command line says.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder `kubekey`: downloads, and a folder for each cluster.
    pub workdir: PathBuf,
    /// Templates of the user's that stand in for the built-in ones.
    pub templates: Option<PathBuf>,
    /// How host keys are checked.
    pub host_keys: HostKeyPolicy,
    /// Choices of this run.
    pub options: Options,
}

/// Everything that one command works with. Nothing is changed, and no host is dialled, before it is asked for.
pub struct Session {
    spec: Spec,
    settings: Settings,
    versions: Versions,
    catalogue: Catalogue,
    store: Arc<Store>,
    connections: BTreeMap<String, Arc<dyn Connection>>,
    token: Token,
}

/// What `kk create cluster` would do.
pub struct Create {
    /// What the person should know first. With an error among them the plan must not run.
    pub findings: Vec<Finding>,
    /// What is to be done.
    pub plan: Plan,
    /// Things to say: programs whose sum no catalogue knows.
    pub notes: Vec<String>,
}

/// What `kk delete cluster` would do.
pub struct Delete {
    /// What is to be done.
    pub plan: Plan,
}

/// The answers of all hosts, or for each host that gave none, why.
pub type Probed = Result<BTreeMap<String, Facts>, BTreeMap<String, Failure>>;

impl Session {
    /// Reads what the file names on this machine. No network, no host.
    pub fn open(spec: Spec, settings: Settings) -> Result<Self, BuildError> {
        let versions =
            Versions::for_kubernetes(spec.kubernetes.version, &spec.components).ok_or_else(|| {
                BuildError::new(
                    format!("Kubernetes {} is not supported", spec.kubernetes.version),
                    "choose another version",
                )
            })?;
        check_registries(&spec)?;
        let catalogue = catalogue(&spec)?;
        let mut store = StoreSettings::new(&settings.workdir);
        store.ca_file = spec.download.ca_file.as_ref().map(PathBuf::from);
        let store = Arc::new(Store::new(store)?);
        let connections =
            spec.hosts.iter().map(|host| (host.name.clone(), connection(host, settings.host_keys))).collect();
        Ok(Self { versions, catalogue, store, connections, token: Token::new(), spec, settings })
    }

    /// What the user wants.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// `kubekey/<cluster>`.
    pub fn folder(&self) -> PathBuf {
        self.settings.workdir.join(&self.spec.name)
    }

    /// The way to each host, by name. A host is dialled when it is first asked for something.
    pub fn connections(&self) -> &BTreeMap<String, Arc<dyn Connection>> {
        &self.connections
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
        for pair in self.spec.registry.auths.values().filter_map(|auth| auth.credentials.as_ref()) {
            secrets.extend([pair.password.clone(), basic_auth(pair)]);
        }
        secrets
    }

    /// Asks all hosts at once, one round trip each. `answered` hears the name of each host that did.
    pub async fn probe_for_create(
        &self,
        cancel: &CancellationToken,
        answered: impl Fn(&str),
    ) -> Result<Probed, BuildError> {
        let facts = self.spec.hosts.iter().map(|host| (host.name.clone(), Facts::default())).collect();
        let target = self.target(&facts).await?;
        let pipeline = pipelines::create_cluster::pipeline(&target)?;
        let mut asks = pipeline.asks();
        let specs = self.spec.hosts.iter().map(|host| {
            let asks = asks.remove(&host.name).unwrap_or_default();
            (host, probe::probe_spec(&target, asks, host))
        });
        let specs = specs.collect();
        Ok(self.probe(specs, cancel, answered).await)
    }

    /// Asks all hosts what a delete has to know.
    pub async fn probe_for_delete(&self, cancel: &CancellationToken, answered: impl Fn(&str)) -> Probed {
        let spec = ProbeSpec {
            files: ["/etc/kubernetes/*", "/etc/kubernetes/pki/*"].map(str::to_owned).into(),
            units: ["kubelet.service", "etcd.service", "containerd.service"].map(str::to_owned).into(),
            ..ProbeSpec::default()
        };
        let specs = self.spec.hosts.iter().map(|host| (host, spec.clone())).collect();
        self.probe(specs, cancel, answered).await
    }

    async fn probe(
        &self,
        specs: Vec<(&Host, ProbeSpec)>,
        cancel: &CancellationToken,
        answered: impl Fn(&str),
    ) -> Probed {
        let answers = specs.into_iter().map(|(host, spec)| {
            let (connection, answered) = (&self.connections[&host.name], &answered);
            async move {
                let facts = kk_engine::probe(&**connection, &spec, cancel).await;
                if facts.is_ok() {
                    answered(&host.name);
                }
                (host.name.clone(), facts)
            }
        });
        let (mut facts, mut failures) = (BTreeMap::new(), BTreeMap::new());
        for (host, answer) in join_all(answers).await {
            match answer {
                Ok(answer) => drop(facts.insert(host, answer)),
                Err(failure) => drop(failures.insert(host, failure)),
            }
        }
        if failures.is_empty() { Ok(facts) } else { Err(failures) }
    }

    /// The plan of a create, and what speaks against it.
    pub async fn create(&self, facts: &BTreeMap<String, Facts>) -> Result<Create, BuildError> {
        let target = self.target(facts).await?;
        let mut findings = precheck::precheck(&self.spec, facts, &target.vault.ca_sum());
        findings.splice(0..0, self.unreachable(&target.programs).await);
        let notes = published(&target.programs);
        let plan = plan(pipelines::create_cluster::pipeline(&target)?, facts)?;
        Ok(Create { findings, plan, notes })
    }

    /// The plan of a delete. `all`: the runtime goes, too.
    pub fn delete(&self, facts: &BTreeMap<String, Facts>, all: bool) -> Result<Delete, BuildError> {
        let removal = Removal { spec: &self.spec, facts, all, folder: self.folder() };
        let foreign = removal.foreign();
        if !foreign.is_empty() {
            return Err(BuildError::new(
                format!("on {} is a cluster that kk did not make; nothing is removed", foreign.join(", ")),
                "correct the file; or run `kubeadm reset` there, when that cluster is to go",
            ));
        }
        Ok(Delete { plan: plan(pipelines::delete_cluster::pipeline(&removal), facts)? })
    }

    pub(crate) async fn target<'a>(
        &'a self,
        facts: &'a BTreeMap<String, Facts>,
    ) -> Result<Target<'a>, BuildError> {
        let first = &self.spec.first_control_plane().name;
        let state = facts.get(first).and_then(|facts| facts.values.get("cluster"));
        let vault = Vault::open(
            &self.folder().join("pki/etcd"),
            &self.spec.etcd_hosts(),
            &self.spec.control_planes(),
        )?;
        let mut target = Target {
            spec: &self.spec,
            facts,
            state: state.map(|answer| ClusterState::parse(answer)).unwrap_or_default(),
            versions: self.versions.clone(),
            images: Images::new(&self.spec, &self.versions),
            programs: Programs::new(),
            vault: Arc::new(vault),
            templates: Templates::new(self.settings.templates.as_deref())?,
            options: self.settings.options.clone(),
            token: self.token.clone(),
            folder: self.folder(),
            store: self.store.clone(),
        };
        for (component, arch) in binaries::wanted(&target) {
            let artifact = self.resolve(component, arch)?;
            let files = self.store.cached(&artifact).await;
            target.programs.insert((component, arch), (artifact, files));
        }
        Ok(target)
    }

    fn resolve(&self, component: Component, arch: Arch) -> Result<Artifact, BuildError> {
        let kubernetes = self.versions.kubernetes.to_string();
        let version = match component {
            Component::Kubeadm | Component::Kubelet | Component::Kubectl => &kubernetes,
            Component::Etcd => &self.versions.etcd,
            Component::Containerd => &self.versions.containerd,
            Component::Runc => &self.versions.runc,
            Component::CniPlugins => &self.versions.cni,
            Component::Crictl => &self.versions.crictl,
            Component::Helm => &self.versions.helm,
        };
        Ok(self.catalogue.resolve(component, version, arch)?)
    }

    /// What cannot be downloaded is known before the first change.
    async fn unreachable(&self, programs: &Programs) -> Vec<Finding> {
        let missing: Vec<Artifact> = programs
            .values()
            .filter(|(_, files)| files.is_none())
            .map(|(artifact, _)| artifact.clone())
            .collect();
        let errors = self.store.check_reachable(&missing).await.err().unwrap_or_default();
        let finding = |error: &kk_artifact::Error| Finding {
            severity: Severity::Error,
            host: None,
            message: error.to_string(),
            hint: error.hint().unwrap_or_default(),
        };
        errors.iter().map(finding).collect()
    }
}

fn plan(pipeline: kk_engine::Pipeline, facts: &BTreeMap<String, Facts>) -> Result<Plan, BuildError> {
    Plan::new(pipeline, facts).map_err(|error| {
        BuildError::new(
            format!("this program has a mistake in its plan: {error}"),
            "please report it with your file",
        )
    })
}

fn catalogue(spec: &Spec) -> Result<Catalogue, BuildError> {
    let mut catalogue = Catalogue::builtin();
    if let Some(path) = &spec.download.catalogue {
        let text = std::fs::read_to_string(path).map_err(|error| {
            BuildError::new(
                format!("cannot read the catalogue {path}: {error}"),
                "correct spec.download.catalogue",
            )
        })?;
        catalogue = catalogue.with_user(path, &text)?;
    }
    match &spec.download.mirror {
        Some(mirror) => Ok(catalogue.with_mirror(mirror)?),
        None => Ok(catalogue),
    }
}

fn connection(host: &Host, host_keys: HostKeyPolicy) -> Arc<dyn Connection> {
    if host.local {
        return Arc::new(LocalConnection::new(&host.name, host.sudo_password.clone()));
    }
    Arc::new(SshConnection::new(SshConfig::from_host(host, host_keys)))
}

/// Programs that are verified by a sum from beside the file, because no catalogue knows their version.
fn published(programs: &Programs) -> Vec<String> {
    programs
        .values()
        .filter_map(|(artifact, _)| match &artifact.checksum {
            Checksum::Published(address) => Some(format!(
                "{artifact}: no catalogue knows its sum; the one published at {address} is used"
            )),
            Checksum::Known(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::testing;

    #[test]
    fn every_secret_of_the_file_is_masked() {
        let key = |word: &str| format!(r#""-----BEGIN TEST-----\n{word}\n-----END TEST-----""#);
        let text = format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
             - {{name: a, address: 192.0.2.1, user: u, password: word-1, privateKey: {}}}\n  roleGroups: {{etcd: [a], control-plane: [a], worker: [a]}}\n  \
             bastion: {{address: 192.0.2.9, user: u, password: word-3, privateKey: {}}}\n  \
             registry: {{auths: {{hub.example.org: {{username: u, password: word-5}}}}}}\n",
            key("word-2"),
            key("word-4"),
        );
        let folder = tempfile::tempdir().unwrap();
        let secrets = testing::session(testing::spec(&text), folder.path()).secrets();
        // The last is "u:word-5" in Base64, as it stands in hosts.toml.
        for secret in ["word-1", "word-2", "word-3", "word-4", "word-5", "dTp3b3JkLTU="] {
            assert!(secrets.iter().any(|known| known.expose().contains(secret)), "{secret}");
        }
    }
}
