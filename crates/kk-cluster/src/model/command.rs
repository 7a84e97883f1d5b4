//! The command of a run, as far as capabilities depend on it.

use std::collections::BTreeSet;

/// The field of the file that an upgrade changes.
pub(crate) const VERSION: &str = "spec.kubernetes.version";
/// The fields of the file that hosts leaving the cluster change.
pub(crate) const ETCD_MEMBERS: &str = "spec.etcd and spec.roleGroups.etcd (kk delete node removes a member)";

/// One variant per command whose plan differs. [`crate::model::cluster::Scope`] selects the hosts that it may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// All hosts become what the file says. Also commands that only read, or that save, restore or rotate what a create made.
    Create,
    /// Hosts of the file that are not in the cluster join it.
    AddNodes,
    /// Certificates with these names are renewed, although they are valid.
    Renew(BTreeSet<String>),
    /// Hosts get another version of Kubernetes in their turn, or the cluster gets the add-ons of that version.
    Upgrade,
    /// Hosts whose turn in an upgrade failed get their previous versions back.
    RollBack,
    /// Hosts leave the cluster.
    Leave,
    /// The other hosts forget those that have left.
    Forget,
    /// The cluster is deleted.
    Delete,
    /// The registry of the file is installed or removed.
    Registry,
}

impl Command {
    /// Whether it concerns the cluster as a whole. Other commands neither install what runs in the cluster nor wait for it, so a
    /// broken add-on cannot block them. An upgrade ends with a create.
    pub(crate) fn is_create(&self) -> bool {
        *self == Self::Create
    }

    /// Whether it gives hosts other versions.
    pub(crate) fn is_upgrade(&self) -> bool {
        matches!(self, Self::Upgrade | Self::RollBack)
    }

    /// Whether it may give etcd members, control planes and the API other addresses. A command with another purpose expects the
    /// addresses of the file.
    pub(crate) fn may_move(&self) -> bool {
        match self {
            Self::Create | Self::AddNodes | Self::Leave | Self::Delete | Self::Registry => true,
            Self::Renew(_) | Self::Upgrade | Self::RollBack | Self::Forget => false,
        }
    }

    /// The setting that only this command can change in a running cluster.
    pub(crate) fn changes(&self) -> Option<&'static str> {
        match self {
            Self::Upgrade | Self::RollBack => Some(VERSION),
            Self::Forget => Some(ETCD_MEMBERS),
            Self::Create | Self::AddNodes | Self::Renew(_) | Self::Leave | Self::Delete | Self::Registry => {
                None
            }
        }
    }

    /// The names of certificates that are renewed, although they are valid.
    pub(crate) fn renewed(&self) -> &BTreeSet<String> {
        static NONE: BTreeSet<String> = BTreeSet::new();
        if let Self::Renew(names) = self { names } else { &NONE }
    }
}
