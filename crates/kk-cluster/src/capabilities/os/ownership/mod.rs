//! The owner of a host: the cluster in its record, and the run of kk that works on it.

pub(crate) mod identity;
pub(crate) mod other_run;
pub(super) mod record_identity;
