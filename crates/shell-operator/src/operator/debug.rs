//! The debug endpoint on a unix socket: queues, hooks, snapshots, run-time parameters.
//!
//! The file's permissions protect it. Nothing protects a port, so it is opened only on request.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::IntoFuture;
use std::io;
use std::iter::once;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Form, Router};
use futures::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::{TcpListener, UnixListener};

use super::active::HookState;
use super::core::Core;
use super::debug_text;
use crate::cluster::Monitor;
use crate::context;
use crate::duration;
use crate::queue::{QueueDump, dump};

/// Time for the answers to questions that are open when the operator ends.
const GRACE: Duration = Duration::from_secs(2);

/// The socket, whose file is removed with this value, and the additional port.
pub(super) struct Socket {
    listener: UnixListener,
    port: Option<TcpListener>,
    _file: SocketFile,
}

struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Socket {
    /// Listens on `path`; the file of a previous operator is replaced.
    pub(super) fn bind(path: &FilePath) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(Self { listener: UnixListener::bind(path)?, port: None, _file: SocketFile(path.to_owned()) })
    }

    /// Listens on a port as well.
    pub(super) async fn and_on(mut self, address: SocketAddr) -> io::Result<Self> {
        self.port = Some(TcpListener::bind(address).await?);
        tracing::warn!("every client that reaches {address} can read all snapshots and change the log level");
        Ok(self)
    }

    /// Answers until the operator ends.
    pub(super) async fn serve(self, operator: Arc<Core>) -> io::Result<()> {
        let stop = operator.stop.clone();
        let router = router(operator);
        let Self { listener, port, _file } = self;
        let on_port = async {
            match port {
                Some(port) => {
                    let stop = stop.clone().cancelled_owned();
                    axum::serve(port, router.clone()).with_graceful_shutdown(stop).await
                }
                None => Ok(()),
            }
        };
        let on_socket =
            axum::serve(listener, router.clone()).with_graceful_shutdown(stop.clone().cancelled_owned());
        let time_is_up = async {
            stop.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            served = async { tokio::try_join!(on_socket.into_future(), on_port) } => served.map(drop),
            () = time_is_up => Ok(()),
        }
    }
}

type Answer = Result<String, (StatusCode, String)>;

fn router(operator: Arc<Core>) -> Router {
    Router::new()
        .route("/", get(async || "control endpoint is alive\n"))
        .route("/queue/{what}", get(queues))
        .route("/hook/{*path}", get(hooks))
        .route("/config/set", post(set))
        .route("/config/{what}", get(config))
        .with_state(operator)
}

fn unknown(path: &str) -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, format!("nothing is known as '{path}'\n"))
}

/// Splits `list.json` into `list` and its format; text without one.
fn split_format(name: &str) -> (&str, &str) {
    match name.rsplit_once('.') {
        Some((name, format @ ("json" | "yaml" | "text"))) => (name, format),
        _ => (name, "text"),
    }
}

fn render(value: &Value, format: &str, text: impl FnOnce(&Value) -> String) -> Answer {
    match format {
        "json" => Ok(format!("{value}\n")),
        "yaml" => serde_saphyr::to_string(value)
            .map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))),
        _ => Ok(text(value)),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueueQuery {
    #[serde(default)]
    show_empty: bool,
}

async fn queues(
    State(operator): State<Arc<Core>>,
    Path(what): Path<String>,
    Query(query): Query<QueueQuery>,
) -> Answer {
    let all: Vec<QueueDump> = operator.queues.all().iter().map(|queue| dump(queue)).collect();
    match split_format(&what) {
        ("main", format) => {
            let main = all.iter().find(|queue| queue.name == crate::config::MAIN_QUEUE);
            render(&json!(main), format, |_| main.map(debug_text::queue).unwrap_or_default())
        }
        ("list", format) => {
            let failure = operator.reload_failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut summary = debug_text::summary(&all, query.show_empty);
            if let Some(failure) = &failure {
                summary["reloadError"] = failure.as_str().into();
            }
            render(&summary, format, |_| {
                let failure = failure.map(|failure| debug_text::reload_failure(&failure)).unwrap_or_default();
                debug_text::queues(&all, query.show_empty) + &failure
            })
        }
        _ => Err(unknown(&what)),
    }
}

async fn hooks(
    State(operator): State<Arc<Core>>,
    Path(path): Path<String>,
) -> Result<Response, (StatusCode, String)> {
    let (path, format) = split_format(&path);
    if path == "list" {
        let hooks = operator.hooks.get();
        let names: Vec<&str> = hooks.keys().map(|name| &**name).collect();
        return render(&json!(names), format, |_| names.join("\n") + "\n").map(IntoResponse::into_response);
    }
    let name = path.strip_suffix("/snapshots").ok_or_else(|| unknown(path))?;
    let hooks = operator.hooks.get();
    let state = hooks.get(name);
    let state = state.ok_or_else(|| (StatusCode::BAD_REQUEST, format!("there is no hook '{name}'\n")))?;
    let pieces = snapshots(state);
    if format == "json" {
        return Ok(Body::from_stream(stream::iter(pieces.map(Ok::<_, Infallible>))).into_response());
    }
    let format = format.to_owned();
    let rendered = tokio::task::spawn_blocking(move || {
        let text: Vec<u8> = pieces.flatten().collect();
        let value: Value = serde_json::from_slice(&text).map_err(internal)?;
        drop(text);
        render(&value, &format, |value| format!("{value:#}\n"))
    });
    rendered.await.map_err(internal)?.map(IntoResponse::into_response)
}

fn internal(error: impl std::fmt::Display) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
}

/// The snapshots of a hook's bindings, as JSON in pieces. The objects are text already, and are never joined: an operator with
/// little memory left must not end because a user inspects it.
fn snapshots(state: &HookState) -> impl Iterator<Item = Vec<u8>> + Send + use<> {
    let by_name = |monitor: &Arc<Monitor>| (monitor.binding.name.clone(), monitor.clone());
    let monitors: BTreeMap<String, Arc<Monitor>> = state.monitors.iter().map(by_name).collect();
    let bindings = monitors.into_iter().enumerate().flat_map(|(position, (name, monitor))| {
        let (since_start, since_last) = monitor.counts();
        let operations = json!({ "sinceLastExecution": since_last, "sinceStart": since_start });
        let comma = if position > 0 { "," } else { "" };
        let begin = format!("{comma}{}:{{\"operations\":{operations},\"snapshot\":[", json!(name));
        let items = monitor.snapshot().into_iter().enumerate();
        let items = items.map(|(position, item)| context::item_text(position, &item));
        once(begin.into_bytes()).chain(items).chain(once(b"]}".to_vec()))
    });
    once(b"{".to_vec()).chain(bindings).chain(once(b"}\n".to_vec()))
}

async fn config(State(operator): State<Arc<Core>>, Path(what): Path<String>) -> Answer {
    match split_format(&what) {
        ("list", format) => {
            let parameters = json!([operator.log_level.describe()]);
            render(&parameters, format, |value| {
                let parameter = &value[0];
                let text = |key: &str| parameter[key].as_str().unwrap_or_default().to_owned();
                format!("{} = {} ({})\n", text("name"), text("value"), text("description"))
            })
        }
        _ => Err(unknown(&what)),
    }
}

#[derive(Deserialize)]
struct SetForm {
    name: String,
    value: String,
    duration: Option<String>,
}

async fn set(State(operator): State<Arc<Core>>, Form(form): Form<SetForm>) -> Answer {
    let bad = |text: String| (StatusCode::BAD_REQUEST, format!("{text}\n"));
    if form.name != "log.level" {
        return Err(bad(format!("there is no parameter '{}'; there is log.level", form.name)));
    }
    let level = form.value.parse().map_err(|error: crate::log::LevelError| bad(error.to_string()))?;
    let time = match form.duration.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => {
            Some(duration::parse(text).ok_or_else(|| bad(format!("'{text}' is not a duration like 10m")))?)
        }
        None => None,
    };
    operator.log_level.set(level, time);
    Ok(String::new())
}
