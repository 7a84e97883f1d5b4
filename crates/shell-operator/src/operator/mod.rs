//! The operator: loads hooks, fills queues, runs hooks, and ends tidily.
//!
//! [`Operator::builder`] puts one together; a [`Handle`] is the running one. Its state is in `core`.

mod active;
mod api;
mod builder;
mod clients;
mod core;
mod debug;
mod debug_text;
mod enable;
mod gate;
mod http;
mod leader;
mod life;
mod log_level;
mod long_tasks;
mod reload;
mod run;
mod runner;
mod schedules;
mod settings;
mod sink;
mod start;
mod tmp_dir;
mod webhooks;

pub use builder::{Builder, Handle, Operator};
pub use leader::LeaseName;
pub use settings::{Settings, WebhookServer, WebhookSettings};
pub use start::StartError;

pub use crate::queue::{QueueDump, TaskDump};
pub use crate::webhook::server::TlsFiles;
