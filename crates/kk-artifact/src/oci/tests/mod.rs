//! Documents of registries, and pushes into a registry in the process of the test.

mod documents;
mod hostile;
mod hub;
mod pushes;
