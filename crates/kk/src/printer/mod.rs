//! The only place that writes to the terminal. Data goes to standard output, everything else to standard error.
//!
//! [`Printer`] owns the live view and knows what kind of reader there is; the other files here turn values into
//! text and write nothing.

mod confirm;
pub mod errors;
pub mod findings;
pub mod lines;
mod live;
pub mod plan;
pub mod summary;
mod table;
pub mod text;

pub use summary::Summary;
pub use table::Table;
pub use text::Paint;

use std::{
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use console::Term;
use kk_cluster::Finding;
use kk_config::Diagnostic;
use kk_engine::{Event, Listener, PlannedTask};

use crate::args::{OutputFormat, OutputOptions};
use crate::error::{Error, diagnostic};
use live::Live;

/// Widest text, also on a wide terminal and where the width is unknown.
const WIDEST: usize = 110;

/// Writes for a person or a program. Clones share the live view.
#[derive(Clone)]
pub struct Printer {
    format: OutputFormat,
    /// Colour on standard error.
    paint: Paint,
    /// Colour on standard output.
    data_paint: Paint,
    /// Absent without a terminal, with `--no-progress`, and for programs.
    live: Option<Arc<Mutex<Live>>>,
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
            // indicatif asks console, which looks at standard output; the bars are on standard error.
            console::set_colors_enabled(paint.colour);
            let (height, width) = Term::stderr().size();
            Arc::new(Mutex::new(Live::new(paint, height.into(), width.into())))
        });
        Self { format: options.output, paint, data_paint: colour(io::stdout().is_terminal()), live }
    }

    /// A printer for commands without progress.
    pub fn plain() -> Self {
        Self::new(OutputOptions { no_progress: true, output: OutputFormat::Text })
    }

    /// Writes data. A reader that has closed its end (`kk … | head`) is no error.
    ///
    /// # Errors
    /// Standard output cannot be written, for example because the disk is full.
    pub fn data(&self, text: &str) -> Result<(), Error> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::other("write to standard output", error))
            }
            _ => Ok(()),
        }
    }

    /// Writes a message for the person, above the live view where there is one.
    pub fn message(&self, text: &str) {
        let text = text.trim_end_matches('\n');
        match self.live() {
            Some(live) if live.is_drawn() => live.above(text),
            // There is nobody left to tell when standard error is gone.
            _ => drop(writeln!(io::stderr().lock(), "{text}")),
        }
    }

    /// Writes findings of the configuration.
    pub fn diagnostics(&self, findings: &[Diagnostic]) {
        self.events(&errors::warnings(findings));
        for finding in findings {
            self.message(&format!("{}\n", diagnostic(self.paint, finding)));
        }
    }

    /// Writes why the command ended badly, as the last thing: for programs as events, and always for people.
    pub fn error(&self, error: &Error) {
        self.clear();
        self.events(&errors::json_lines(error));
        self.message(&error.render(self.paint));
    }

    /// Shows that something has happened. Never fails: a run goes on when nobody watches it any more.
    pub fn event(&self, event: &Event) {
        match (self.format, self.live()) {
            (OutputFormat::Json, _) => {
                let line = serde_json::to_string(event).expect("events are plain data");
                self.events(&format!("{line}\n"));
            }
            (OutputFormat::Text, Some(mut live)) => live.event(&event.kind),
            (OutputFormat::Text, None) => {
                let _ = write!(io::stderr().lock(), "{}", lines::render(event, self.paint));
            }
        }
    }

    /// Shows what was noticed about the hosts, when there is something: a table, or an event for each finding.
    pub fn findings(&self, list: &[Finding]) {
        match self.format {
            OutputFormat::Json => self.events(&findings::json_lines(list)),
            OutputFormat::Text if list.is_empty() => {}
            OutputFormat::Text => {
                self.message(&format!("\n{}\n", findings::render(list, self.paint, width())));
            }
        }
    }

    /// Writes the plan as data.
    ///
    /// # Errors
    /// As [`Printer::data`].
    pub fn plan(&self, tasks: &[PlannedTask]) -> Result<(), Error> {
        self.clear();
        match self.format {
            OutputFormat::Text => self.data(&plan::render(tasks, self.data_paint)),
            OutputFormat::Json => self.data(&plan::json_lines(tasks)),
        }
    }

    /// Shows how a run ended well. For programs the last event says it.
    pub fn summary(&self, summary: &Summary) {
        self.clear();
        if self.format == OutputFormat::Text {
            self.message(&summary.render(self.paint, width()));
        }
    }

    /// Asks whether to go on. Whoever cannot be asked is an error; see [`Printer::can_ask`].
    ///
    /// # Errors
    /// The terminal cannot be read.
    pub fn confirm(&self, question: &str) -> Result<bool, Error> {
        self.clear();
        confirm::ask(question, &mut io::stdin().lock(), &mut io::stderr().lock())
    }

    /// Whether there is a person who can answer.
    pub fn can_ask(&self) -> bool {
        self.format == OutputFormat::Text && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Writes lines of JSON, with `--output json`. A run goes on when nobody reads them any more.
    fn events(&self, lines: &str) {
        if self.format == OutputFormat::Json {
            let _ = io::stdout().lock().write_all(lines.as_bytes());
        }
    }

    fn clear(&self) {
        if let Some(mut live) = self.live() {
            live.clear();
        }
    }

    fn live(&self) -> Option<MutexGuard<'_, Live>> {
        // What is drawn stays usable when a thread panicked while drawing.
        self.live.as_ref().map(|live| live.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Listener for Printer {
    fn on_event(&mut self, event: &Event) {
        self.event(event);
    }
}

/// Columns for text.
fn width() -> usize {
    Term::stderr().size_checked().map_or(WIDEST, |(_, columns)| usize::from(columns).min(WIDEST))
}
