//! `spec.etcd`, as written in the file and as used by the other crates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The etcd cluster. Names follow etcd's own options.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Etcd {
    /// Who runs etcd; `kubeadm` and `external` are refused for now.
    #[serde(rename = "type")]
    pub kind: EtcdType,
    /// Access to an etcd cluster of your own.
    pub external: ExternalEtcd,
    /// Client port.
    #[schemars(range(min = 1))]
    pub port: u16,
    /// Port between members.
    #[schemars(range(min = 1))]
    pub peer_port: u16,
    /// Directory of the data on the hosts.
    pub data_dir: String,
    /// Milliseconds.
    #[schemars(range(min = 1))]
    pub heartbeat_interval: u32,
    /// Milliseconds; at least five heartbeats, at most 50000.
    #[schemars(range(min = 1, max = 50_000))]
    pub election_timeout: u32,
    /// Transactions between two snapshots.
    #[schemars(range(min = 1))]
    pub snapshot_count: u64,
    /// Hours of history that compaction keeps; 0 turns it off.
    pub auto_compaction_retention: u32,
    /// How much etcd measures: `basic` or `extensive`.
    pub metrics: EtcdMetrics,
    /// Size at which the database refuses writes, in bytes.
    pub quota_backend_bytes: Option<u64>,
    /// Largest request, in bytes.
    pub max_request_bytes: Option<u64>,
    /// Snapshot files to keep; 0 keeps all.
    pub max_snapshots: Option<u32>,
    /// Write-ahead log files to keep; 0 keeps all.
    pub max_wals: Option<u32>,
    /// How much etcd logs: `debug`, `info`, `warn`, `error`, `panic` or `fatal`.
    pub log_level: Option<EtcdLogLevel>,
    /// Further lines for etcd's environment file, each `NAME=value`.
    pub extra_args: Vec<String>,
    /// Directory of backups on the hosts of etcd.
    pub backup_dir: String,
    /// Minutes between backups.
    #[schemars(range(min = 1))]
    pub backup_period: u32,
    /// Backups that each host keeps.
    #[schemars(range(min = 1))]
    pub keep_backup_number: u32,
    /// Directory of the script that makes backups.
    pub backup_script: String,
}

impl Default for Etcd {
    fn default() -> Self {
        Self {
            kind: EtcdType::Kubekey,
            external: ExternalEtcd::default(),
            port: 2379,
            peer_port: 2380,
            data_dir: "/var/lib/etcd".to_owned(),
            heartbeat_interval: 250,
            election_timeout: 5000,
            snapshot_count: 10_000,
            auto_compaction_retention: 8,
            metrics: EtcdMetrics::Basic,
            quota_backend_bytes: None,
            max_request_bytes: None,
            max_snapshots: None,
            max_wals: None,
            log_level: None,
            extra_args: Vec::new(),
            backup_dir: "/var/backups/kube_etcd".to_owned(),
            backup_period: 1440,
            keep_backup_number: 5,
            backup_script: "/usr/local/bin/kube-scripts".to_owned(),
        }
    }
}

/// Who runs etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EtcdType {
    /// systemd on the hosts of the `etcd` group.
    Kubekey,
    /// A static pod beside each control plane.
    Kubeadm,
    /// Somebody else.
    External,
}

/// How much etcd measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "etcd's own names")]
pub enum EtcdMetrics {
    Basic,
    Extensive,
}

impl EtcdMetrics {
    /// The value of `ETCD_METRICS`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Extensive => "extensive",
        }
    }
}

/// How much etcd logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "etcd's own names")]
pub enum EtcdLogLevel {
    Debug,
    Info,
    Warn,
    Error,
    Panic,
    Fatal,
}

impl EtcdLogLevel {
    /// The value of `ETCD_LOG_LEVEL`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Panic => "panic",
            Self::Fatal => "fatal",
        }
    }
}

/// Access to an etcd cluster of the user's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ExternalEtcd {
    /// URLs of the members.
    pub endpoints: Vec<String>,
    /// PEM file with the CA.
    pub ca_file: Option<String>,
    /// PEM file with the client certificate.
    pub cert_file: Option<String>,
    /// PEM file with the client key.
    pub key_file: Option<String>,
}
