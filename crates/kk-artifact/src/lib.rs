//! Knows the versions, addresses and checksums of the programs that make a cluster, and fetches them.
//!
//! Two halves. [`Catalogue`] and [`Versions`] are data without I/O: which version of a component goes with a version
//! of Kubernetes, where it is published, and what its SHA-256 must be. [`Store`] is a directory on the control
//! machine: it downloads an [`Artifact`], verifies it, takes the programs out of it, and finds it again next time.
//! [`bundle`] carries what a store holds, and images, to where there is no network.
//! The store owns everything below its directory; several processes may use one directory at once.

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
mod stamp;
mod store;
mod version_list;
mod versions;

pub use address::Address;
pub use artifact::{Artifact, Checksum, Sha256Sum};
pub use catalogue::{Catalogue, merge_catalogues};
pub use charts::{Content, Obtained, is_local_chart, local_chart, local_manifest, obtain};
pub use error::Error;
pub use image_archive::ImageArchive;
pub use kk_config::Component;
pub use oci::{Layout, LayoutImage, PushImage, PushNews, Pushed, ask_registry, push};
pub use store::{LocalFile, Progress, ProgressState, Retry, Store, StoreSettings};
pub use versions::{Image, Versions};
