//! Commands: each builds its plan from capabilities.

pub(crate) mod pipelines;
pub(crate) mod precheck;
pub(crate) mod probe;
pub(crate) mod session;
pub(crate) mod status;
