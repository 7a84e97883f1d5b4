//! Queries KubeSphere repeatedly in one round trip: a script prints the states, and the control machine judges them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kk_connector::{Command, Error, Output};
use kk_engine::Context;
use tokio::sync::mpsc;

use super::state::State;

/// The result of one query.
#[derive(Debug, PartialEq)]
pub(super) struct Seen<T> {
    /// Lines for the user.
    pub(super) news: Vec<String>,
    /// How the wait ends, if it ends.
    pub(super) end: Option<T>,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self { news: Vec::new(), end: None }
    }
}

/// The maximum output of one query. Longer output counts as no answer.
const LARGEST: usize = 4 << 20;

/// Runs a script that prints a line "end" after each query, until `judge` ends the wait. The error is how the script ended before
/// that.
pub(super) async fn look<T>(
    context: &Context,
    script: Arc<str>,
    limit: Duration,
    mut judge: impl FnMut(&State, Duration) -> Seen<T>,
) -> Result<(T, State), Result<Output, Error>> {
    let (lines, mut said) = mpsc::channel(Command::LINES);
    let enough = context.cancel.child_token();
    let mut command = Command::new(script);
    (command.timeout, command.cancel, command.lines) = (limit, enough.clone(), Some(lines));
    let looking = context.connection.run(command);
    tokio::pin!(looking);
    let (started, mut text) = (Instant::now(), String::new());
    loop {
        let line = tokio::select! {
            output = &mut looking => return Err(output),
            line = said.recv() => line,
        };
        let Some(line) = line else { return Err(looking.await) };
        if text.len() + line.len() >= LARGEST {
            text.clear();
        }
        text = text + &line + "\n";
        if line != "end" {
            continue;
        }
        // A state that cannot be parsed counts as no answer; the next state may be valid.
        let state = State::parse(&std::mem::take(&mut text)).unwrap_or_default();
        let seen = judge(&state, started.elapsed());
        seen.news.into_iter().for_each(|line| (context.note)(line));
        if let Some(end) = seen.end {
            enough.cancel();
            // The script was ended on purpose, so its result does not matter.
            let _ = looking.await;
            return Ok((end, state));
        }
    }
}
