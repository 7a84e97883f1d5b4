//! The only module of this program that prints. Progress is written to stderr, answers (status, file names) to stdout, so that a
//! script can read the answer while a person sees what takes so long.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

/// How often a long step reports that it still runs.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// One line of progress on stderr. A closed stderr is no failure.
pub(crate) fn progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "lab: {line}");
}

/// One line of answer on stdout.
pub(crate) fn answer(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// A long step: prints its beginning, a sign of life now and then, and its end with the seconds it took.
pub(crate) struct Step {
    title: String,
    begun: Instant,
    stop: Option<Sender<()>>,
    ticker: Option<JoinHandle<()>>,
}

impl Step {
    /// Begins a step; `left` describes the steps after it ("then 4 more, about 6 min in all"), and may be empty.
    pub(crate) fn begin(title: &str, left: &str) -> Self {
        let begun = Instant::now();
        progress(&if left.is_empty() { format!("{title} …") } else { format!("{title} … ({left})") });
        let (stop, stopped) = channel();
        let name = title.to_owned();
        let ticker = spawn(move || {
            while stopped.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
                progress(&format!("{name}: still at it after {} s", begun.elapsed().as_secs()));
            }
        });
        Self { title: title.to_owned(), begun, stop: Some(stop), ticker: Some(ticker) }
    }

    /// Ends the step successfully. A step that is dropped instead (on an error) only stops printing.
    pub(crate) fn done(self) {
        progress(&format!("{}: done in {:.1} s", self.title, self.begun.elapsed().as_secs_f32()));
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
    }
}
