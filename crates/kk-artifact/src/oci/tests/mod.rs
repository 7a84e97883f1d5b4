//! Pushes into a registry in the process of the test.

mod hub;
mod pushes;
