//! From changes in the cluster to runs in queues.

use crate::cluster::{Delivery, Sink};
use crate::queue::Queues;

/// Puts the runs for changes into the queues of their bindings.
pub(super) struct QueueSink(pub(super) Queues);

impl Sink for QueueSink {
    fn deliver(&self, deliveries: Vec<Delivery>) {
        let task = |Delivery { monitor, change }| {
            let queue = monitor.binding.queue.clone();
            tracing::debug!(
                hook = &*monitor.hook,
                binding = monitor.binding.name,
                event = "kubernetes",
                queue,
                "queue task: {} {}/{}",
                change.event.as_str(),
                change.identity.namespace,
                change.identity.name
            );
            (queue, monitor.event_task(change))
        };
        self.0.push(deliveries.into_iter().map(task));
    }
}
