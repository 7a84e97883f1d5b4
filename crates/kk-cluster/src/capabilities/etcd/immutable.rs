//! What a running cluster cannot change about etcd: where it is, because its data and its members are there.

use crate::{findings::Setting, inputs::Inputs};

pub(super) fn settings(_inputs: &Inputs) -> Vec<Setting> {
    Vec::new()
}
