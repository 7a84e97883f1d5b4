//! The task behind a watch: it lists the objects, follows their changes as long as the watch exists, and passes them to its
//! `Intake`.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt};
use kube::Client;
use serde::Deserialize;
use tokio::time::Instant;

use super::api;
use super::head::split_event;
use super::intake::Intake;
use super::monitor::Sink;
use super::reader::Pace;
use super::scan::ItemScanner;
use super::watch::{ListState, Watch};
use crate::config::WatchEvent;
use crate::metrics::OperatorMetrics;

/// Objects of one page of a list.
const PAGE: &str = "500";
/// How long one watch request lasts.
const WATCH_SECONDS: &str = "300";
/// A watch without any data for longer counts as dead: the API server sends a bookmark every minute.
const SILENCE: Duration = Duration::from_secs(150);
/// Memory that is kept for the text of an event, in bytes.
const USUAL_LINE: usize = 64 << 10;
/// A watch that ends earlier than that, without any data, is broken: it is not resumed at once.
const SHORTEST: Duration = Duration::from_secs(1);
/// Pauses after failures: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));
/// Longest time between lists: a clock cannot represent a much longer time.
const NEVER: Duration = Duration::from_hours(24 * 365);

/// Reads the API for one watch.
pub(super) struct Watcher {
    watch: Arc<Watch>,
    client: Client,
    intake: Intake,
    /// Whether the views need only the metadata of an object, so that the API server need not send the rest.
    metadata_only: bool,
    metrics: OperatorMetrics,
}

/// Why a watch request ended.
enum End {
    /// In order; resume from the last version.
    Closed,
    /// The last version is too old: list again.
    Expired,
    /// It is time to list again.
    Resync,
    /// Something went wrong.
    Broken(String),
}

#[derive(Deserialize)]
struct ListEnd {
    metadata: ListMeta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    next: String,
}

impl Watcher {
    /// A task for `watch`, whose views are all known.
    pub(super) fn new(
        watch: Arc<Watch>,
        client: Client,
        sink: Arc<dyn Sink>,
        metrics: OperatorMetrics,
        pace: Pace,
    ) -> Self {
        let intake = Intake::new(watch.clone(), sink, metrics.clone(), pace);
        let metadata_only = intake.needs_metadata_only();
        Self { watch, client, intake, metadata_only, metrics }
    }

    /// Lists and watches without an end.
    pub(super) async fn run(self) {
        let mut pause = PAUSE.0;
        let mut version: Option<String> = None;
        let mut list_again = Instant::now();
        loop {
            if version.is_none() {
                match self.list().await {
                    Ok(listed) => {
                        version = Some(listed);
                        list_again = Instant::now() + self.watch.period().unwrap_or(NEVER).min(NEVER);
                    }
                    Err(reason) => {
                        self.list_failed(&reason);
                        sleep(&mut pause).await;
                        continue;
                    }
                }
            }
            let Some(from) = version.as_mut() else { continue };
            match self.follow(from, list_again, &mut pause).await {
                End::Closed => {}
                End::Expired => {
                    self.metrics.watch_error("expired");
                    version = None;
                    sleep(&mut pause).await;
                }
                End::Resync => version = None,
                End::Broken(reason) => {
                    self.metrics.watch_error("fail");
                    tracing::warn!(error = reason, "watch of {} broke, it is resumed", self.watch.what());
                    sleep(&mut pause).await;
                }
            }
        }
    }

    fn list_failed(&self, reason: &str) {
        tracing::error!(error = reason, "cannot list {}, trying again", self.watch.what());
        self.watch.listed.send_if_modified(|listed| {
            if *listed == ListState::Ready {
                return false;
            }
            *listed = ListState::Failed(reason.to_owned());
            true
        });
    }

    /// Reads all objects, page by page. Returns the version to watch from.
    async fn list(&self) -> Result<String, String> {
        self.watch.lock().store.begin_list();
        let mut next = String::new();
        let version = loop {
            let mut parameters = vec![("limit", PAGE)];
            if !next.is_empty() {
                parameters.push(("continue", &next));
            }
            let request = api::list(self.watch.selection(), &parameters, self.metadata_only)?;
            let body = self.client.request_stream(request).await.map_err(|error| api::explain(&error))?;
            let meta = self.read_page(body).await?;
            if meta.next.is_empty() {
                break meta.resource_version;
            }
            next = meta.next;
        };
        self.intake.end_list();
        Ok(version)
    }

    async fn read_page(&self, body: impl AsyncBufRead) -> Result<ListMeta, String> {
        let mut body = pin!(body);
        let mut scanner = ItemScanner::default();
        loop {
            let read = tokio::time::timeout(SILENCE, body.fill_buf()).await;
            let piece = read.map_err(|_| "the API server is silent")?.map_err(|error| error.to_string())?;
            if piece.is_empty() {
                break;
            }
            scanner.feed(piece, |item| {
                self.intake.take(None, item);
                Ok::<(), String>(())
            })?;
            let used = piece.len();
            body.consume_unpin(used);
        }
        let end: ListEnd = serde_json::from_slice(&scanner.into_rest()).map_err(|error| error.to_string())?;
        Ok(end.metadata)
    }

    /// Follows changes from `version` on; `version` is updated with each change.
    async fn follow(&self, version: &mut String, list_again: Instant, pause: &mut Duration) -> End {
        let from = version.clone();
        let parameters = [
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", WATCH_SECONDS),
            ("resourceVersion", &from),
        ];
        let request = match api::watch(self.watch.selection(), &parameters, self.metadata_only) {
            Ok(request) => request,
            Err(reason) => return End::Broken(reason),
        };
        let body = match self.client.request_stream(request).await {
            Ok(body) => body,
            // A resource that can only be listed is listed again and again.
            Err(error) if api::is_expired(&error) || api::is_not_allowed(&error) => return End::Expired,
            Err(error) => return End::Broken(api::explain(&error)),
        };
        self.read_lines(body, version, list_again, pause).await
    }

    /// Takes the lines of a watch until it ends.
    async fn read_lines(
        &self,
        body: impl AsyncBufRead,
        version: &mut String,
        list_again: Instant,
        pause: &mut Duration,
    ) -> End {
        let mut body = pin!(body);
        let mut resync = pin!(tokio::time::sleep_until(list_again));
        let mut silence = pin!(tokio::time::sleep(SILENCE));
        let (mut line, began, mut quiet) = (Vec::new(), Instant::now(), true);
        loop {
            let read = tokio::select! {
                biased;
                () = &mut resync => return End::Resync,
                read = body.fill_buf() => read,
                () = &mut silence => return End::Broken("the API server is silent".to_owned()),
            };
            let piece = match read {
                Err(error) => return End::Broken(error.to_string()),
                Ok([]) if !line.is_empty() => return End::Broken("an event was cut off".to_owned()),
                Ok([]) if quiet && began.elapsed() < SHORTEST => {
                    return End::Broken("the API server ended it at once".to_owned());
                }
                Ok([]) => return End::Closed,
                Ok(piece) => piece,
            };
            silence.as_mut().reset(Instant::now() + SILENCE);
            let (used, end) = match memchr::memchr(b'\n', piece) {
                None => {
                    line.extend_from_slice(piece);
                    (piece.len(), None)
                }
                Some(newline) => {
                    // Most lines arrive whole, and need no copy.
                    let end = if line.is_empty() {
                        self.take_line(&piece[..newline], version)
                    } else {
                        line.extend_from_slice(&piece[..newline]);
                        self.take_line(&line, version)
                    };
                    line.clear();
                    // The memory for one large object must not be kept as long as the watch lasts.
                    line.shrink_to(USUAL_LINE);
                    *pause = PAUSE.0;
                    quiet = false;
                    (newline + 1, end)
                }
            };
            body.consume_unpin(used);
            if let Some(end) = end {
                return end;
            }
        }
    }

    fn take_line(&self, line: &[u8], version: &mut String) -> Option<End> {
        let Some((kind, raw)) = split_event(line) else {
            return Some(End::Broken("the API server sent an event that cannot be read".to_owned()));
        };
        match kind {
            b"ADDED" | b"MODIFIED" => *version = self.intake.take(Some(WatchEvent::Modified), raw)?,
            b"DELETED" => *version = self.intake.take(Some(WatchEvent::Deleted), raw)?,
            b"BOOKMARK" => {
                let end: ListEnd = serde_json::from_slice(raw).ok()?;
                *version = end.metadata.resource_version;
            }
            _ => {
                let status: kube::core::Status = serde_json::from_slice(raw).unwrap_or_default();
                return Some(if status.code == 410 { End::Expired } else { End::Broken(status.message) });
            }
        }
        None
    }
}

/// Waits, and doubles the next pause.
async fn sleep(pause: &mut Duration) {
    tokio::time::sleep(*pause).await;
    *pause = (*pause * 2).min(PAUSE.1);
}
