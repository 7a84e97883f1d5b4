//! Puts the objects that a watch reads into its store, and delivers the resulting changes to the bindings.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::head::{Head, head};
use super::monitor::Sink;
use super::prune::Needs;
use super::reader::Pace;
use super::store::{self, View, ViewChange};
use super::watch::{ListState, State, Watch};
use crate::config::WatchEvent;
use crate::metrics::OperatorMetrics;

/// Takes the objects of one watch.
pub(super) struct Intake {
    watch: Arc<Watch>,
    /// The views of the watch; none is added once it runs.
    views: Vec<View>,
    /// The parts of an object that the views need.
    needs: Needs,
    /// Hash keys that distinguish the texts of objects; only set if nothing matters except the values that the filters read.
    fingerprints: Option<RandomState>,
    sink: Arc<dyn Sink>,
    metrics: OperatorMetrics,
    pace: Pace,
}

impl Intake {
    /// For `watch`, whose views are all known.
    pub(super) fn new(watch: Arc<Watch>, sink: Arc<dyn Sink>, metrics: OperatorMetrics, pace: Pace) -> Self {
        let views = watch.lock().store.views.clone();
        let needs = Needs::of(&views);
        let fingerprints = needs.decide(&views).then(RandomState::new);
        Self { watch, views, needs, fingerprints, sink, metrics, pace }
    }

    /// Whether only the metadata of objects is read.
    pub(super) fn needs_metadata_only(&self) -> bool {
        self.needs.are_metadata()
    }

    /// Ends a list, which has been taken whole: objects that it did not contain are gone. The first list makes the watch ready.
    pub(super) fn end_list(&self) {
        let first = *self.watch.listed.borrow() != ListState::Ready;
        let mut state = self.watch.lock();
        let gone = state.store.end_list(&self.watch.selection().resource.kind);
        self.deliver(&state, &gone);
        if first {
            let count = state.store.len();
            state.subscribers.iter().for_each(|subscriber| subscriber.monitor.count_first_list(count));
            self.announce(&mut state);
            self.watch.listed.send_replace(ListState::Ready);
        }
    }

    /// Takes an object of a list (no event) or of a watch, and delivers to the bindings the changes that they see. Returns the
    /// object's version, `None` if it could not be read.
    pub(super) fn take(&self, event: Option<WatchEvent>, raw: &[u8]) -> Option<String> {
        let (resource, started) = (&self.watch.selection().resource, Instant::now());
        // Filters run outside the lock.
        let report = |error: store::DigestError| {
            tracing::error!(error = error.why, "jqFilter failed for {}, its result is null", error.object);
        };
        let pruned = self.needs.prune(raw);
        let raw = pruned.as_deref().unwrap_or(raw);
        let head = self.fingerprints.as_ref().and_then(|keys| Some((keys, head(raw)?)));
        let fingerprint = head.as_ref().and_then(|(keys, head)| NonZeroU64::new(keys.hash_one(head.rest)));
        if let (Some((_, head)), Some(fingerprint)) = (&head, fingerprint)
            && event != Some(WatchEvent::Deleted)
            && self.renew(event, head, fingerprint, started)
        {
            return Some(head.version.to_owned());
        }
        self.pace.seen();
        let (digest, version) = match store::digest(raw, resource, &self.views, report) {
            Ok((digest, version)) => (digest.with_fingerprint(fingerprint), version),
            Err(error) => {
                tracing::error!(error = error.why, "cannot read an object of {}", self.watch.what());
                return None;
            }
        };
        let filtered = started.elapsed();
        let mut state = self.watch.lock();
        let changes = match event {
            Some(WatchEvent::Deleted) => state.store.delete(digest, &resource.kind),
            _ => state.store.put(digest, &resource.kind),
        };
        let first_list = event.is_none() && *self.watch.listed.borrow() != ListState::Ready;
        if !first_list {
            self.deliver(&state, &changes);
        }
        if event.is_some() {
            self.observe(&state, started.elapsed(), filtered);
        }
        Some(version)
    }

    /// Takes a new version of an object without any other change that matters, which is the most frequent event.
    fn renew(
        &self,
        event: Option<WatchEvent>,
        head: &Head<'_>,
        fingerprint: NonZeroU64,
        started: Instant,
    ) -> bool {
        let key = store::key_of(head.namespace, head.name);
        let mut state = self.watch.lock();
        let renewed = state.store.renew(&key, fingerprint, head.version);
        if renewed {
            self.pace.unseen();
        }
        if renewed && event.is_some() {
            self.observe(&state, started.elapsed(), Duration::ZERO);
        }
        renewed
    }

    fn observe(&self, state: &State, event: Duration, filter: Duration) {
        let own = state.subscribers.iter().filter(|one| one.monitor.follower().is_none());
        own.for_each(|one| one.monitor.times(&self.metrics).observe(event, filter));
    }

    /// Hands changes to the bindings; changes of one object together.
    fn deliver(&self, state: &State, changes: &[ViewChange]) {
        let mut rest = changes;
        while let Some(first) = rest.first() {
            let count =
                rest.iter().take_while(|change| Arc::ptr_eq(&change.identity, &first.identity)).count();
            let (object, others) = rest.split_at(count);
            let mut deliveries = Vec::new();
            for subscriber in &state.subscribers {
                let change = object.iter().find(|change| change.view == subscriber.view);
                deliveries
                    .extend(change.and_then(|change| subscriber.monitor.offer(self.watch.id(), change)));
            }
            if !deliveries.is_empty() {
                self.sink.deliver(deliveries);
            }
            rest = others;
        }
    }

    fn announce(&self, state: &mut State) {
        let kind = &self.watch.selection().resource.kind;
        for subscriber in &state.subscribers {
            if subscriber.announce {
                let changes = state.store.announce(subscriber.view, WatchEvent::Added, kind);
                let offers =
                    changes.iter().filter_map(|change| subscriber.monitor.offer(self.watch.id(), change));
                self.sink.deliver(offers.collect());
            }
        }
        state.subscribers.iter_mut().for_each(|subscriber| subscriber.announce = false);
    }
}
