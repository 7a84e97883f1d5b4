//! Checks the waits between works: refuses a plan that could never finish, before anything has run.

use std::collections::HashMap;

use super::{Plan, Work};
use crate::{PlanError, SlotKey};

/// Checks that every slot has one provider and that no work waits for itself.
pub(super) fn check(plan: &Plan) -> Result<(), PlanError> {
    let providers = providers(plan)?;
    let edges = edges(plan, &providers)?;
    match cycle(&edges) {
        None => Ok(()),
        Some(works) => {
            let name =
                |&work: &usize| format!("{} on {}", plan.path(&plan.works[work]), plan.works[work].host);
            Err(PlanError::Cycle(works.iter().map(name).collect::<Vec<_>>().join(" → ")))
        }
    }
}

fn providers(plan: &Plan) -> Result<HashMap<&SlotKey, usize>, PlanError> {
    let mut providers: HashMap<&SlotKey, usize> = HashMap::new();
    for (index, work) in plan.works.iter().enumerate() {
        for slot in &work.provides {
            if let Some(first) = providers.insert(slot, index) {
                let name = |work: &Work| format!("{} on {}", plan.path(work), work.host);
                return Err(PlanError::TwoProviders {
                    slot: slot.to_string(),
                    first: name(&plan.works[first]),
                    second: name(work),
                });
            }
        }
    }
    Ok(providers)
}

/// For each work, the works that it waits for: the providers of its slots and, unless it runs in the background, the previous
/// work in its lane.
fn edges(plan: &Plan, providers: &HashMap<&SlotKey, usize>) -> Result<Vec<Vec<usize>>, PlanError> {
    let mut before: HashMap<&str, usize> = HashMap::new();
    let mut edges = Vec::with_capacity(plan.works.len());
    for (index, work) in plan.works.iter().enumerate() {
        let mut waits_for = Vec::new();
        for slot in work.needs.iter().chain(&work.after) {
            let provider = providers.get(slot).ok_or_else(|| PlanError::NoProvider {
                task: plan.path(work),
                host: work.host.clone(),
                slot: slot.to_string(),
            })?;
            waits_for.push(*provider);
        }
        if !plan.steps[work.step].background {
            waits_for.extend(before.insert(&work.host, index));
        }
        edges.push(waits_for);
    }
    add_turns(plan, &mut edges);
    Ok(edges)
}

/// In turns that begin in order, each host's works wait for the works of the previous host. If there is no cycle even with one
/// host at a time, there is none with more hosts at once: an earlier work in the order never waits for a later one.
fn add_turns(plan: &Plan, edges: &mut [Vec<usize>]) {
    for turns in plan.turns.iter().filter(|turns| turns.in_order) {
        for ((_, before), (_, works)) in turns.hosts.iter().zip(turns.hosts.iter().skip(1)) {
            for &work in works {
                edges[work].extend(before);
            }
        }
    }
}

/// The works of a cycle, each waiting for the next, with the first again at the end.
fn cycle(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        OnPath,
        Done,
    }
    let mut seen = vec![Seen::Not; edges.len()];
    for start in 0..edges.len() {
        if seen[start] != Seen::Not {
            continue;
        }
        // The path from `start`, each work with the number of its edges that were followed.
        let mut path = vec![(start, 0)];
        seen[start] = Seen::OnPath;
        while let Some((work, followed)) = path.last_mut() {
            let Some(&next) = edges[*work].get(*followed) else {
                seen[*work] = Seen::Done;
                path.pop();
                continue;
            };
            *followed += 1;
            match seen[next] {
                Seen::Done => {}
                Seen::Not => {
                    seen[next] = Seen::OnPath;
                    path.push((next, 0));
                }
                Seen::OnPath => {
                    let from = path.iter().position(|&(work, _)| work == next)?;
                    return Some(path[from..].iter().map(|&(work, _)| work).chain([next]).collect());
                }
            }
        }
    }
    None
}
