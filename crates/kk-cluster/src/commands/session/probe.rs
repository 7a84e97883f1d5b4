//! Queries the hosts, and builds the inputs of a command from their answers.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::join_all;
use kk_artifact::Versions;
use kk_config::Host;
use kk_engine::{Facts, ProbeSpec};
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::{
    base::{
        artifacts::Programs,
        ca_copy,
        error::BuildError,
        images::Images,
        pki::Pki,
        probed::Probed,
        requirements::Requirements,
        supply::{Installer, Published, Wanted},
        templates::Templates,
    },
    capabilities::{addons::installed_versions, network, runtime, versions::of_cluster},
    commands::{create_cluster, delete_cluster, probe, session::requirements::requirements},
    model::{
        cluster::{Cluster, Presence, Scope, api_host},
        command::Command,
        inputs::{Inputs, wanted_programs},
        offline,
    },
};

impl Session {
    /// Queries all hosts at once, one round trip each. `answered` receives the name of each host that answered.
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
        // With a thousand hosts it takes much memory, and only the plan that comes after the probe needs one.
        drop(pipeline);
        Ok(self.probe(specs, cancel, answered).await)
    }

    /// Queries all hosts for the facts that a delete needs.
    pub async fn probe_for_delete(&self, cancel: &CancellationToken, answered: impl Fn(&str)) -> Probed {
        let options = &self.settings.options;
        let specs = self.spec.hosts.iter().map(|host| (host, probe::delete_spec(host, options))).collect();
        self.probe(specs, cancel, answered).await
    }

    pub(in crate::commands) async fn probe(
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

    /// Hosts without facts: a pipeline that is built from them declares the questions.
    pub(in crate::commands) fn nothing(&self) -> Probed {
        let facts = self.spec.hosts.iter().map(|host| (host.name.clone(), Facts::default())).collect();
        Probed { facts, failures: BTreeMap::new() }
    }

    pub(crate) async fn create_inputs<'a>(&'a self, probed: &'a Probed) -> Result<Inputs<'a>, BuildError> {
        self.inputs_for(Command::Create, probed).await
    }

    /// The inputs of a command whose plan is the plan of a create, perhaps with a smaller scope.
    pub(crate) async fn inputs_for<'a>(
        &'a self,
        command: Command,
        probed: &'a Probed,
    ) -> Result<Inputs<'a>, BuildError> {
        let (spec, capabilities) = (&self.spec, create_cluster::capabilities(&self.spec));
        let directory = self.directory().join("pki/etcd");
        let copy = if Pki::has_ca(&directory) {
            None
        } else {
            ca_copy::read(spec, probed, &self.connections).await?
        };
        let pki = Pki::open(&directory, &spec.etcd_hosts(), &spec.control_planes(), copy, command.renewed())?;
        self.hide(pki.keys());
        let mut cluster = self.cluster(probed, command)?;
        self.publish(&mut cluster, &capabilities).await;
        let requirements = requirements(&capabilities, &cluster)?;
        let wanted = wanted_programs(&cluster, &requirements);
        let programs = self.artifacts.programs(&cluster.versions, wanted).await;
        let programs = programs.map_err(|error| offline::name_all(&cluster, &requirements, error))?;
        let (bundle, store) = (cluster.options.bundle.as_deref(), &self.artifacts.store);
        let own = network::own_addon(&cluster).map(|own| Wanted::own(own, bundle, store));
        let installed = installed_versions(spec, probed);
        let all = Wanted::all(spec, &installed, bundle, store);
        let mut addons: Vec<Wanted> = own.into_iter().chain(all).collect();
        if cluster.options.skip_addons {
            // Without these, no node becomes ready.
            addons.retain(|addon| addon.addon.is_of_network());
        }
        self.hide_values(&addons);
        Ok(self.inputs(cluster, requirements, pki, programs, addons))
    }

    pub(crate) fn delete_inputs<'a>(&'a self, probed: &'a Probed) -> Result<Inputs<'a>, BuildError> {
        let cluster = self.cluster(probed, Command::Delete)?;
        let requirements = requirements(&delete_cluster::capabilities(&self.spec), &cluster)?;
        let inputs = self.inputs(cluster, requirements, self.no_pki()?, Programs::new(), Vec::new());
        let scope = delete_cluster::scope(&inputs);
        Ok(inputs.within(scope))
    }

    /// The CA of etcd on the control machine, for commands that sign nothing with it.
    pub(in crate::commands) fn no_pki(&self) -> Result<Pki, BuildError> {
        let pki = Pki::to_identify(&self.directory().join("pki/etcd"))?;
        self.hide(pki.keys());
        Ok(pki)
    }

    /// The cluster as the file and the hosts describe it, with all hosts in scope.
    pub(in crate::commands) fn cluster<'a>(
        &'a self,
        probed: &'a Probed,
        command: Command,
    ) -> Result<Cluster<'a>, BuildError> {
        let presence = presence(probed);
        let (api_host, state) = api_host(self.spec.control_planes(), &presence);
        let versions = self.versions(&presence, api_host)?;
        Ok(Cluster {
            spec: &self.spec,
            presence,
            scope: Scope::All,
            api_host,
            state,
            images: Images::new(&self.spec, &versions),
            published: Published::default(),
            versions,
            runtime: runtime::of(&self.spec),
            templates: Templates::new(self.settings.templates.as_deref())?,
            installer: Installer::of(&self.spec),
            options: self.settings.options.clone(),
            command,
        })
    }

    pub(in crate::commands) fn inputs<'a>(
        &self,
        cluster: Cluster<'a>,
        requirements: Requirements,
        pki: Pki,
        programs: Programs,
        addons: Vec<Wanted>,
    ) -> Inputs<'a> {
        Inputs {
            cluster,
            requirements,
            programs,
            pki: Arc::new(pki),
            addons,
            token: self.token.clone(),
            owner: self.owner.id().to_owned(),
            directory: self.directory(),
            store: self.artifacts.store.clone(),
        }
    }

    /// The versions of the components: pins override the cluster's versions, which override the defaults.
    pub(in crate::commands) fn versions<'a>(
        &self,
        presence: &BTreeMap<&'a str, Presence<'a>>,
        api_host: &Host,
    ) -> Result<Versions, BuildError> {
        match of_cluster(presence, api_host, &self.spec) {
            Some(recorded) => self.artifacts.choose(&self.spec, &recorded.behind(&self.spec.components)),
            None => Ok(self.artifacts.versions.clone()),
        }
    }
}

/// Whether each host answered, and with what result.
pub(in crate::commands) fn presence(probed: &Probed) -> BTreeMap<&str, Presence<'_>> {
    let present = probed.facts.iter().map(|(host, facts)| (host.as_str(), Presence::Probed(facts)));
    let absent = probed.failures.iter().map(|(host, why)| (host.as_str(), Presence::Absent(why)));
    present.chain(absent).collect()
}
