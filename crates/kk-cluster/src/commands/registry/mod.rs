//! Plans about the registry.

use std::sync::Arc;

use kk_config::OwnRegistry;
use kk_engine::{Plan, ProbeSpec};
use tokio_util::sync::CancellationToken;

mod delete;
pub(crate) mod init;

use super::session::{Delete, Session, requirements::requirements};
use crate::{
    base::{artifacts::Programs, error::BuildError, findings::Findings, pki::Pki, probed::Probed},
    capabilities::registry,
    commands::{precheck::ports, probe},
    model::{
        cluster::Scope,
        command::Command,
        inputs::{Inputs, wanted_programs},
        offline,
    },
};

impl Session {
    /// The registry of the file.
    ///
    /// # Errors
    /// The file specifies no registry that kk could set up.
    pub fn own_registry(&self) -> Result<OwnRegistry<'_>, BuildError> {
        if self.spec.registry.is_harbor() {
            return Err(BuildError::config(
                "spec.registry.type asks for a Harbor, which kk does not set up",
                "remove the type for a plain registry; or install Harbor with its own installer, and set \
                 privateRegistry to its name",
            ));
        }
        self.spec.own_registry().ok_or_else(|| {
            match self.spec.with_role(&kk_config::Role::Registry).first() {
                None => BuildError::config(
                    "the file has no host for a registry",
                    "name one in spec.roleGroups.registry",
                ),
                Some(host) => BuildError::config(
                    format!(
                        "spec.registry.privateRegistry is an address, but not an address of {}",
                        host.name
                    ),
                    "specify an address of that host, or a name",
                ),
            }
        })
    }

    /// Queries the host of the registry for the facts that the registry commands need.
    ///
    /// # Errors
    /// As [`Session::own_registry`], or the questions cannot be written.
    pub async fn probe_for_registry(
        &self,
        cancel: &CancellationToken,
        answered: impl Fn(&str),
    ) -> Result<Probed, BuildError> {
        let own = self.own_registry()?;
        let (nothing, pki) = (self.nothing(), self.registry_pki(&own)?);
        let inputs = self.registry_inputs(&nothing, &own, true).await?;
        let pipeline = init::pipeline(&inputs, &own, &pki)?;
        let mut specs = probe::specs(&init::capabilities(), &inputs, &pipeline);
        specs.retain(|(host, _)| host.name == own.host.name);
        Ok(self.probe(specs, cancel, answered).await)
    }

    /// Queries the host of the registry for the facts that a delete needs.
    ///
    /// # Errors
    /// As [`Session::own_registry`].
    pub async fn probe_registry_to_delete(
        &self,
        cancel: &CancellationToken,
        answered: impl Fn(&str),
    ) -> Result<Probed, BuildError> {
        let own = self.own_registry()?;
        let mut spec = ProbeSpec::default();
        registry::asks(&mut spec);
        Ok(self.probe(vec![(own.host, spec)], cancel, answered).await)
    }

    /// The plan that sets up the registry, and the findings about it.
    ///
    /// # Errors
    /// As [`Session::own_registry`], a version is unknown, or the plan cannot be built.
    pub async fn plan_init_registry(&self, probed: &Probed) -> Result<Delete, BuildError> {
        let own = self.own_registry()?;
        let (inputs, pki) = (self.registry_inputs(probed, &own, true).await?, self.registry_pki(&own)?);
        let mut found = Findings(self.artifacts.unreachable(&inputs.programs).await);
        found.0.extend(offline::missing_programs(&inputs));
        ports::check(&inputs, &mut found);
        registry::findings(&inputs, &own, &pki, &mut found);
        found.0.sort_by_key(|finding| finding.severity);
        let plan = Plan::new(init::pipeline(&inputs, &own, &pki)?, &probed.facts)?;
        Ok(Delete { findings: found.0, plan })
    }

    /// The plan that removes the registry, and with `with_data` also its images.
    ///
    /// # Errors
    /// As [`Session::own_registry`], or the plan cannot be built.
    pub async fn plan_delete_registry(&self, probed: &Probed, with_data: bool) -> Result<Delete, BuildError> {
        let session = self.as_installed(probed, |_| false)?;
        let own = session.own_registry()?;
        let inputs = session.registry_inputs(probed, &own, false).await?;
        let pki = session.registry_pki(&own)?;
        let mut found = Findings::default();
        registry::findings_of_delete(&inputs, &own, &pki, &mut found);
        let plan = Plan::new(delete::pipeline(&inputs, &own, with_data), &probed.facts)?;
        Ok(Delete { findings: found.0, plan })
    }

    /// The directory of the registry's images, from the configuration on its host.
    ///
    /// # Errors
    /// As [`Session::plan_delete_registry`].
    pub fn registry_data(&self, probed: &Probed) -> Result<String, BuildError> {
        Ok(self.as_installed(probed, |_| false)?.spec.registry.registry_data_dir)
    }

    pub(in crate::commands) fn registry_pki(&self, own: &OwnRegistry<'_>) -> Result<Arc<Pki>, BuildError> {
        let pki = Pki::of_registry(&registry::certificates(&self.directory()), own)?;
        self.hide(pki.keys().chain([&registry::password_for_pushes(&pki)]));
        Ok(Arc::new(pki))
    }

    async fn registry_inputs<'a>(
        &'a self,
        probed: &'a Probed,
        own: &OwnRegistry<'_>,
        with_programs: bool,
    ) -> Result<Inputs<'a>, BuildError> {
        let mut cluster = self.cluster(probed, Command::Registry)?;
        cluster.scope = Scope::Hosts(registry::hosts(own));
        let requirements = requirements(&init::capabilities(), &cluster)?;
        let mut programs = Programs::new();
        if with_programs {
            let wanted = wanted_programs(&cluster, &requirements);
            let found = self.artifacts.programs(&cluster.versions, wanted).await;
            programs = found.map_err(|error| offline::name_all(&cluster, &requirements, error))?;
        }
        Ok(self.inputs(cluster, requirements, self.no_pki()?, programs, Vec::new()))
    }
}
