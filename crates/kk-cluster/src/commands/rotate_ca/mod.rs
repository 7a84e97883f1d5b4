//! Plans of a rotation of the CAs.

use std::{path::Path, sync::Arc};

use kk_engine::{Finding, Plan};

pub(crate) mod pipeline;

use super::session::Session;
use crate::{
    base::{error::BuildError, findings::Findings, probed::Probed},
    capabilities::{
        ca_rotation::{self, Authorities, Restarts, Round},
        os::ownership::other_run,
    },
};

/// The replacement of one CA by another.
pub struct Rotation {
    /// Whether an earlier run has begun it.
    pub has_begun: bool,
    /// The remaining rounds. If the list is empty, only the control machine has to be cleaned up.
    pub rounds: &'static [Round],
    /// The blockers.
    pub findings: Vec<Finding>,
}

impl Session {
    /// The new CAs: from a rotation that has begun, else from the user in `own`, else newly created. Nothing is written.
    ///
    /// # Errors
    /// A supplied certificate cannot be a CA, or a file cannot be read.
    pub fn new_authorities(&self, own: Option<&Path>) -> Result<Arc<Authorities>, BuildError> {
        let authorities = Authorities::open(&self.directory().join("pki"), &self.spec, own)?;
        self.hide(authorities.keys());
        Ok(Arc::new(authorities))
    }

    /// The remaining work.
    ///
    /// # Errors
    /// As [`Session::plan_create`], or another run works on the hosts.
    pub async fn rotation(
        &self,
        probed: &Probed,
        authorities: &Arc<Authorities>,
    ) -> Result<Rotation, BuildError> {
        let inputs = self.create_inputs(probed).await?;
        other_run::refuse(&inputs)?;
        let mut found = Findings::default();
        pipeline::findings(&inputs, authorities, &mut found);
        found.0.sort_by_key(|finding| finding.severity);
        Ok(Rotation {
            has_begun: ca_rotation::has_begun(&inputs, authorities),
            rounds: ca_rotation::rounds(&inputs, authorities),
            findings: found.0,
        })
    }

    /// The plan for one round.
    ///
    /// # Errors
    /// As [`Session::plan_create`].
    pub async fn plan_rotation(
        &self,
        probed: &Probed,
        authorities: &Arc<Authorities>,
        round: Round,
        restarts: Restarts,
    ) -> Result<Plan, BuildError> {
        let inputs = self.create_inputs(probed).await?;
        Ok(Plan::new(pipeline::pipeline(&inputs, authorities, round, restarts), &probed.facts)?)
    }

    /// The plan that removes the previous CAs from the control machine, if a run was killed at its very end.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub fn plan_clean_up(&self, probed: &Probed, authorities: &Authorities) -> Result<Plan, BuildError> {
        Ok(Plan::new(pipeline::clean_up(authorities), &probed.facts)?)
    }
}
