//! Bindings on the namespaces that have certain labels: namespaces come and go while the operator runs.
//!
//! The objects of a namespace that begins to match are `Added` events, those of one that ceases to match, or is
//! deleted, are `Deleted` events: the hook always knows what its snapshot holds.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::monitor::{Delivery, Monitor, Sink};
use super::store::View;
use super::{Hub, Resource, Selection, Sync, Watch};
use crate::config::{ConfigVersion, KubernetesBinding, LabelSelector, WatchEvent};

/// Hands namespaces to the task that follows them.
struct Names(mpsc::UnboundedSender<(WatchEvent, String)>);

impl Sink for Names {
    fn deliver(&self, deliveries: Vec<Delivery>) {
        for Delivery { change, .. } in deliveries {
            // Without a receiver the monitor has ended.
            let _ = self.0.send((change.event, change.identity.name.clone()));
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
    let sink: Arc<dyn Sink> = Arc::new(Names(sender));
    let watch = watch_namespaces(&hub, &monitor, labels, &sink);
    if let Sync::Failed(reason) = watch.settled().await {
        watch.stop();
        return Err(reason);
    }
    // The names were sent before the watch became ready.
    while let Ok((event, name)) = receiver.try_recv() {
        take(&hub, &monitor, &resource, event, &name, false);
    }
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = monitor.stopped() => break,
                next = receiver.recv() => match next {
                    Some((event, name)) => {
                        take(&hub, &monitor, &resource, event, &name, true);
                        hub.start();
                    }
                    None => break,
                },
            }
        }
        watch.stop();
    });
    Ok(())
}

fn watch_namespaces(
    hub: &Hub,
    monitor: &Monitor,
    labels: &LabelSelector,
    sink: &Arc<dyn Sink>,
) -> Arc<Watch> {
    let resource = Resource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        plural: "namespaces".to_owned(),
        namespaced: false,
    };
    let selection =
        Selection { resource, namespace: None, labels: labels.to_string(), fields: String::new() };
    let watch = Watch::new(selection, None, hub.stop_token());
    let binding = KubernetesBinding {
        events: vec![WatchEvent::Added, WatchEvent::Deleted],
        ..KubernetesBinding::of_kind("Namespace".to_owned())
    };
    let namespaces = Monitor::new(monitor.hook.clone(), monitor.index, ConfigVersion::V1, binding);
    namespaces.release(&**sink);
    let view = View { filter: None, keep_object: false };
    watch.subscribe(&namespaces, &view, true, &**sink);
    hub.run(&watch, sink.clone());
    watch
}

fn take(
    hub: &Hub,
    monitor: &Arc<Monitor>,
    resource: &Resource,
    event: WatchEvent,
    name: &str,
    announce: bool,
) {
    if event == WatchEvent::Deleted {
        let in_namespace = |watch: &Watch| watch.selection().namespace.as_deref() == Some(name);
        hub.detach_where(monitor, in_namespace, true);
    } else {
        hub.attach_namespace(monitor, resource, Some(name), announce);
    }
}
