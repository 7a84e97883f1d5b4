//! The worker of a queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{Queue, Status, Task, combine, delay};

/// Does the work of tasks.
pub trait Handler: Send + Sync + 'static {
    /// Waits until a run of this hook may begin. Runs that arrive meanwhile are combined with it.
    fn admit(&self, _hook: &Arc<str>) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Does one task. The task stays at the head of its queue meanwhile.
    fn handle(&self, queue: &Queue, task: Task) -> impl Future<Output = Outcome> + Send;

    /// Receives the duration of the queue's own work.
    fn observe(&self, _queue: &Queue, _action: &'static str, _time: Duration) {}
}

/// How a task ended.
#[derive(Debug)]
pub enum Outcome {
    /// Done; these tasks are next, before all others.
    Done(Vec<Task>),
    /// Failed for this reason; it is retried after a while.
    Failed(String),
    /// Not finished because the operator stops; it stays where it is.
    Stopped,
}

/// Does the queue's tasks one after the other until `stop` is cancelled. Then it waits for the running task.
pub async fn run(queue: Arc<Queue>, handler: Arc<impl Handler>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let arrived = queue.arrived.notified();
        let head_gone = queue.head_gone.notified();
        let Some((hook, is_run)) = queue.look_at_head() else {
            tokio::select! {
                () = stop.cancelled() => break,
                () = arrived => continue,
            }
        };
        if is_run {
            tokio::select! {
                () = stop.cancelled() => break,
                () = head_gone => continue,
                () = handler.admit(&hook) => {}
            }
        }
        let asked = Instant::now();
        let Some(task) = queue.take_head(&hook, &stop) else { continue };
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
    /// The hook of the first task, and whether that is a run.
    fn look_at_head(&self) -> Option<(Arc<str>, bool)> {
        let mut state = self.lock();
        let head = state.tasks.front().map(|task| (task.hook.clone(), task.run().is_some()));
        state.status = if head.is_some() { Status::Throttled } else { Status::Idle };
        if head.is_some() {
            state.head_since.get_or_insert_with(Instant::now);
        }
        head
    }

    /// The first task, combined with those behind it that belong to it, if it is still one of `hook`. It stays in the
    /// queue.
    fn take_head(&self, hook: &Arc<str>, stop: &CancellationToken) -> Option<Task> {
        let mut state = self.lock();
        if stop.is_cancelled() || !state.tasks.front().is_some_and(|task| Arc::ptr_eq(&task.hook, hook)) {
            return None;
        }
        combine::combine_head(&mut state.tasks);
        state.status = Status::Running;
        state.tasks.front().cloned()
    }

    fn finish_head(&self, next: Vec<Task>) {
        let mut state = self.lock();
        state.tasks.pop_front();
        state.head_since = None;
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
