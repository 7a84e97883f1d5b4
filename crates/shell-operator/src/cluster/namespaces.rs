//! Bindings on the namespaces that have certain labels: namespaces are added and removed while the operator runs.
//!
//! When a namespace begins to match, its objects are `Added` events. When it ceases to match, or is deleted, they are `Deleted`
//! events. So the hook always knows the contents of its snapshot. Bindings with the same labels share the watch of the
//! namespaces, as they share any other.
//!
//! A namespace that begins to match has to be listed. Changes that a hook makes there before could be undone without an event, so
//! its runs wait for [`Monitor::caught_up`].

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::monitor::{Delivery, Monitor, Sink};
use super::{Hub, Resource, Watch};
use crate::config::{LabelSelector, WatchEvent};

/// A message to the task that follows namespaces.
pub(super) enum Notice {
    /// A namespace begins to match, or ceases to.
    Namespace(WatchEvent, String),
    /// A caller waits until all earlier notices are taken.
    Waits(oneshot::Sender<()>),
}

/// Hands namespaces to the tasks that follow them, and everything else to the hooks.
pub(super) struct Router(pub(super) Arc<dyn Sink>);

impl Sink for Router {
    fn deliver(&self, deliveries: Vec<Delivery>) {
        let mut for_hooks = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            match delivery.monitor.follower() {
                None => for_hooks.push(delivery),
                Some(follower) => {
                    let name = delivery.change.identity.name.clone();
                    // Without a receiver, the binding has ended. The follower is notified before the hook, so that no run misses
                    // the namespace.
                    let _ = follower.send(Notice::Namespace(delivery.change.event, name));
                }
            }
        }
        if !for_hooks.is_empty() {
            self.0.deliver(for_hooks);
        }
    }
}

/// Lets `monitor` read the namespaces with these labels, now and later. Returns when the present ones are known.
pub(super) async fn follow(
    hub: Arc<Hub>,
    monitor: Arc<Monitor>,
    resource: Resource,
    labels: &LabelSelector,
) -> Result<(), String> {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let namespaces = Monitor::of_namespaces(monitor.hook.clone(), monitor.index, sender.clone());
    hub.attach_to_namespaces(&namespaces, labels);
    if let Err(reason) = namespaces.settled().await {
        hub.detach(&namespaces);
        return Err(reason);
    }
    // The names were sent before the watch became ready.
    while let Ok(notice) = receiver.try_recv() {
        take(&hub, &monitor, &resource, notice, false);
    }
    monitor.set_notices(sender);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = monitor.stopped() => break,
                next = receiver.recv() => match next {
                    Some(notice) => take(&hub, &monitor, &resource, notice, true),
                    None => break,
                },
            }
        }
        hub.detach(&namespaces);
    });
    Ok(())
}

fn take(hub: &Hub, monitor: &Arc<Monitor>, resource: &Resource, notice: Notice, later: bool) {
    match notice {
        Notice::Namespace(WatchEvent::Deleted, name) => {
            let in_namespace = |watch: &Watch| watch.selection().namespace.as_ref() == Some(&name);
            hub.detach_where(monitor, in_namespace, true);
        }
        Notice::Namespace(_, name) => {
            hub.attach_namespace(monitor, resource, Some(&name), later);
            if later {
                hub.start();
            }
        }
        Notice::Waits(waiting) => {
            // The caller may no longer wait.
            let _ = waiting.send(());
        }
    }
}

impl Monitor {
    /// Waits until every namespace that the operator knows to match is listed, or could not be listed.
    pub async fn caught_up(&self) {
        let Some(notices) = self.notices() else { return };
        let (sender, taken) = oneshot::channel();
        if notices.send(Notice::Waits(sender)).is_ok() {
            // Without an answer the binding has ended.
            let _ = taken.await;
        }
        for source in self.sources() {
            // A namespace that cannot be listed now must not keep the hook from all others.
            source.watch.settled().await;
        }
    }
}
