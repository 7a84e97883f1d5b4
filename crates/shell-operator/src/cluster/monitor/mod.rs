//! One binding's view of the cluster.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::counts::Counts;
use super::held::Held;
use super::namespaces::Notice;
use super::store::{Store, ViewChange};
use super::{ListState, Watch};
use crate::config::{ConfigVersion, KubernetesBinding, NamespaceSelector, WatchEvent};
use crate::context::{BindingContext, Event, Identity, Item};
use crate::metrics::{EventTimes, OperatorMetrics};
use crate::queue::{BindingType, Run, Task, Work};

/// Takes the changes that hooks are to be run for. Called with locks held: must not block.
pub trait Sink: Send + Sync + 'static {
    /// Changes of one object, for all bindings that it reaches, in the order of hook and binding names.
    fn deliver(&self, deliveries: Vec<Delivery>);
}

/// A change for one binding.
pub struct Delivery {
    /// The binding.
    pub monitor: Arc<Monitor>,
    /// The change.
    pub change: Change,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The kind of the change.
    pub event: WatchEvent,
    /// The object, as the binding wants it.
    pub item: Item,
    /// Which object.
    pub identity: Arc<Identity>,
}

/// A kubernetes binding of a hook while it is watched.
pub struct Monitor {
    /// The hook.
    pub hook: Arc<str>,
    /// The binding's position in the hook's configuration.
    pub index: usize,
    /// The binding.
    pub binding: KubernetesBinding,
    version: ConfigVersion,
    name: Arc<str>,
    group: Option<Arc<str>>,
    included: Arc<[String]>,
    /// Receives the namespaces instead of the hook.
    follower: Option<UnboundedSender<Notice>>,
    times: OnceLock<EventTimes>,
    /// Whether all its objects were known once: from then on its snapshot may be used.
    known: tokio::sync::watch::Sender<bool>,
    state: Mutex<State>,
    stop: CancellationToken,
}

#[derive(Default)]
struct State {
    sources: Vec<Source>,
    events: Events,
    since_start: Counts,
    since_read: Counts,
    attached: bool,
    /// Sends messages to the task that follows its namespaces, if there is one.
    notices: Option<UnboundedSender<Notice>>,
}

/// The handling of changes.
#[derive(Default)]
enum Events {
    /// They are delivered.
    #[default]
    Open,
    /// They are dropped: the state at start, which is read later, has them.
    Dropped,
    /// They wait until the hook has received the state at start.
    Held(Held),
}

/// A watch that the monitor reads, and its view there.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) watch: Arc<Watch>,
    pub(super) view: usize,
}

impl Monitor {
    /// A monitor that drops events, because the hook has not had the state at start, and watches nothing yet.
    pub fn new(
        hook: Arc<str>,
        index: usize,
        version: ConfigVersion,
        binding: KubernetesBinding,
    ) -> Arc<Self> {
        let state = State { events: Events::Dropped, ..State::default() };
        Arc::new(Self::with_state(hook, index, version, binding, state))
    }

    /// A monitor that reports added and removed namespaces to `follower`, for the binding at `index` of a hook.
    pub(super) fn of_namespaces(
        hook: Arc<str>,
        index: usize,
        follower: UnboundedSender<Notice>,
    ) -> Arc<Self> {
        let binding = KubernetesBinding {
            events: vec![WatchEvent::Added, WatchEvent::Deleted],
            keep_full_objects: false,
            ..KubernetesBinding::of_kind("Namespace".to_owned())
        };
        let monitor = Self::with_state(hook, index, ConfigVersion::V1, binding, State::default());
        Arc::new(Self { follower: Some(follower), ..monitor })
    }

    fn with_state(
        hook: Arc<str>,
        index: usize,
        version: ConfigVersion,
        binding: KubernetesBinding,
        state: State,
    ) -> Self {
        Self {
            hook,
            index,
            version,
            name: binding.name.as_str().into(),
            group: binding.group.as_deref().map(Into::into),
            included: binding.include_snapshots_from.clone().into(),
            binding,
            follower: None,
            times: OnceLock::new(),
            known: tokio::sync::watch::Sender::new(false),
            state: Mutex::new(state),
            stop: CancellationToken::new(),
        }
    }

    /// Where the times of its events go.
    pub(super) fn times(&self, metrics: &OperatorMetrics) -> &EventTimes {
        let KubernetesBinding { name, queue, filter, .. } = &self.binding;
        self.times.get_or_init(|| metrics.event_times(&self.hook, name, queue, filter.is_some()))
    }

    /// Whether it reads the namespaces that have certain labels. This set of namespaces changes.
    pub fn follows_namespaces(&self) -> bool {
        matches!(self.binding.namespace, NamespaceSelector::Labels(_))
    }

    pub(super) fn follower(&self) -> Option<&UnboundedSender<Notice>> {
        self.follower.as_ref()
    }

    /// The run of the hook for a change.
    pub fn event_task(&self, change: Change) -> Task {
        let Change { event, item, identity } = change;
        self.task(Event::Object { change: event, item, identity }, Vec::new())
    }

    /// The run of the hook that hands over all objects.
    pub fn synchronization_task(&self) -> Task {
        self.task(Event::Synchronization, vec![self.index])
    }

    fn task(&self, event: Event, synchronizes: Vec<usize>) -> Task {
        let context = BindingContext {
            binding: self.name.clone(),
            event,
            group: self.group.clone(),
            snapshots: self.included.clone(),
        };
        let run = Run {
            binding_type: BindingType::Kubernetes,
            contexts: vec![context],
            allow_failure: self.binding.allow_failure,
            synchronizes,
            combines: self.version == ConfigVersion::V1,
        };
        Task::new(self.hook.clone(), Work::Run(run))
    }

    pub(super) fn set_notices(&self, notices: UnboundedSender<Notice>) {
        self.lock().notices = Some(notices);
    }

    pub(super) fn notices(&self) -> Option<UnboundedSender<Notice>> {
        self.lock().notices.clone()
    }

    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    pub(super) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Makes an `Added` event of each object that is known, as v0 hooks expect it at start.
    pub fn announce_existing(self: &Arc<Self>) {
        self.hold();
        for Source { watch, view } in self.sources() {
            let kind = &watch.selection().resource.kind;
            watch.with_store(|store| {
                self.drop_held(watch.id());
                for change in store.announce(view, WatchEvent::Added, kind) {
                    self.offer(watch.id(), &change);
                }
            });
        }
    }

    pub(super) fn add_source(&self, source: Source) {
        self.lock().sources.push(source);
    }

    /// Stops reading from a watch; returns the sources that were removed.
    pub(super) fn remove_sources(&self, remove: impl Fn(&Watch) -> bool) -> Vec<Source> {
        let mut state = self.lock();
        let (removed, kept) =
            std::mem::take(&mut state.sources).into_iter().partition(|source| remove(&source.watch));
        state.sources = kept;
        removed
    }

    /// The watches that the monitor reads.
    pub(super) fn sources(&self) -> Vec<Source> {
        self.lock().sources.clone()
    }

    /// All objects, sorted by namespace and name.
    pub fn snapshot(&self) -> Vec<Item> {
        self.read(false)
    }

    /// All objects for the run at start. They include earlier changes, which are therefore dropped.
    pub fn snapshot_for_start(&self) -> Vec<Item> {
        self.read(true)
    }

    fn read(&self, for_start: bool) -> Vec<Item> {
        if for_start {
            self.hold();
        }
        let sources = self.sources();
        let one = sources.len() == 1;
        let mut items: Vec<(Box<str>, Item)> = Vec::new();
        for Source { watch, view } in sources {
            watch.with_store(|store| {
                // The objects of a namespace that was added later are shown only when all of them are known.
                if !watch.is_ready() {
                    return;
                }
                if for_start {
                    self.drop_held(watch.id());
                }
                items.reserve(store.len());
                items.extend(
                    store.items(view).map(|(key, item)| (if one { "".into() } else { key.into() }, item)),
                );
            });
        }
        if !one {
            items.sort_by(|(left, _), (right, _)| left.cmp(right));
        }
        items.into_iter().map(|(_, item)| item).collect()
    }

    /// Whether it reads from any watch, or waits for namespaces to read from.
    pub fn is_attached(&self) -> bool {
        self.lock().attached
    }

    pub(super) fn set_attached(&self) {
        self.lock().attached = true;
    }

    /// Records that all objects of the binding are known.
    pub fn set_known(&self) {
        self.known.send_replace(true);
    }

    /// Whether all objects of the binding were known once.
    pub fn is_known(&self) -> bool {
        *self.known.borrow()
    }

    /// Waits until all objects of the binding are known.
    pub async fn known(&self) {
        // The sender lives as long as `self`.
        let _ = self.known.subscribe().wait_for(|known| *known).await;
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.sources().iter().map(|source| source.watch.with_store(Store::len)).sum()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of changes since the start, and since the last call.
    pub fn counts(&self) -> (Counts, Counts) {
        let mut state = self.lock();
        (state.since_start, std::mem::take(&mut state.since_read))
    }

    /// A first list had so many objects.
    pub(super) fn count_first_list(&self, objects: usize) {
        let mut state = self.lock();
        let State { since_start, since_read, .. } = &mut *state;
        for counts in [since_start, since_read] {
            counts.count += objects as u64;
            counts.added += objects as u64;
        }
    }

    /// Waits until all objects are known, or until one of the watches has failed: then the reason.
    pub async fn settled(&self) -> Result<(), String> {
        for source in self.sources() {
            if let ListState::Failed(reason) = source.watch.settled().await {
                return Err(reason);
            }
        }
        Ok(())
    }

    /// Keeps changes from now on, until they are released.
    pub fn hold(&self) {
        let mut state = self.lock();
        if matches!(state.events, Events::Dropped) {
            state.events = Events::Held(Held::default());
        }
    }

    fn drop_held(&self, source: u64) {
        if let Events::Held(held) = &mut self.lock().events {
            held.drop_of(source);
        }
    }

    /// Lets events through, those that waited first.
    pub fn release(self: &Arc<Self>, sink: &dyn Sink) {
        let mut state = self.lock();
        let Events::Held(held) = std::mem::take(&mut state.events) else { return };
        // The lock is kept: new changes wait behind the held ones.
        sink.deliver(held.in_order().map(|change| Delivery { monitor: self.clone(), change }).collect());
    }

    /// Takes a change from a watch that it reads: `Some` if it has to be delivered now.
    pub(super) fn offer(self: &Arc<Self>, source: u64, change: &ViewChange) -> Option<Delivery> {
        let mut state = self.lock();
        let State { since_start, since_read, .. } = &mut *state;
        for counts in [since_start, since_read] {
            counts.take(change.event);
        }
        if !self.binding.events.contains(&change.event) {
            return None;
        }
        let change =
            Change { event: change.event, item: change.item.clone(), identity: change.identity.clone() };
        match &mut state.events {
            Events::Open => Some(Delivery { monitor: self.clone(), change }),
            Events::Dropped => None,
            Events::Held(held) => {
                held.push(source, change);
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
