//! One command from its file to its plan: what is on this machine, the connections to the hosts, one probe of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::future::join_all;
use kk_artifact::Component;
use kk_config::{Arch, Host, PrivateKey, Secret, Spec};
use kk_connector::{Connection, HostKeyPolicy, LocalConnection, SshConfig, SshConnection};
use kk_engine::{Facts, Failure, Finding, Owner, Plan, ProbeSpec};
use tokio_util::sync::CancellationToken;

use crate::{
    BuildError, Options, Probed,
    artifacts::{self, Artifacts, Programs},
    ca_copy,
    capabilities::{
        control_plane,
        nodes::record_joins,
        os::{identity, other_run},
        runtime,
        versions::of_cluster,
    },
    capability::{Capabilities, requirements},
    certificates::{self, Validity},
    findings::Findings,
    images::Images,
    inputs::{Inputs, Leaving, Presence, Scope, api_host},
    kubeadm::Token,
    owner::owner,
    pipelines::{add_nodes, create_cluster, delete_cluster, delete_nodes},
    pki::Pki,
    precheck, probe,
    requirements::Requirements,
    status::{self, Status},
    templates::Templates,
};

/// What the command line says.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The directory `kubekey`: downloads, and a directory for each cluster.
    pub workdir: PathBuf,
    /// Templates of the user's that replace the built-in ones.
    pub templates: Option<PathBuf>,
    /// How host keys are checked.
    pub host_keys: HostKeyPolicy,
    /// Choices of this run.
    pub options: Options,
}

/// Everything that one command works with. Nothing is changed, and no host is contacted, before it is asked for.
pub struct Session {
    spec: Spec,
    settings: Settings,
    artifacts: Artifacts,
    connections: BTreeMap<String, Arc<dyn Connection>>,
    token: Token,
    owner: Owner,
}

/// What `kk create cluster` would do.
pub struct Create {
    /// What the person should know first. With an error among them the plan must not run.
    pub findings: Vec<Finding>,
    /// What is to be done.
    pub plan: Plan,
    /// Things to say: programs whose sum no catalogue knows.
    pub notes: Vec<String>,
    /// Hosts that did not answer and that the plan cannot do without: with one among them it must not run.
    pub needed: BTreeMap<String, Failure>,
    /// What the plan leaves of the certificates of the control planes.
    pub certificates: Certificates,
    /// The nodes that join a cluster that runs.
    pub joining: Vec<Host>,
}

/// How long the certificates of the control planes are valid.
pub struct Certificates {
    kept: Vec<Validity>,
}

impl Certificates {
    /// Until when the certificates of the control planes are valid, once the plan was carried out: those that stay, and the
    /// administrator's, which is as old as those that were made.
    pub fn until(&self, kubeconfig: &Path) -> Option<String> {
        let text = std::fs::read_to_string(kubeconfig).ok()?;
        let admin = certificates::of_kubeconfig(&text)?;
        let first = self.kept.iter().copied().fold(admin, Validity::first);
        Some(format!(
            "valid until {}; kk create cluster renews them from {} on",
            first.end_date(),
            first.due_date()
        ))
    }
}

/// What `kk delete cluster` would do.
pub struct Delete {
    /// What the person should know first.
    pub findings: Vec<Finding>,
    /// What is to be done.
    pub plan: Plan,
}

impl Session {
    /// Reads what the file names on this machine. No network, no host.
    ///
    /// # Errors
    /// A mistake in the file, or a file of this machine that cannot be read.
    pub fn open(spec: Spec, settings: Settings) -> Result<Self, BuildError> {
        runtime::check_files(&spec)?;
        let artifacts = Artifacts::open(&spec, &settings.workdir)?;
        let connections =
            spec.hosts.iter().map(|host| (host.name.clone(), connection(host, settings.host_keys))).collect();
        let owner = owner(&settings.workdir.join(&spec.name));
        Ok(Self { artifacts, connections, token: Token::new(), owner, spec, settings })
    }

    /// What the user wants.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// `kubekey/<cluster>`.
    pub fn directory(&self) -> PathBuf {
        self.settings.workdir.join(&self.spec.name)
    }

    /// The connection to each host, by name. A host is contacted when it is first asked for something.
    pub fn connections(&self) -> &BTreeMap<String, Arc<dyn Connection>> {
        &self.connections
    }

    /// On whose behalf the command works on hosts.
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
        for pair in self.spec.registry.auths.values().filter_map(|auth| auth.credentials.as_ref()) {
            secrets.extend([pair.password.clone(), runtime::basic_auth(pair)]);
        }
        secrets
    }

    /// Asks all hosts at once, one round trip each. `answered` gets the name of each host that did.
    ///
    /// # Errors
    /// The questions cannot be written, for example because a template is broken.
    pub async fn probe_for_create(
        &self,
        cancel: &CancellationToken,
        answered: impl Fn(&str),
    ) -> Result<Probed, BuildError> {
        let nothing = self.nothing();
        let capabilities = create_cluster::capabilities(&self.spec);
        let inputs = self.create_inputs(&nothing).await?;
        let pipeline = create_cluster::pipeline(&inputs)?;
        let specs = probe::specs(&capabilities, &inputs, &pipeline);
        Ok(self.probe(specs, cancel, answered).await)
    }

    /// Asks all hosts what a delete has to know.
    pub async fn probe_for_delete(&self, cancel: &CancellationToken, answered: impl Fn(&str)) -> Probed {
        let spec = probe::delete_spec();
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
        let mut probed = Probed::default();
        for (host, answer) in join_all(answers).await {
            match answer {
                Ok(facts) => drop(probed.facts.insert(host, facts)),
                Err(failure) => drop(probed.failures.insert(host, failure)),
            }
        }
        probed
    }

    /// The plan of a create, and what speaks against it.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_create(&self, probed: &Probed) -> Result<Create, BuildError> {
        self.plan(self.create_inputs(probed).await?, Findings::default(), probed).await
    }

    /// The plan for the nodes of the file that are not in the cluster, and what speaks against it.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_add(&self, probed: &Probed) -> Result<Create, BuildError> {
        self.plan_within(probed, add_nodes::scope).await
    }

    /// What a create does, but for the hosts of a scope, in a cluster that runs as the file says.
    async fn plan_within(
        &self,
        probed: &Probed,
        scope: impl FnOnce(&Inputs<'_>) -> Scope,
    ) -> Result<Create, BuildError> {
        let mut inputs = self.create_inputs(probed).await?;
        let mut found = Findings::default();
        add_nodes::findings(&inputs, &mut found);
        inputs.scope = scope(&inputs);
        let wanted = programs_of_hosts(&inputs);
        inputs.programs.retain(|program, _| wanted.contains(program));
        add_nodes::name_sick_neighbours(&inputs, &mut found);
        self.plan(inputs, found, probed).await
    }

    async fn plan(&self, inputs: Inputs<'_>, found: Findings, probed: &Probed) -> Result<Create, BuildError> {
        let mut findings = self.artifacts.unreachable(&inputs.programs).await;
        findings.extend(found.0);
        findings.extend(precheck::precheck(&create_cluster::capabilities(&self.spec), &inputs));
        let notes = artifacts::published(&inputs.programs);
        let kept = control_plane::renewal::kept(&inputs);
        let plan = Plan::new(create_cluster::pipeline(&inputs)?, &probed.facts)?;
        let (needed, certificates) = (precheck::needed(&inputs), Certificates { kept });
        let new = |host: &&Host| record_joins::is_unfinished(&inputs, host);
        let joining = inputs.nodes().into_iter().map(|(host, _)| host).filter(new).cloned().collect();
        Ok(Create { findings, plan, notes, needed, certificates, joining })
    }

    /// What the cluster looks like, and what a create would do about it.
    ///
    /// # Errors
    /// As [`Session::plan_create`].
    pub async fn status(&self, probed: &Probed) -> Result<Status, BuildError> {
        let create = self.plan_create(probed).await?;
        let inputs = self.create_inputs(probed).await?;
        Ok(status::of(&inputs, create.findings, create.plan.changes()))
    }

    /// The plan of a delete.
    ///
    /// # Errors
    /// A host holds a cluster that kk did not make, or the plan cannot be built.
    pub fn plan_delete(&self, probed: &Probed) -> Result<Delete, BuildError> {
        let inputs = self.delete_inputs(probed)?;
        identity::refuse_strangers(&inputs)?;
        other_run::refuse(&inputs)?;
        let plan = Plan::new(delete_cluster::pipeline(&inputs), &probed.facts)?;
        Ok(Delete { findings: precheck::left_by_delete(&inputs), plan })
    }

    /// The plan by which hosts leave a cluster that goes on without them. Afterwards the others forget them: see
    /// [`Session::without`].
    ///
    /// # Errors
    /// A name that the file does not have, hosts of another cluster, or the plan cannot be built.
    pub async fn plan_leave(&self, probed: &Probed, leaving: &Leaving) -> Result<Delete, BuildError> {
        let known: Vec<&str> = self.spec.hosts.iter().map(|host| host.name.as_str()).collect();
        if let Some(name) = leaving.names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(BuildError::config(
                format!("the file has no host {name}"),
                format!("name one of its hosts: {}", known.join(", ")),
            ));
        }
        let mut inputs = self.create_inputs(probed).await?;
        let stay = self.spec.control_planes().into_iter().filter(|host| !leaving.has(host));
        let mut found = Findings::default();
        delete_nodes::findings(&inputs, leaving, &mut found);
        if stay.clone().next().is_some() {
            (inputs.api_host, inputs.state) = api_host(stay, &inputs.presence);
            add_nodes::findings(&inputs, &mut found);
        }
        identity::refuse_strangers(&inputs)?;
        // Nothing is done on a host that is gone for good, also when it answers.
        inputs.scope = Scope::Hosts(if leaving.gone { BTreeSet::new() } else { leaving.names.clone() });
        inputs.scope = delete_cluster::scope(&inputs);
        let plan = Plan::new(delete_nodes::pipeline(&inputs, leaving), &probed.facts)?;
        Ok(Delete { findings: found.0, plan })
    }

    /// The plan by which the hosts of the file forget those that have left: nothing joins. What speaks against it is what
    /// speaks against adding nodes: a control plane that is silent now must not be taken for one that was never made.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_forget(&self, probed: &Probed) -> Result<Create, BuildError> {
        self.plan_within(probed, |_| Scope::Hosts(BTreeSet::new())).await
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
            artifacts: Artifacts::open(&spec, &self.settings.workdir)?,
            connections: connections.map(|(host, way)| (host.clone(), way.clone())).collect(),
            token: self.token.clone(),
            owner: self.owner.clone(),
            settings: self.settings.clone(),
            spec,
        })
    }

    /// Hosts of which nothing is known yet: what is built from them says what to ask.
    fn nothing(&self) -> Probed {
        let facts = self.spec.hosts.iter().map(|host| (host.name.clone(), Facts::default())).collect();
        Probed { facts, failures: BTreeMap::new() }
    }

    pub(crate) async fn create_inputs<'a>(&'a self, probed: &'a Probed) -> Result<Inputs<'a>, BuildError> {
        let (spec, capabilities) = (&self.spec, create_cluster::capabilities(&self.spec));
        let directory = self.directory().join("pki/etcd");
        let copy = if Pki::has_ca(&directory) {
            None
        } else {
            ca_copy::read(spec, probed, &self.connections).await?
        };
        let pki = Pki::open(&directory, &spec.etcd_hosts(), &spec.control_planes(), copy)?;
        let mut inputs = self.inputs(probed, pki, Scope::All, &capabilities)?;
        inputs.programs = self.artifacts.programs(&inputs.versions, programs_of_hosts(&inputs)).await?;
        Ok(inputs)
    }

    pub(crate) fn delete_inputs<'a>(&'a self, probed: &'a Probed) -> Result<Inputs<'a>, BuildError> {
        let pki = Pki::open(&self.directory().join("pki/etcd"), &[], &[], None)?;
        let mut inputs = self.inputs(probed, pki, Scope::All, &delete_cluster::capabilities(&self.spec))?;
        inputs.scope = delete_cluster::scope(&inputs);
        Ok(inputs)
    }

    fn inputs<'a>(
        &'a self,
        probed: &'a Probed,
        pki: Pki,
        scope: Scope,
        capabilities: &Capabilities,
    ) -> Result<Inputs<'a>, BuildError> {
        let present = probed.facts.iter().map(|(host, facts)| (host.as_str(), Presence::Probed(facts)));
        let absent = probed.failures.iter().map(|(host, why)| (host.as_str(), Presence::Absent(why)));
        let presence = present.chain(absent).collect();
        let (api_host, state) = api_host(self.spec.control_planes(), &presence);
        let versions = match of_cluster(&presence, api_host, &self.spec) {
            Some(recorded) => artifacts::versions(&self.spec, &recorded.behind(&self.spec.components))?,
            None => self.artifacts.versions.clone(),
        };
        let mut inputs = Inputs {
            spec: &self.spec,
            presence,
            scope,
            api_host,
            state,
            images: Images::new(&self.spec, &versions),
            versions,
            programs: Programs::new(),
            requirements: Requirements::default(),
            runtime: runtime::of(&self.spec),
            pki: Arc::new(pki),
            templates: Templates::new(self.settings.templates.as_deref())?,
            options: self.settings.options.clone(),
            token: self.token.clone(),
            owner: self.owner.id().to_owned(),
            directory: self.directory(),
            store: self.artifacts.store.clone(),
        };
        inputs.requirements = requirements(capabilities, &inputs)?;
        Ok(inputs)
    }
}

/// The programs that the hosts of the scope need.
fn programs_of_hosts(inputs: &Inputs) -> BTreeSet<(Component, Arch)> {
    let of_host = |(host, _): (&Host, &Facts)| {
        let programs = inputs.requirements.programs[&host.name].iter();
        programs.map(|(_, component)| (*component, inputs.arch(host))).collect::<Vec<_>>()
    };
    inputs.hosts().into_iter().flat_map(of_host).collect()
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
