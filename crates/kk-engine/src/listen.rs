//! Delivers events to the listeners of a run, with their time and without secrets.

use std::{sync::Arc, time::Instant};

use tokio::sync::{mpsc, oneshot};

use crate::{Event, EventKind, Redactor};

/// Receives the events of a run, in order.
pub trait Listener: Send {
    /// An event happened.
    fn on_event(&mut self, event: &Event);
}

/// The sending end for events. Cheap to clone. The run's time starts with [`events`].
#[derive(Clone)]
pub struct EventSender {
    sender: mpsc::UnboundedSender<Message>,
    began: Instant,
    redactor: Arc<Redactor>,
}

/// The receiving end for events, for [`listen`].
pub struct EventReceiver {
    messages: mpsc::UnboundedReceiver<Message>,
}

enum Message {
    Event(Box<Event>),
    /// Answered as soon as all previous events are handled.
    Flush(oneshot::Sender<()>),
}

/// A channel for the events of a run. `redactor` removes the run's secrets from every event.
pub fn events(redactor: Redactor) -> (EventSender, EventReceiver) {
    let (sender, messages) = mpsc::unbounded_channel();
    (EventSender { sender, began: Instant::now(), redactor: Arc::new(redactor) }, EventReceiver { messages })
}

impl EventSender {
    /// Sends an event to the listeners.
    pub fn send(&self, kind: EventKind) {
        let event = Event { at_ms: self.elapsed_ms(), kind: self.redactor.event(kind) };
        // A run does not depend on its listeners.
        let _ = self.sender.send(Message::Event(Box::new(event)));
    }

    /// Waits until the listeners have handled all events that were sent before.
    pub async fn flush(&self) {
        let (handled, wait) = oneshot::channel();
        // Without listeners there is nothing to wait for.
        if self.sender.send(Message::Flush(handled)).is_ok() {
            let _ = wait.await;
        }
    }

    /// Milliseconds since the run began.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Removes secrets from texts.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

impl EventReceiver {
    /// The next event; this call marks the previous event as handled. `None` when all senders are gone.
    pub async fn recv(&mut self) -> Option<Event> {
        loop {
            match self.messages.recv().await? {
                Message::Event(event) => return Some(*event),
                // The sender may have been cancelled while it waited.
                Message::Flush(handled) => drop(handled.send(())),
            }
        }
    }
}

/// Passes every event to every listener, until all senders are gone.
pub async fn listen(mut receiver: EventReceiver, mut listeners: Vec<Box<dyn Listener>>) {
    while let Some(event) = receiver.recv().await {
        for listener in &mut listeners {
            listener.on_event(&event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Kept(Arc<Mutex<usize>>);

    impl Listener for Kept {
        fn on_event(&mut self, _event: &Event) {
            *self.0.lock().unwrap() += 1;
        }
    }

    #[tokio::test]
    async fn a_flush_waits_for_all_events_before_it() {
        let (sender, receiver) = events(Redactor::default());
        let handled = Arc::default();
        let listening = tokio::spawn(listen(receiver, vec![Box::new(Kept(Arc::clone(&handled)))]));
        for number in 1..=100 {
            sender.send(EventKind::Probed { host: "a".into() });
            sender.flush().await;
            assert_eq!(*handled.lock().unwrap(), number);
        }
        listening.abort();
        let _ = listening.await;
        sender.flush().await;
    }
}
