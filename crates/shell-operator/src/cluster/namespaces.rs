//! Bindings on the namespaces that have certain labels: namespaces come and go while the operator runs.
//!
//! The objects of a namespace that begins to match are `Added` events, those of one that ceases to match, or is
//! deleted, are `Deleted` events: the hook always knows what its snapshot holds. Bindings with the same labels share
//! the watch of the namespaces, as they share any other.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::monitor::{Delivery, Monitor, Sink};
use super::{Hub, Resource, Watch};
use crate::config::{LabelSelector, WatchEvent};

/// A namespace that begins to match, or ceases to.
pub(super) type Turn = (WatchEvent, String);

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
                    // Without a receiver the binding has ended.
                    let _ = follower.send((delivery.change.event, name));
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
    let namespaces = Monitor::of_namespaces(monitor.hook.clone(), monitor.index, sender);
    hub.attach_to_namespaces(&namespaces, labels);
    if let Err(reason) = namespaces.settled().await {
        hub.detach(&namespaces);
        return Err(reason);
    }
    // The names were sent before the watch became ready.
    while let Ok(turn) = receiver.try_recv() {
        take(&hub, &monitor, &resource, &turn, false);
    }
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = monitor.stopped() => break,
                next = receiver.recv() => match next {
                    Some(turn) => {
                        take(&hub, &monitor, &resource, &turn, true);
                        hub.start();
                    }
                    None => break,
                },
            }
        }
        hub.detach(&namespaces);
    });
    Ok(())
}

fn take(hub: &Hub, monitor: &Arc<Monitor>, resource: &Resource, (event, name): &Turn, announce: bool) {
    if *event == WatchEvent::Deleted {
        let in_namespace = |watch: &Watch| watch.selection().namespace.as_ref() == Some(name);
        hub.detach_where(monitor, in_namespace, true);
    } else {
        hub.attach_namespace(monitor, resource, Some(name), announce);
    }
}
