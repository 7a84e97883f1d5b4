//! `kk delete cluster`.

use kk_engine::Pipeline;

use crate::modules::removal::{self, Removal};

/// From a cluster, or what is left of one, back to the hosts as they were.
pub(crate) fn pipeline(removal: &Removal) -> Pipeline {
    Pipeline { name: "delete cluster".to_owned(), modules: vec![removal::module(removal)] }
}
