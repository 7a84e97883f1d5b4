//! Holds the status as it was last written.

use std::future::Future;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Each write is the difference to the last written status. A writer is dropped when its work is done or the object changes, but
/// the API server still executes its request. Therefore each request is completed before the next difference is computed.
#[derive(Default)]
pub(super) struct Written(Arc<Mutex<Value>>);

impl Written {
    /// The status, as soon as no request is in progress.
    pub(super) async fn current(&self) -> OwnedMutexGuard<Value> {
        self.0.clone().lock_owned().await
    }
}

/// Executes the request that changes the status to `wanted`. Returns `None` if the runtime ends.
pub(super) async fn write<T, E>(
    mut current: OwnedMutexGuard<Value>,
    wanted: Value,
    request: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Option<Result<T, E>>
where
    T: Send + 'static,
    E: Send + 'static,
{
    let work = async move {
        let answer = request.await;
        // A failed request may have had an effect, so the next write contains the whole status.
        *current = if answer.is_ok() { wanted } else { Value::Null };
        drop(current);
        answer
    };
    tokio::spawn(work).await.ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn the_next_difference_is_made_from_what_a_dropped_writer_has_asked_for() {
        for (answer, known) in [(Ok(()), Value::from("Installing")), (Err(()), Value::Null)] {
            let written = Written::default();
            *written.current().await = "Ready".into();
            let (begun, begins) = tokio::sync::oneshot::channel();
            let request = async move {
                begun.send(()).unwrap();
                tokio::time::sleep(Duration::from_millis(50)).await;
                answer
            };
            tokio::select! {
                _ = write(written.current().await, "Installing".into(), request) => panic!("it was to be dropped"),
                _ = begins => {}
            }
            assert_eq!(*written.current().await, known);
        }
    }
}
