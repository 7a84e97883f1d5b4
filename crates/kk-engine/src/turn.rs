//! Turns: which hosts may be inside a sequence of tasks at once, in which order, and what a failure means for the rest.

use std::borrow::Cow;

/// A permit with a key. A host holds it from its first task with that key to its last one, over all lanes; the tasks
/// in between (drain, replace, start, wait until healthy, uncordon) are the host's turn. A turn that fails ends the key
/// for all hosts whose turn has not begun, whatever `--ignore-err` says.
///
/// Turns of several tasks begin strictly in order; those of one task begin as their hosts are ready, unless an order is
/// given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Tasks with the same key belong to the same turns. Their `most` and `order` are the same.
    pub key: Cow<'static, str>,
    /// How many hosts may be in their turn at once.
    pub most: Most,
    /// Hosts in the order of their turns; those that are not named follow in the order of the pipeline.
    pub order: Vec<String>,
}

/// How many hosts may be in their turn at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Most {
    /// So many, at least one.
    Hosts(usize),
    /// A share of the hosts that have a task with the key, at least one host.
    Percent(u8),
}

impl Turn {
    /// One host after the other.
    pub fn one_by_one(key: impl Into<Cow<'static, str>>) -> Self {
        Self::new(key, Most::Hosts(1))
    }

    /// So many hosts at once.
    pub fn new(key: impl Into<Cow<'static, str>>, most: Most) -> Self {
        Self { key: key.into(), most, order: Vec::new() }
    }

    /// Sets the order of the hosts.
    #[must_use]
    pub fn order<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.order = hosts.into_iter().map(Into::into).collect();
        self
    }
}

impl Most {
    /// The limit for this number of hosts.
    #[must_use]
    pub fn of(self, hosts: usize) -> usize {
        match self {
            Self::Hosts(most) => most.max(1),
            Self::Percent(percent) => (hosts * usize::from(percent) / 100).max(1),
        }
    }
}
