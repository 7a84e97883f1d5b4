//! Turns: how many hosts may be inside a sequence of tasks at once, in which order, and the effect of a failure on the other
//! hosts.

use std::borrow::Cow;

/// A permit with a key. A host holds it from its first task with that key to its last one, over all lanes. The tasks in between
/// (drain, replace, start, wait until healthy, uncordon) are the host's turn. If a turn fails, no host whose turn has not begun
/// starts a turn with that key, regardless of `--ignore-err`.
///
/// Turns of several tasks begin strictly in order. Turns of a single task begin as their hosts are ready, unless an order is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Tasks with the same key belong to the same turns. They must have the same `most` and `order`.
    pub key: Cow<'static, str>,
    /// How many hosts may be in their turn at once.
    pub most: Most,
    /// Hosts in the order of their turns; hosts that are not listed follow in the order of the pipeline.
    pub order: Vec<String>,
}

/// How many hosts may be in their turn at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Most {
    /// This many hosts, at least one.
    Hosts(usize),
    /// A share of the hosts that have a task with the key, at least one host.
    Percent(u8),
}

impl Turn {
    /// One host after the other.
    pub fn one_by_one(key: impl Into<Cow<'static, str>>) -> Self {
        Self::new(key, Most::Hosts(1))
    }

    /// At most this many hosts at once.
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
