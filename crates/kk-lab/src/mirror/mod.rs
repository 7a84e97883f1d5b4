//! Sources of the hosts' downloads: programs that are built here, their archives and images as upstream lays them out, and the
//! two servers that serve them.

pub(crate) mod debian;
pub(crate) mod image;
pub(crate) mod programs;
pub(crate) mod publish;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod slice;
pub(crate) mod tls;
pub(crate) mod versions;
