//! A download as a task, with its progress and its errors in the engine's types.

use kk_artifact::{Artifact, LocalFile, Progress, ProgressState, Store};
use kk_engine::{Context, Failure};
use tokio::sync::mpsc;

/// Fetches an artifact, and reports its bytes to the task's progress bar.
pub(super) async fn fetch(
    store: &Store,
    artifact: &Artifact,
    context: &Context,
) -> Result<Vec<LocalFile>, Failure> {
    let (sender, mut receiver) = mpsc::unbounded_channel::<Progress>();
    let report = async {
        let mut size = 0;
        while let Some(news) = receiver.recv().await {
            match news.state {
                ProgressState::Started { done, total } => {
                    size = total.unwrap_or(0);
                    (context.progress)(done, size);
                }
                ProgressState::Advanced { done } => (context.progress)(done, size),
                ProgressState::Retrying { reason, wait } => {
                    let wait = wait.as_secs_f32();
                    (context.note)(format!(
                        "the download of {artifact} failed: {reason}; again in {wait:.1} s"
                    ));
                }
                _ => {}
            }
        }
    };
    let fetch = async {
        let files = store.fetch(artifact, &sender, &context.cancel).await;
        drop(sender);
        files
    };
    let (files, ()) = tokio::join!(fetch, report);
    files.map_err(|error| failure(&error))
}

/// The store itself retries, so no error is transient here.
fn failure(error: &kk_artifact::Error) -> Failure {
    Failure { hint: error.hint(), ..Failure::new(error.to_string()) }
}
