//! One list and watch of the API, shared by all bindings that select the same objects.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use tokio_util::sync::CancellationToken;

use super::Resource;
use super::monitor::{Monitor, Sink, Source};
use super::reader::Reader;
use super::store::{Store, View};
use super::watcher::Watcher;
use crate::config::WatchEvent;
use crate::metrics::OperatorMetrics;

/// Which objects are watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    /// Their resource.
    pub resource: Resource,
    /// Their namespace; `None` for all.
    pub namespace: Option<String>,
    /// Label selector, as the API server reads it; empty for none.
    pub labels: String,
    /// Field selector, as the API server reads it; empty for none.
    pub fields: String,
}

/// State of a watch's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListState {
    /// The first list has not arrived yet.
    Pending,
    /// The first list failed, for this reason; it is tried again.
    Failed(String),
    /// All objects are known.
    Ready,
}

/// A list and watch of the API, and the objects that it knows.
pub struct Watch {
    id: u64,
    selection: Selection,
    state: Mutex<State>,
    pub(super) listed: tokio::sync::watch::Sender<ListState>,
    period: Option<Duration>,
    stop: CancellationToken,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) store: Store,
    pub(super) subscribers: Vec<Subscriber>,
    started: bool,
}

/// A binding that reads the watch.
pub(super) struct Subscriber {
    pub(super) monitor: Arc<Monitor>,
    pub(super) view: usize,
    /// Whether each object that the first list finds is an event to it.
    pub(super) announce: bool,
}

impl Watch {
    pub(super) fn new(selection: Selection, period: Option<Duration>, stop: CancellationToken) -> Arc<Self> {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let (listed, _) = tokio::sync::watch::channel(ListState::Pending);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { id, selection, state: Mutex::default(), listed, period, stop })
    }

    /// Different for each watch.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The watched objects.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The watched objects, as text for messages.
    pub(super) fn what(&self) -> String {
        let selection = &self.selection;
        let mut text = format!("{} {}", selection.resource.api_version(), selection.resource.plural);
        if let Some(namespace) = &selection.namespace {
            text = format!("{text} in {namespace}");
        }
        text
    }

    pub(super) fn period(&self) -> Option<Duration> {
        self.period
    }

    /// Whether another binding of the hook reads it.
    pub(super) fn is_read_by(&self, hook: &str) -> bool {
        self.lock().subscribers.iter().any(|subscriber| &*subscriber.monitor.hook == hook)
    }

    pub(super) fn with_store<R>(&self, read: impl FnOnce(&Store) -> R) -> R {
        read(&self.lock().store)
    }

    /// Adds a binding. `None` when the watch runs already and does not keep what the binding needs.
    ///
    /// With `announce`, existing objects are `Added` events to it. A binding that only follows the set of namespaces accepts any
    /// view.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        monitor: &Arc<Monitor>,
        wanted: &View,
        announce: bool,
        sink: &dyn Sink,
    ) -> Option<()> {
        let mut state = self.lock();
        let follows = monitor.follower().is_some();
        let known = state.store.views.iter().position(|view| follows || view == wanted);
        let view = match known {
            Some(view) => view,
            None if state.started => return None,
            None => {
                state.store.views.push(wanted.clone());
                state.store.views.len() - 1
            }
        };
        monitor.add_source(Source { watch: self.clone(), view });
        let ready = *self.listed.borrow() == ListState::Ready;
        if announce && ready {
            let changes = state.store.announce(view, WatchEvent::Added, &self.selection.resource.kind);
            let deliveries = changes.iter().filter_map(|change| monitor.offer(self.id, change));
            sink.deliver(deliveries.collect());
        }
        state.subscribers.push(Subscriber { monitor: monitor.clone(), view, announce: announce && !ready });
        // One event that reaches several bindings does so in the order of their names.
        state.subscribers.sort_by(|left, right| {
            let (left, right) = (&left.monitor, &right.monitor);
            left.hook.cmp(&right.hook).then_with(|| left.binding.name.cmp(&right.binding.name))
        });
        Some(())
    }

    /// Removes a binding; with `farewell`, each object is a `Deleted` event to it. True when no binding is left.
    pub(super) fn unsubscribe(
        &self,
        monitor: &Arc<Monitor>,
        view: usize,
        farewell: Option<&dyn Sink>,
    ) -> bool {
        let mut state = self.lock();
        state.subscribers.retain(|subscriber| !Arc::ptr_eq(&subscriber.monitor, monitor));
        if let Some(sink) = farewell {
            let changes = state.store.announce(view, WatchEvent::Deleted, &self.selection.resource.kind);
            sink.deliver(changes.iter().filter_map(|change| monitor.offer(self.id, change)).collect());
        }
        state.subscribers.is_empty()
    }

    /// Waits until the first list has succeeded or failed, or the watch has ended.
    pub async fn settled(&self) -> ListState {
        let mut receiver = self.listed.subscribe();
        tokio::select! {
            settled = receiver.wait_for(|listed| *listed != ListState::Pending) => {
                settled.map_or(ListState::Pending, |listed| listed.clone())
            }
            () = self.stop.cancelled() => ListState::Pending,
        }
    }

    /// Whether all objects are known.
    pub(super) fn is_ready(&self) -> bool {
        *self.listed.borrow() == ListState::Ready
    }

    /// Ends the watch.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Begins to list and watch, unless it has begun before.
    pub(super) fn start(
        self: &Arc<Self>,
        client: Client,
        sink: Arc<dyn Sink>,
        metrics: OperatorMetrics,
        reader: &Reader,
    ) {
        if std::mem::replace(&mut self.lock().started, true) {
            return;
        }
        let watcher = Watcher::new(self.clone(), client, sink, metrics, reader.pace());
        let stop = self.stop.clone();
        reader.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = watcher.run() => {}
            }
        });
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
