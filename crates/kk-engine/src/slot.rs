//! Typed values by which lanes wait for each other. Each is written once, by the task that provides it.

use std::{
    any::Any,
    collections::{BTreeMap, HashMap},
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;

/// The name of a slot, unique in a pipeline: `etcd_healthy`, `images(node1)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotKey {
    name: String,
    host: Option<String>,
}

impl SlotKey {
    /// The host of the slot, if it is a slot per host.
    pub(crate) fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }
}

impl fmt::Display for SlotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "{}({host})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// A slot that carries a `T`. `Slot<()>` only signals that a condition holds.
#[derive(Debug)]
pub struct Slot<T> {
    key: SlotKey,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), value: PhantomData }
    }
}

impl<T: Send + Sync + 'static> Slot<T> {
    /// A slot for the whole pipeline.
    pub fn new(name: &str) -> Self {
        Self { key: SlotKey { name: name.to_owned(), host: None }, value: PhantomData }
    }

    /// A slot for one host.
    pub fn of_host(name: &str, host: &str) -> Self {
        let key = SlotKey { name: name.to_owned(), host: Some(host.to_owned()) };
        Self { key, value: PhantomData }
    }

    /// Its name, for `needs` and `provides`.
    pub fn key(&self) -> SlotKey {
        self.key.clone()
    }
}

/// State of one slot. `Failed` ends the wait of all works that need it.
#[derive(Clone)]
enum State {
    Empty,
    Filled(Arc<dyn Any + Send + Sync>),
    Failed(String),
}

/// All slots of one run. Cheap to clone; the clones share the values.
#[derive(Clone, Default)]
pub struct Slots {
    slots: Arc<Mutex<HashMap<SlotKey, watch::Sender<State>>>>,
    outputs: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Slots {
    fn sender(&self, key: &SlotKey) -> watch::Sender<State> {
        let mut slots = self.slots.lock().expect("no holder of this lock panics");
        slots.entry(key.clone()).or_insert_with(|| watch::channel(State::Empty).0).clone()
    }

    /// Stores a value for the end of the command: the summary and `--output json`. It must not contain a secret.
    pub fn output(&self, name: impl Into<String>, value: impl Into<String>) {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner).insert(name.into(), value.into());
    }

    /// The values stored so far.
    pub(crate) fn outputs(&self) -> BTreeMap<String, String> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fills a slot. The first value is kept: a slot is written once.
    pub fn fill<T: Send + Sync + 'static>(&self, slot: &Slot<T>, value: T) {
        self.set(&slot.key, State::Filled(Arc::new(value)));
    }

    /// Fills a slot that carries no value.
    pub fn done(&self, key: &SlotKey) {
        self.set(key, State::Filled(Arc::new(())));
    }

    /// Declares that a slot will never be filled. Current and later waits for it get the reason.
    pub fn fail(&self, key: &SlotKey, reason: impl Into<String>) {
        self.set(key, State::Failed(reason.into()));
    }

    fn set(&self, key: &SlotKey, state: State) {
        self.sender(key).send_if_modified(|now| {
            let empty = matches!(now, State::Empty);
            if empty {
                *now = state;
            }
            empty
        });
    }

    /// The value of a filled slot.
    pub fn get<T: Send + Sync + 'static>(&self, slot: &Slot<T>) -> Option<Arc<T>> {
        match &*self.sender(&slot.key).borrow() {
            State::Filled(value) => value.clone().downcast::<T>().ok(),
            _ => None,
        }
    }

    /// Whether the slot is filled now.
    pub fn is_filled(&self, key: &SlotKey) -> bool {
        matches!(&*self.sender(key).borrow(), State::Filled(_))
    }

    /// Waits until the slot is filled.
    ///
    /// # Errors
    /// The reason given to [`Slots::fail`].
    pub async fn wait(&self, key: &SlotKey) -> Result<(), String> {
        let mut receiver = self.sender(key).subscribe();
        let state = receiver.wait_for(|state| !matches!(state, State::Empty)).await;
        match state.as_deref() {
            Ok(State::Failed(reason)) => Err(reason.clone()),
            Ok(_) => Ok(()),
            Err(_) => Err("the run has ended".into()),
        }
    }
}
