//! Limits concurrent work and assigns permits by priority.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// A queue for a limited number of permits: higher priority first, then in order of arrival.
#[derive(Clone)]
pub(super) struct Queue(Arc<Mutex<State>>);

struct State {
    free: usize,
    /// Numbers the waiting requests.
    next: u64,
    waiting: BTreeMap<(std::cmp::Reverse<u8>, u64), oneshot::Sender<Permit>>,
}

/// A permit. Dropping it releases it.
pub(super) struct Permit(Queue);

impl Queue {
    pub(super) fn new(permits: usize) -> Self {
        Self(Arc::new(Mutex::new(State { free: permits.max(1), next: 0, waiting: BTreeMap::new() })))
    }

    /// Waits for a permit. Dropping the future leaves the queue.
    pub(super) async fn permit(&self, priority: u8) -> Permit {
        let receiver = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Permit(self.clone());
            }
            let (sender, receiver) = oneshot::channel();
            let position = (std::cmp::Reverse(priority), state.next);
            state.next += 1;
            state.waiting.insert(position, sender);
            receiver
        };
        match receiver.await {
            Ok(permit) => permit,
            // Not reached: the queue holds the sender until it sends, and `self` holds the queue.
            Err(_) => std::future::pending().await,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.state();
            let next = state.waiting.pop_first();
            state.free += usize::from(next.is_none());
            next
        };
        // A receiver that has left the queue drops its permit at once, which passes it to the next one.
        if let Some((_, sender)) = next {
            drop(sender.send(Permit(self.0.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, poll};

    use super::*;

    #[tokio::test]
    async fn permits_go_by_priority_then_by_order_and_past_those_who_left() {
        let queue = Queue::new(1);
        let first = queue.permit(0).await;
        let mut low = Box::pin(queue.permit(0));
        let mut high = Box::pin(queue.permit(9));
        let mut left = Box::pin(queue.permit(9));
        let mut later = Box::pin(queue.permit(0));
        for waiting in [&mut low, &mut high, &mut left, &mut later] {
            assert!(poll!(waiting).is_pending());
        }
        drop(first);
        let held = high.now_or_never().unwrap();
        assert!(poll!(&mut low).is_pending());
        drop(left);
        drop(held);
        let held = low.now_or_never().unwrap();
        assert!(poll!(&mut later).is_pending());
        drop(held);
        drop(later.now_or_never().unwrap());
        assert!(queue.permit(0).now_or_never().is_some(), "all are given back");
    }
}
