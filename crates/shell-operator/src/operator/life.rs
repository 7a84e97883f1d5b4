//! The life of a running operator, from its start to its end.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::core::Core;
use super::debug::Socket;
use super::leader::Election;
use super::long_tasks::LongTasks;
use super::reload::Reloader;
use super::start::StartError;
use super::webhooks::Webhooks;
use crate::hook::{self, Loader};
use crate::queue;

/// Time for the remaining work when no hook runs any more.
const MARGIN: Duration = Duration::from_secs(5);

/// How long all of it may take when the Lease is lost; see `leader` for the sum of the times.
const LOST_END: Duration = Duration::from_secs(3);

impl Core {
    /// Acts, perhaps after another replica, until the end.
    pub(super) async fn run(
        self: Arc<Self>,
        socket: Option<Socket>,
        loader: Option<Loader>,
    ) -> Result<(), StartError> {
        self.start_endpoints(socket, loader);
        let Some(lease) = self.settings.lease.clone() else {
            self.act();
            return self.end().await;
        };
        let election = Election::new(self.api.clone(), lease);
        let Some(since) = election.acquire(&self.stop).await else { return self.end().await };
        self.act();
        // The Lease is kept until nothing runs any more: hooks may need longer for their end than it lasts.
        tokio::select! {
            ended = self.end() => {
                if ended.is_ok() {
                    let _ = tokio::time::timeout(MARGIN, election.release()).await;
                }
                ended
            }
            () = election.keep(since) => {
                self.runner.lease_lost.store(true, Ordering::SeqCst);
                self.stop.cancel();
                self.tasks.close();
                self.end_now().await
            }
        }
    }

    /// Waits until the operator has to end, and then for everything that still runs.
    async fn end(&self) -> Result<(), StartError> {
        self.stop.cancelled().await;
        tracing::info!("Shutdown begins.");
        self.tasks.close();
        self.wait_for_the_end().await
    }

    /// Waits until running hooks have ended. When the time for that is nearly over, they are asked to end, and killed when it is
    /// over.
    async fn wait_for_the_end(&self) -> Result<(), StartError> {
        let time = self.settings.shutdown_timeout;
        let grace = time.min(hook::GRACE);
        let end_hooks = async {
            tokio::time::sleep(time.saturating_sub(grace)).await;
            self.runner.end_hooks.cancel();
            tokio::time::sleep(grace).await;
            hook::kill_all();
            tokio::time::sleep(MARGIN).await;
        };
        tokio::select! {
            () = self.tasks.wait() => Ok(()),
            () = end_hooks => Err(StartError::Unfinished(time + MARGIN)),
        }
    }

    /// Another replica acts soon: hooks have a moment, and their effects are not applied any more.
    async fn end_now(&self) -> Result<(), StartError> {
        self.runner.end_hooks.cancel();
        let _ = tokio::time::timeout(LOST_END, self.tasks.wait()).await;
        hook::kill_all();
        Err(StartError::LeaseLost)
    }

    /// Starts the tasks that run whether this replica acts or not: metrics, the debug endpoint, and the search for new hooks.
    fn start_endpoints(self: &Arc<Self>, socket: Option<Socket>, loader: Option<Loader>) {
        let operator = self.clone();
        self.tasks.spawn(async move { operator.tick().await });
        if let Some(loader) = loader.filter(|_| self.settings.hooks_reload) {
            self.tasks.spawn(Reloader { core: self.clone(), loader }.run());
        }
        let Some(socket) = socket else { return };
        let operator = self.clone();
        self.tasks.spawn(async move {
            if let Err(error) = socket.serve(operator).await {
                tracing::error!(error = error.to_string(), "debug endpoint ended");
            }
        });
    }

    /// Starts what runs hooks.
    fn act(self: &Arc<Self>) {
        {
            let _workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
            self.standby.store(false, Ordering::SeqCst);
        }
        self.start_workers();
        let operator = self.clone();
        self.tasks.spawn(async move { operator.schedules.run(&operator.queues, &operator.stop).await });
        let operator = self.clone();
        self.tasks.spawn(Webhooks::new(operator).run());
    }

    /// Gives each queue a worker that has none, unless another replica acts.
    pub(super) fn start_workers(self: &Arc<Self>) {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if self.standby.load(Ordering::SeqCst) {
            return;
        }
        for queue in self.queues.all() {
            if workers.insert(queue.name().clone()) {
                self.tasks.spawn(queue::run(queue, Arc::new(self.clone()), self.stop.clone()));
            }
        }
    }

    /// Updates the metric that shows that the operator is alive, and reports tasks that block their queues.
    async fn tick(&self) {
        let mut long_tasks = LongTasks::default();
        loop {
            self.metrics.live_tick();
            long_tasks.look(&self.queues);
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(Duration::from_secs(10)) => {}
            }
        }
    }
}
