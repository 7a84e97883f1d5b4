//! The groups of scenarios, a file each. Limits are several times what each scenario takes on two cores.

mod balancers;
mod certificates;
mod core;
mod damage;
mod high_availability;
mod input;
mod kills;
mod kubesphere;
mod long;
mod networks;
mod nodes;
mod offline;
mod settings;
mod trust;
mod upgrades;
mod variants;

use crate::suite::Group;

/// A directory of `kk-cluster` that holds a capability.
macro_rules! capability {
    ($name:literal) => {
        concat!("crates/kk-cluster/src/capabilities/", $name, "/")
    };
}
use capability;

/// All of them. The first group is what `make e2e` runs.
pub(crate) const GROUPS: &[Group] = &[
    core::GROUP,
    damage::GROUP,
    settings::GROUP,
    input::GROUP,
    trust::GROUP,
    kills::GROUP,
    nodes::GROUP,
    networks::GROUP,
    high_availability::GROUP,
    balancers::GROUP,
    upgrades::GROUP,
    certificates::GROUP,
    offline::GROUP,
    kubesphere::GROUP,
    variants::GROUP,
    long::GROUP,
];
