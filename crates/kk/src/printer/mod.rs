//! Writes all output to the terminal; no other code does. Data is written to standard output, everything else to standard error.
//!
//! [`Printer`] owns the live view and distinguishes people from programs; the other files here turn values into text and write
//! nothing.

mod confirm;
pub mod errors;
pub mod findings;
pub mod lines;
mod live;
mod pending;
pub mod plan;
pub mod status;
pub mod summary;
mod table;
pub mod text;

pub use table::Table;
pub use text::Paint;

use std::{
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use console::Term;
use kk_engine::{Event, EventKind, Listener, Redactor, Warning};

use crate::args::{OutputFormat, OutputOptions};
use crate::error::Error;
use live::Live;
use pending::Pending;

/// Maximum width of text, even if the terminal is wider or its width is unknown.
const WIDEST: usize = 110;

/// Writes for people or for programs. Clones share the display and the pending events.
#[derive(Clone)]
pub struct Printer {
    format: OutputFormat,
    /// Colour on standard error.
    paint: Paint,
    /// Colour on standard output.
    data_paint: Paint,
    screen: Arc<Mutex<Screen>>,
}

struct Screen {
    /// Absent without a terminal, with `--no-progress`, and for programs.
    live: Option<Live>,
    pending: Pending,
    /// The error of a failed write to standard output.
    failure: Option<Error>,
}

impl Printer {
    /// A printer for the streams of this process.
    pub fn new(options: OutputOptions) -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colour = |terminal: bool| Paint { colour: terminal && !dumb && !set("NO_COLOR") };
        let paint = colour(io::stderr().is_terminal());
        let progress = options.output == OutputFormat::Text && !options.no_progress;
        let live = (progress && io::stderr().is_terminal() && !dumb && !set("CI")).then(|| {
            // indicatif uses console, which checks standard output; the bars are on standard error.
            console::set_colors_enabled(paint.colour);
            let (height, width) = Term::stderr().size();
            Live::new(paint, height.into(), width.into())
        });
        let screen = Screen { live, pending: Pending::default(), failure: None };
        let data_paint = colour(io::stdout().is_terminal());
        Self { format: options.output, paint, data_paint, screen: Arc::new(Mutex::new(screen)) }
    }

    /// A printer for commands without progress.
    pub fn plain() -> Self {
        Self::new(OutputOptions { no_progress: true, output: OutputFormat::Text })
    }

    /// Writes data. A reader that has closed the pipe (`kk … | head`) is no error.
    ///
    /// # Errors
    /// Standard output cannot be written, for example because the disk is full.
    pub fn print_stdout(&self, text: &str) -> Result<(), Error> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::other("write to standard output", error))
            }
            _ => Ok(()),
        }
    }

    /// Writes a message for the user, above the live view if there is one.
    pub fn message(&self, text: &str) {
        let text = text.trim_end_matches('\n');
        match &mut self.screen().live {
            Some(live) if live.is_drawn() => live.above(text),
            // Without standard error, the failure cannot be reported anywhere.
            _ => drop(writeln!(io::stderr().lock(), "{text}")),
        }
    }

    /// Writes a warning of a command that has no run.
    pub fn warning(&self, warning: Warning) {
        self.event(&outside_run(EventKind::Warning(warning)));
    }

    /// Writes a notice of a command that has no run.
    pub fn notice(&self, kind: EventKind) {
        let event = outside_run(kind);
        if let Some(line) = lines::headline(&event.kind, self.paint) {
            self.message(&line);
        }
    }

    /// Writes why a command that has no run failed: as events for programs, and in any case as text for people.
    pub fn error(&self, error: &Error) {
        for warning in error.warnings() {
            self.warning(warning);
        }
        for problem in error.problems() {
            self.event(&outside_run(EventKind::Error(problem)));
        }
        let text = self.screen().pending.problems(self.paint);
        self.message(&text);
    }

    /// Displays an event. Never fails, because a run does not depend on its readers.
    pub fn event(&self, event: &Event) {
        if self.format == OutputFormat::Json {
            let line = serde_json::to_string(event).expect("events are plain data");
            if let Err(error) = self.print_stdout(&format!("{line}\n")) {
                self.screen().failure.get_or_insert(error);
            }
        }
        let paints = [self.paint, self.data_paint];
        let shown = self.screen().pending.event(&event.kind, paints, width());
        match &event.kind {
            EventKind::Warning(warning) => {
                self.message(&format!("{}\n", errors::warning(warning, self.paint)));
            }
            EventKind::RunFinished { ok, .. } => self.finished(shown, *ok),
            kind if self.format == OutputFormat::Text => {
                if !shown.message.is_empty() {
                    self.message(&shown.message);
                }
                match &mut self.screen().live {
                    Some(live) => live.event(kind),
                    None => drop(write!(io::stderr().lock(), "{}", lines::render(event, self.paint))),
                }
            }
            _ => {}
        }
    }

    /// Displays the end of a run. Programs get it as events; the text of failures is also for people.
    fn finished(&self, shown: pending::Shown, ok: bool) {
        self.clear();
        if let Some(data) = shown.data.filter(|_| self.format == OutputFormat::Text) {
            let written = self.print_stdout(&data);
            self.screen().failure = written.err();
        }
        if !shown.message.is_empty() && (self.format == OutputFormat::Text || !ok) {
            self.message(&shown.message);
        }
    }

    /// Whether the data of a run, or its events, reached standard output.
    ///
    /// # Errors
    /// It could not be written.
    pub fn check_output(&self) -> Result<(), Error> {
        self.screen().failure.take().map_or(Ok(()), Err)
    }

    /// Asks for confirmation. Call it only if [`Printer::can_ask`].
    ///
    /// # Errors
    /// The terminal cannot be read.
    pub fn confirm(&self, question: &str) -> Result<bool, Error> {
        self.clear();
        confirm::ask(question, &mut io::stdin().lock(), &mut io::stderr().lock())
    }

    /// Whether a user can answer.
    pub fn can_ask(&self) -> bool {
        self.format == OutputFormat::Text && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    fn clear(&self) {
        if let Some(live) = &mut self.screen().live {
            live.clear();
        }
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        // The display stays usable if a thread panicked while drawing.
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Printer {
    fn on_event(&mut self, event: &Event) {
        self.event(event);
    }
}

/// An event of a command that has no run, and so no sender that makes its text safe.
fn outside_run(kind: EventKind) -> Event {
    Event { at_ms: 0, kind: Redactor::default().event(kind) }
}

/// Columns for text.
fn width() -> usize {
    Term::stderr().size_checked().map_or(WIDEST, |(_, columns)| usize::from(columns).min(WIDEST))
}

#[cfg(test)]
mod tests {
    use kk_engine::Problem;

    use super::*;

    #[test]
    fn an_error_of_a_command_without_a_run_does_not_control_the_terminal() {
        let refused =
            "root cannot log in to 10.0.0.1:22: the host does not allow it, only \u{1b}]0;root\u{7}";
        let problem = Problem { message: refused.into(), ..Problem::default() };
        let mut pending = Pending::default();
        pending.event(&outside_run(EventKind::Error(problem)).kind, [Paint::PLAIN; 2], 80);
        let shown = pending.problems(Paint::PLAIN);
        assert!(shown.contains("only \\u{1b}]0;root\\u{7}"), "{shown:?}");
    }
}
