//! Selects the next work of a lane: either code, or as many scripts as can be sent together.

use std::{collections::HashSet, sync::Arc};

use super::shared::Shared;
use crate::{Apply, Failure, Load, Run, Script, SlotKey};

/// Larger batches are split, because their files are kept in memory.
const BATCH_BYTES: usize = 16 << 20;

/// A position in a lane: the index into its works, and into that work's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) work: usize,
    pub(super) operation: usize,
}

/// The work of a lane for one round trip or one piece of code.
pub(super) enum Selected {
    /// Code of the control machine.
    Code(Arc<dyn Run>),
    /// Scripts for one round trip.
    Scripts(Vec<(Position, Script)>),
}

/// Selects the next work in a lane from `from` on. The first work's slots are filled.
///
/// # Errors
/// The script of the first operation cannot be made.
pub(super) fn select_next(shared: &Shared, works: &[usize], from: Position) -> Result<Selected, Failure> {
    let mut scripts: Vec<(Position, Script)> = Vec::new();
    let mut bytes = 0;
    let mut provided: HashSet<&SlotKey> = HashSet::new();
    'works: for (nth, &index) in works.iter().enumerate().skip(from.work) {
        let work = &shared.plan.works[index];
        if nth > from.work && !joins(shared, works[from.work], index, &provided) {
            break;
        }
        let first = if nth == from.work { from.operation } else { 0 };
        for (number, operation) in work.operations.iter().enumerate().skip(first) {
            if operation.action.load() == Load::Pull && !scripts.is_empty() {
                break 'works;
            }
            let script = match operation.action.apply(&shared.plan.facts[&work.host]) {
                Apply::Run(code) if scripts.is_empty() => return Ok(Selected::Code(code)),
                Apply::Run(_) => break 'works,
                Apply::Script(script) => script,
                // Slots that this same batch fills have no values yet.
                Apply::Late(_) if !work.needs.iter().all(|slot| shared.slots.is_filled(slot)) => break 'works,
                Apply::Late(make) => match make(&shared.slots) {
                    Ok(script) => script,
                    Err(failure) if scripts.is_empty() => return Err(failure),
                    // The error is reported when this script is the first of a batch, after everything before it is done.
                    Err(_) => break 'works,
                },
            };
            bytes += script.text.len() + script.files.iter().map(|file| file.content.len()).sum::<usize>();
            if bytes > BATCH_BYTES && !scripts.is_empty() {
                break 'works;
            }
            scripts.push((Position { work: nth, operation: number }, script));
        }
        provided.extend(&work.provides);
    }
    Ok(Selected::Scripts(scripts))
}

/// Whether a work may be sent together with the `first` of a batch: it has nothing to wait for, and its turn, if it has one, is
/// the turn of the first.
fn joins(shared: &Shared, first: usize, work: usize, provided: &HashSet<&SlotKey>) -> bool {
    let there = |slot: &SlotKey| provided.contains(slot) || shared.slots.is_filled(slot);
    let (turn, work) = (shared.turns.of(work), &shared.plan.works[work]);
    turn == shared.turns.of(first) && work.needs.iter().chain(&work.after).all(there)
}
