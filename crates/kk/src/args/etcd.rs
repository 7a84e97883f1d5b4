//! Options of `kk etcd …`.

use std::path::PathBuf;

use clap::Args;

use super::{
    cluster::{RunOptions, directory},
    look::LookOptions,
};

const SNAPSHOT_EXAMPLES: &str = "\
Examples:
  kk etcd snapshot -f cluster.yaml                  write it to kubekey/<cluster>/backups
  kk etcd snapshot -f cluster.yaml --output json    the summary contains its path

The host keeps the snapshot as one of its backups, too. A snapshot contains all objects of the
cluster, including its Secrets: keep it safe.";

/// Options of `kk etcd snapshot`.
#[derive(Debug, Args)]
#[command(after_help = SNAPSHOT_EXAMPLES)]
pub struct EtcdSnapshot {
    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}

const RESTORE_EXAMPLES: &str = "\
Examples:
  kk etcd restore -f cluster.yaml --snapshot kubekey/prod/backups/node1-snapshot-20260801T020000Z.db
  kk etcd restore -f cluster.yaml                   from the newest backup on the hosts
  kk etcd restore -f cluster.yaml --dry-run         only show what would be done, host by host

The API is unavailable during the restore; running pods are not affected. The previous data stays
in the data directory of etcd, as member-before-TIME. If a restore is interrupted, run it again with
the same snapshot.";

/// Options of `kk etcd restore`.
#[derive(Debug, Args)]
#[command(after_help = RESTORE_EXAMPLES)]
pub struct EtcdRestore {
    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// Snapshot on the control machine [default: the newest backup on the hosts]
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,

    /// Restore even if the snapshot is from another cluster or if hosts do not answer
    #[arg(long)]
    pub force: bool,

    /// Directory with templates that replace built-in templates with the same path
    #[arg(long, value_name = "DIR", value_parser = directory)]
    pub templates: Option<PathBuf>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kk etcd status -f cluster.yaml                  leader, version, size and alarms of each member
  kk etcd status -f cluster.yaml --output json

The exit code is 0 if all members answer, belong to one cluster and have no alarm, otherwise 1. It
is 4 if no host answers.";

/// Options of `kk etcd status`.
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct EtcdStatus {
    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub look: LookOptions,
}

const DEFRAG_EXAMPLES: &str = "\
Examples:
  kk etcd defrag -f cluster.yaml -y    release the space of deleted objects

Members are defragmented one after the other, the leader last. A member answers no requests meanwhile.";

/// Options of `kk etcd defrag`.
#[derive(Debug, Args)]
#[command(after_help = DEFRAG_EXAMPLES)]
pub struct EtcdDefrag {
    /// Configuration file of the cluster, or - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub run: RunOptions,
}
