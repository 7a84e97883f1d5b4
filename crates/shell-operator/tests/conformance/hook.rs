//! Cases of the search for hooks, and of the handling of their output.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use shell_operator::hook::{Labels, LineLog, Program, discover, safe_name};
use shell_operator::limiter::Limiter;
use shell_operator::log::{Format, Level, Logger};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::program::make_file;
use crate::value::{contains, covers, same};

/// Files of a directory, and which of them are hooks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Discovery {
    /// Modes by path.
    files: BTreeMap<String, String>,
    hooks: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

impl Discovery {
    pub(crate) fn run(&self) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        for (path, mode) in &self.files {
            make_file(&dir.path().join(path), "#!/bin/sh\n", mode)?;
        }
        let found = discover(dir.path()).map_err(|error| error.to_string())?;
        let name = |path: &std::path::PathBuf| path.strip_prefix(dir.path()).unwrap().display().to_string();
        same(found.hooks.iter().map(name).collect::<Vec<_>>(), self.hooks.clone())?;
        same(found.warnings.len(), self.warnings.len())?;
        contains(&found.warnings.join("\n"), &self.warnings)
    }
}

/// The output of a hook, and the records it becomes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Output {
    /// The text; `LONG` in it is replaced by a million letters.
    text: String,
    /// `--log-proxy-hook-json`
    #[serde(default)]
    proxy_json: bool,
    #[serde(default)]
    debug: bool,
    /// The records, as far as they matter; a string that ends in `…` is a beginning, a string that begins with it an end.
    records: Vec<Value>,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Output {
    /// Runs a real program that prints it, so that the path from the pipe to the log is the real one.
    pub(crate) fn run(&self) -> Result<(), String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), self.text.replace("LONG", &"x".repeat(1 << 20))).unwrap();
        let lines = Lines::default();
        let level = if self.debug { Level::Debug } else { Level::Info };
        let logger = Logger::new(Format::Json, false, level, Box::new(lines.clone()));
        let labels: Labels =
            ["hook", "binding", "event", "queue"].map(|key| (key.to_owned(), key.into())).into();
        let log = |stream| LineLog::new(logger.clone(), &labels, stream, self.proxy_json);
        let program = Program {
            path: Path::new("/bin/cat"),
            arguments: &[file.path().to_str().unwrap()],
            directory: Path::new("/"),
            environment: Vec::new(),
            timeout: Some(Duration::from_secs(20)),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ended = runtime.block_on(program.run(log("stdout"), log("stderr"), &CancellationToken::new()));
        ended.map_err(|error| error.to_string())?;
        let bytes = lines.0.lock().unwrap().clone();
        let records: Vec<Value> = String::from_utf8(bytes)
            .unwrap()
            .lines()
            .map(|line| shortened(serde_json::from_str(line).unwrap()))
            .collect();
        let expected: Vec<Value> = self.records.iter().cloned().map(shortened).collect();
        let (records, expected) = (Value::Array(records), Value::Array(expected));
        if covers(&records, &expected) {
            Ok(())
        } else {
            Err(format!("expected {expected}\n but it is {records}"))
        }
    }
}

/// A long text by its end, so that cases can name it.
fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > 1000 => {
            let end: String = text.chars().skip(text.chars().count() - 12).collect();
            Value::String(format!("…{end}"))
        }
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, shortened(value))).collect(),
        Value::Array(items) => items.into_iter().map(shortened).collect(),
        other => other,
    }
}

/// The times at which runs that are requested at once may begin.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limit {
    /// `executionMinInterval` in seconds.
    interval: f64,
    burst: u32,
    /// Seconds after which each run begins.
    starts: Vec<f64>,
}

impl Limit {
    pub(crate) fn run(&self) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let starts = runtime.unwrap().block_on(async {
            let limiter = Limiter::new(Duration::from_secs_f64(self.interval), self.burst);
            let (begin, mut starts) = (Instant::now(), Vec::new());
            for _ in &self.starts {
                limiter.wait().await;
                starts.push(begin.elapsed().as_secs_f64().round());
            }
            starts
        });
        same(&starts, &self.starts)
    }
}

/// A hook's name as part of a file's name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SafeName {
    hook: String,
    name: String,
}

impl SafeName {
    pub(crate) fn run(&self) -> Result<(), String> {
        same(safe_name(&self.hook), self.name.clone())
    }
}
