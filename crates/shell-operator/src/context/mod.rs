//! Binding contexts: what a hook finds in `$BINDING_CONTEXT_PATH`.
//!
//! A [`BindingContext`] waits in a queue as data; `write` turns the contexts of one run into the file's text.
//! Snapshots are read only then, each once, so that all contexts of a run see the same state.

mod write;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::config::WatchEvent;
#[doc(hidden)]
pub use write::{Snapshots, item_text, write};

/// An object as hooks see it: canonical JSON texts, shared with the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The object; `None` when objects are not kept.
    pub object: Option<Arc<[u8]>>,
    /// The filter's result; `None` without a filter.
    pub filter_result: Option<Arc<[u8]>>,
}

impl Item {
    /// The filter's result, or without a filter the object, as a value of Rust.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        let text = self.filter_result.as_ref().or(self.object.as_ref());
        serde_json::from_slice(text.map_or(b"null", |text| text))
    }
}

/// One reason to run a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct BindingContext {
    /// Name of the binding.
    pub binding: Arc<str>,
    /// The event.
    pub event: Event,
    /// Group of the binding.
    pub group: Option<Arc<str>>,
    /// Kubernetes bindings whose objects are added.
    pub snapshots: Arc<[String]>,
}

/// An event that runs a hook.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The operator starts.
    OnStartup,
    /// A scheduled time was reached.
    Schedule,
    /// The hook gets all objects of the binding.
    Synchronization,
    /// An object changed.
    Object {
        /// How.
        change: WatchEvent,
        /// Its state at that time, or the last one known.
        item: Item,
        /// Where it is and what it is called, for v0 hooks.
        identity: Arc<Identity>,
    },
    /// A request is to be allowed or not; holds the review, as JSON text.
    Validating(Arc<[u8]>),
    /// A request may be changed; holds the review, as JSON text.
    Mutating(Arc<[u8]>),
    /// Objects are to be converted.
    Conversion {
        /// Version they have.
        from: Arc<str>,
        /// Version they shall have.
        to: Arc<str>,
        /// The review, as JSON text.
        review: Arc<[u8]>,
    },
}

/// Kind, namespace and name of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Kind, as the object names it.
    pub kind: String,
    /// Namespace; empty for cluster-wide objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl BindingContext {
    /// The context of a run at start.
    pub fn on_startup() -> Self {
        Self { binding: "onStartup".into(), event: Event::OnStartup, group: None, snapshots: Arc::new([]) }
    }

    /// Whether the context is handed over as one of its group: webhooks never are.
    pub fn is_grouped(&self) -> bool {
        self.group.is_some()
            && matches!(self.event, Event::Schedule | Event::Synchronization | Event::Object { .. })
    }
}

#[doc(hidden)]
/// Merges the changes of one object in one binding into one, and the times of a schedule into one; everything else stays, in
/// order.
pub fn one_of_a_kind(contexts: Vec<BindingContext>) -> Vec<BindingContext> {
    let mut known: HashMap<(Arc<str>, Option<Arc<Identity>>), usize> = HashMap::new();
    let mut kept: Vec<Option<BindingContext>> = Vec::with_capacity(contexts.len());
    for mut context in contexts {
        let object = match &context.event {
            Event::Object { identity, .. } => Some(Some(identity.clone())),
            Event::Schedule => Some(None),
            _ => None,
        };
        let place = object.and_then(|object| known.insert((context.binding.clone(), object), kept.len()));
        let earlier = place.and_then(|place| kept[place].take()).map(|earlier| earlier.event);
        if let (Event::Object { change, .. }, Some(Event::Object { change: earlier, .. })) =
            (&mut context.event, earlier)
        {
            *change = earlier.followed_by(*change);
        }
        kept.push(Some(context));
    }
    kept.into_iter().flatten().collect()
}

#[doc(hidden)]
/// Drops each context that is followed by another of the same group: the last one represents all.
pub fn collapse_groups(contexts: Vec<BindingContext>) -> Vec<BindingContext> {
    let mut kept: Vec<BindingContext> = Vec::with_capacity(contexts.len());
    for context in contexts {
        if let Some(last) =
            kept.last_mut().filter(|last| context.group.is_some() && last.group == context.group)
        {
            *last = context;
        } else {
            kept.push(context);
        }
    }
    kept
}
