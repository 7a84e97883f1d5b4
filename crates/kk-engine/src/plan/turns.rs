//! The turns of a plan: the works of each host's turn, and the order in which turns begin.

use std::collections::BTreeMap;

use super::{Plan, Work};
use crate::{PlanError, Turn};

/// All turns with one key.
pub(crate) struct PlannedTurns {
    /// The key, for messages.
    pub(crate) key: String,
    /// Maximum number of hosts that may be in their turn at once.
    pub(crate) most: usize,
    /// Whether turns begin only in the order of `hosts`.
    pub(crate) in_order: bool,
    /// Each host with the works of its turn that have something to do.
    pub(crate) hosts: Vec<(String, Vec<usize>)>,
}

/// Collects the turns. Works without a difference need no turn.
///
/// # Errors
/// Tasks with the same key that describe the turn differently.
pub(super) fn collect(plan: &Plan) -> Result<Vec<PlannedTurns>, PlanError> {
    let mut by_key: BTreeMap<&str, (&Turn, Vec<usize>)> = BTreeMap::new();
    for (index, work) in plan.works.iter().enumerate() {
        let Some(turn) = &plan.steps[work.step].turn else { continue };
        let (first, works) = by_key.entry(&turn.key).or_insert_with(|| (turn, Vec::new()));
        if *first != turn {
            return Err(PlanError::DifferentTurns { task: plan.path(work), key: turn.key.to_string() });
        }
        works.push(index);
    }
    Ok(by_key.into_values().map(|(turn, works)| planned(plan, turn, &works)).collect())
}

fn planned(plan: &Plan, turn: &Turn, works: &[usize]) -> PlannedTurns {
    let mut all: Vec<&str> = works.iter().map(|&index| plan.works[index].subject()).collect();
    all.sort_unstable();
    all.dedup();
    let mut hosts: Vec<(String, Vec<usize>)> = Vec::new();
    for &index in works.iter().filter(|&&index| !plan.works[index].operations.is_empty()) {
        let host = plan.works[index].subject();
        match hosts.iter_mut().find(|(known, _)| known == host) {
            Some((_, works)) => works.push(index),
            None => hosts.push((host.to_owned(), vec![index])),
        }
    }
    let position = |host: &String| turn.order.iter().position(|named| named == host).unwrap_or(usize::MAX);
    hosts.sort_by_key(|(host, _)| position(host));
    PlannedTurns {
        key: turn.key.to_string(),
        most: turn.most.of(all.len()),
        in_order: !turn.order.is_empty() || hosts.iter().any(|(_, works)| works.len() > 1),
        hosts,
    }
}

impl Work {
    /// The host that the work concerns: usually the host that does it.
    pub(crate) fn subject(&self) -> &str {
        self.about.as_deref().unwrap_or(&self.host)
    }
}
