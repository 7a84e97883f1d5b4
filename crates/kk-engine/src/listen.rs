//! From the run to those who listen: events with their time and without secrets.

use std::{sync::Arc, time::Instant};

use tokio::sync::mpsc;

use crate::{Event, EventKind, Redactor};

/// Who wants to know what happens in a run. Called for one event after the other.
pub trait Listener: Send {
    /// Something happened.
    fn on_event(&mut self, event: &Event);
}

/// Where events go in. Cheap to clone. The run's time begins with [`events`].
#[derive(Clone)]
pub struct EventSender {
    sender: mpsc::UnboundedSender<Event>,
    began: Instant,
    redactor: Arc<Redactor>,
}

/// Where events come out, for [`listen`].
pub type EventReceiver = mpsc::UnboundedReceiver<Event>;

/// A channel for the events of a run. `redactor` takes the run's secrets out of every event.
pub fn events(redactor: Redactor) -> (EventSender, EventReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (EventSender { sender, began: Instant::now(), redactor: Arc::new(redactor) }, receiver)
}

impl EventSender {
    /// Tells that something happened.
    pub fn send(&self, kind: EventKind) {
        // Nobody listening is not an error of those who speak.
        let _ = self.sender.send(Event { at_ms: self.elapsed_ms(), kind: self.redactor.event(kind) });
    }

    /// Milliseconds since the run began.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// What takes the secrets out.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

/// Hands every event to every listener, until all senders are gone.
pub async fn listen(mut receiver: EventReceiver, mut listeners: Vec<Box<dyn Listener>>) {
    while let Some(event) = receiver.recv().await {
        for listener in &mut listeners {
            listener.on_event(&event);
        }
    }
}
