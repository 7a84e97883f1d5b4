//! Looks at KubeSphere again and again, in one round trip: a script prints what it sees, the control machine judges it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kk_connector::{Command, Error, Output};
use kk_engine::Context;
use tokio::sync::mpsc;

use super::state::State;

/// What a look brought.
#[derive(Debug, PartialEq)]
pub(super) struct Seen<T> {
    /// Lines for people.
    pub(super) news: Vec<String>,
    /// How the wait ends, when it does.
    pub(super) end: Option<T>,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self { news: Vec::new(), end: None }
    }
}

/// How much one look may print. More is no answer.
const LARGEST: usize = 4 << 20;

/// Runs a script that prints a line "end" after each look, until one of them is the last. An error is how the script ended
/// before that.
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
        // One that is not understood is no answer; the next look may be.
        let state = State::parse(&std::mem::take(&mut text)).unwrap_or_default();
        let seen = judge(&state, started.elapsed());
        seen.news.into_iter().for_each(|line| (context.note)(line));
        if let Some(end) = seen.end {
            enough.cancel();
            // That it was ended is known.
            let _ = looking.await;
            return Ok((end, state));
        }
    }
}
