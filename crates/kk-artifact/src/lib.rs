//! Knows the versions, addresses and checksums of the binaries of a cluster, and fetches them.
//!
//! There are two halves. [`Catalogue`] and [`Versions`] are data without I/O: the version of a component for each version of
//! Kubernetes, its address, and its SHA-256. [`Store`] is a directory on the control machine: it downloads an [`Artifact`],
//! verifies it, extracts the binaries, and finds them again later. [`bundle`] transports the content of a store, and images, to
//! machines without a network. The store owns everything below its directory; several processes may use one directory at once.

mod address;
mod artifact;
pub mod bundle;
mod catalogue;
mod charts;
mod client;
mod error;
mod hashing;
mod image_archive;
mod lock;
mod oci;
mod packages;
mod space;
mod stamp;
mod store;
mod version_list;
mod versions;

pub use address::Address;
pub use artifact::{Artifact, Checksum, Sha256Sum};
pub use catalogue::{Catalogue, merge_catalogues};
pub use charts::{
    CILIUM_REPOSITORY, Content, Obtained, is_local_chart, local_chart, local_manifest, newest_version, obtain,
};
pub use error::Error;
pub use image_archive::ImageArchive;
pub use kk_config::Component;
pub use oci::{Layout, LayoutImage, PushImage, PushNews, Pushed, ask_registry, push, stored_logins};
pub use store::{LocalFile, Progress, ProgressState, Retry, Store, StoreSettings};
pub use versions::{Image, Versions};
