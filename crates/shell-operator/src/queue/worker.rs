//! The worker of a queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{Queue, Status, Task, combine, delay};

/// Does what tasks ask for.
pub trait Handler: Send + Sync + 'static {
    /// Does one task. The task stays at the head of its queue meanwhile.
    fn handle(&self, queue: &Queue, task: Task) -> impl Future<Output = Outcome> + Send;

    /// Is told how long the queue's own work took.
    fn observe(&self, _queue: &Queue, _action: &'static str, _time: Duration) {}
}

/// How a task ended.
#[derive(Debug)]
pub enum Outcome {
    /// Done; these tasks come next, before all others.
    Done(Vec<Task>),
    /// Failed for this reason; it is done again after a while.
    Failed(String),
    /// Could not end because the operator stops; it stays where it is.
    Stopped,
}

/// Does the queue's tasks one after the other until `stop` is cancelled. The task that is being done then is
/// waited for.
pub async fn run(queue: Arc<Queue>, handler: Arc<impl Handler>, stop: CancellationToken) {
    loop {
        let arrived = queue.arrived.notified();
        let asked = Instant::now();
        let Some(task) = queue.take_head(&stop) else {
            tokio::select! {
                () = stop.cancelled() => break,
                () = arrived => continue,
            }
        };
        handler.observe(&queue, "take", asked.elapsed());
        let failures = task.failures;
        // In a task of its own, so that a panic is a failed run and not the end of the queue.
        let work = {
            let (queue, handler) = (queue.clone(), handler.clone());
            tokio::spawn(async move { handler.handle(&queue, task).await })
        };
        let outcome = work.await.unwrap_or_else(|panic| Outcome::Failed(format!("internal error: {panic}")));
        match outcome {
            Outcome::Done(next) => {
                let ended = Instant::now();
                queue.finish_head(next);
                handler.observe(&queue, "finish", ended.elapsed());
            }
            Outcome::Stopped => break,
            Outcome::Failed(error) => {
                let wait = delay(failures, chance());
                let head_gone = queue.head_gone.notified();
                queue.fail_head(&error, wait);
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = head_gone => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
        }
    }
    queue.lock().status = Status::Stopped;
}

impl Queue {
    /// The first task, combined with those behind it that belong to it. It stays in the queue.
    fn take_head(&self, stop: &CancellationToken) -> Option<Task> {
        let mut state = self.lock();
        if stop.is_cancelled() {
            return None;
        }
        combine::combine_head(&mut state.tasks);
        let head = state.tasks.front().cloned();
        state.status = if head.is_some() { Status::Running } else { Status::Idle };
        head
    }

    fn finish_head(&self, next: Vec<Task>) {
        let mut state = self.lock();
        state.tasks.pop_front();
        for task in next.into_iter().rev() {
            state.tasks.push_front(task);
        }
    }

    fn fail_head(&self, error: &str, delay: Duration) {
        let mut state = self.lock();
        let now = Instant::now();
        if let Some(head) = state.tasks.front_mut() {
            head.failures += 1;
            head.last_error = Some(error.into());
            head.since = now;
        }
        state.status = Status::Sleeping { delay, since: now };
    }
}

/// A number between 0 and 1, to spread retries; needs no quality.
fn chance() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    #[expect(clippy::cast_precision_loss, reason = "only the size matters")]
    let part = |bits: u64| bits as f64 / u64::MAX as f64;
    part(RandomState::new().hash_one(0))
}
