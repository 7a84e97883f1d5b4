//! Settings of etcd.

/// etcd run by systemd. Names and defaults follow etcd's own options of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etcd {
    /// Client port.
    pub port: u16,
    /// Port between members.
    pub peer_port: u16,
    /// Directory of the data on the hosts; absolute.
    pub data_dir: String,
    /// Milliseconds.
    pub heartbeat_interval_ms: u32,
    /// Milliseconds; at least five heartbeats.
    pub election_timeout_ms: u32,
    /// Transactions between two snapshots.
    pub snapshot_count: u64,
    /// Hours of history that compaction keeps; 0 turns it off.
    pub auto_compaction_retention: u32,
    /// `basic` or `extensive`.
    pub metrics: String,
    /// Bytes; `None` leaves etcd's own default (as below).
    pub quota_backend_bytes: Option<u64>,
    /// Bytes.
    pub max_request_bytes: Option<u64>,
    /// Snapshot files to keep.
    pub max_snapshots: Option<u32>,
    /// Write-ahead log files to keep.
    pub max_wals: Option<u32>,
    /// `debug`, `info`, `warn`, `error`, `panic` or `fatal`.
    pub log_level: Option<String>,
    /// Further lines for etcd's environment file, each `NAME=value`.
    pub extra_args: Vec<String>,
    /// Backups on the hosts.
    pub backup: EtcdBackup,
}

/// Backups that each host of etcd makes by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdBackup {
    /// Where they are; absolute.
    pub dir: String,
    /// Minutes between two of them.
    pub period_minutes: u32,
    /// How many a host keeps.
    pub keep: u32,
    /// Where the script is that makes them; absolute.
    pub script_dir: String,
}
