//! Shows progress on a terminal: a line for each host with its current task, a bar for its transfer, and finished modules above.
//! If there are more hosts than the terminal has lines, they share one line.
//!
//! The state here is only for drawing. It is derived from the events, and no other code reads it.

use std::{collections::BTreeMap, time::Duration};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use kk_engine::{EventKind, Outcome};

use super::{Paint, lines};

/// How often spinners turn.
const TICK: Duration = Duration::from_millis(100);
/// Lines that are left free below and above the hosts.
const SPARE_LINES: usize = 3;

/// Minimum number of columns for a bar with its bytes next to a readable title.
const WIDE: usize = 96;

/// The live view.
pub(super) struct Live {
    bars: MultiProgress,
    look: Look,
    hosts: BTreeMap<String, Host>,
    /// The one line for all hosts if there are too many.
    folded: Option<ProgressBar>,
    /// Lines of the terminal.
    height: usize,
}

/// How lines are drawn.
#[derive(Clone, Copy)]
struct Look {
    paint: Paint,
    /// Whether there is room for a bar.
    wide: bool,
}

/// One host.
struct Host {
    /// Absent if all hosts share a line.
    bar: Option<ProgressBar>,
    /// The text between tasks.
    idle: &'static str,
    /// Its running tasks, the newest last.
    running: Vec<Running>,
}

struct Running {
    module: String,
    task: String,
    title: String,
    /// Whether it has reported how many bytes it transfers.
    transfer: bool,
}

impl Live {
    /// For a terminal of this many lines and columns.
    pub(super) fn new(paint: Paint, height: usize, width: usize) -> Self {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let look = Look { paint, wide: width >= WIDE };
        Self { bars, look, hosts: BTreeMap::new(), folded: None, height }
    }

    pub(super) fn event(&mut self, event: &EventKind) {
        if let Some(line) = lines::headline(event, self.look.paint) {
            self.above(&line);
        }
        match event {
            EventKind::RunStarted { hosts, .. } => hosts.iter().for_each(|host| self.add_host(host)),
            EventKind::Probed { host } => self.idle(host, "ready"),
            EventKind::TaskStarted { host, module, task, title, .. } => {
                let running = Running {
                    module: module.clone(),
                    task: task.clone(),
                    title: title.clone(),
                    transfer: false,
                };
                self.add_host(host);
                self.change(host, |host| host.start(running));
            }
            EventKind::Progress { host, module, task, done, total } => {
                self.change(host, |host| host.progress(module, task, *done, *total));
            }
            EventKind::TaskFinished { host, module, task, title, outcome, took_ms } => {
                if !matches!(outcome, Outcome::Changed { .. })
                    && let Some(line) =
                        lines::finished(&format!("{host}  {title}"), outcome, *took_ms, self.look.paint)
                {
                    self.above(&line);
                }
                self.change(host, |host| host.finish(module, task));
            }
            EventKind::RunFinished { .. } => self.clear(),
            _ => {}
        }
    }

    /// Removes all lines that are still displayed.
    pub(super) fn clear(&mut self) {
        for bar in self.hosts.values().filter_map(|host| host.bar.as_ref()).chain(&self.folded) {
            bar.finish_and_clear();
        }
        self.hosts.clear();
        self.folded = None;
    }

    /// Whether lines are displayed that other text must not interrupt.
    pub(super) fn is_drawn(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Prints a text above the display.
    pub(super) fn above(&self, text: &str) {
        // If the terminal is gone, there is no reader.
        let _ = self.bars.println(text);
    }

    /// Adds a line for a host without one: at the start, and again after a question cleared the screen.
    fn add_host(&mut self, name: &str) {
        if self.hosts.contains_key(name) {
            return;
        }
        let host = Host { bar: None, idle: "connecting", running: Vec::new() };
        self.hosts.insert(name.to_owned(), host);
        if self.folded.is_none() && self.hosts.len() + SPARE_LINES > self.height {
            self.fold();
        }
        if self.folded.is_some() {
            return;
        }
        let bar = self.new_line();
        if let Some(host) = self.hosts.get_mut(name) {
            host.bar = Some(bar);
            host.draw(self.look);
        }
        let longest = self.hosts.keys().map(String::len).max().unwrap_or(0);
        for (name, host) in &self.hosts {
            if let Some(bar) = &host.bar {
                bar.set_prefix(format!("{name:<longest$}"));
            }
        }
    }

    /// Replaces the lines of all hosts by one line.
    fn fold(&mut self) {
        for bar in self.hosts.values_mut().filter_map(|host| host.bar.take()) {
            bar.finish_and_clear();
        }
        let line = self.new_line();
        line.set_style(folded(self.look));
        self.folded = Some(line);
    }

    fn new_line(&self) -> ProgressBar {
        let bar = self.bars.add(ProgressBar::new_spinner().with_style(spinner(self.look)));
        bar.enable_steady_tick(TICK);
        bar
    }

    fn idle(&mut self, name: &str, what: &'static str) {
        self.change(name, |host| host.idle = what);
    }

    /// Changes a host and redraws it.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Host)) {
        if let Some(host) = self.hosts.get_mut(name) {
            change(host);
            host.draw(self.look);
        }
        self.draw_folded();
    }

    fn draw_folded(&self) {
        if let Some(bar) = &self.folded {
            let now: Vec<&str> = self.hosts.values().map(Host::title).collect();
            bar.set_message(tally(&now));
        }
    }
}

impl Host {
    fn start(&mut self, running: Running) {
        self.running.retain(|other| !other.is(&running.module, &running.task));
        self.running.push(running);
        if let Some(bar) = &self.bar {
            bar.reset_elapsed();
        }
    }

    fn progress(&mut self, module: &str, task: &str, done: u64, total: u64) {
        let Some(running) = self.running.iter_mut().find(|running| running.is(module, task)) else { return };
        let first = !std::mem::replace(&mut running.transfer, true);
        let Some(bar) = &self.bar else { return };
        bar.set_position(done);
        let total = (total > 0).then_some(total);
        if first || bar.length() != total {
            // This also sets the start of the rate, so that bytes of an earlier attempt do not count in a resumed transfer.
            total.map_or_else(|| bar.unset_length(), |total| bar.set_length(total));
            bar.reset_eta();
        }
    }

    fn finish(&mut self, module: &str, task: &str) {
        self.idle = "waiting";
        self.running.retain(|running| !running.is(module, task));
    }

    fn title(&self) -> &str {
        self.running.last().map_or(self.idle, |running| running.title.as_str())
    }

    /// Draws all running tasks, the transfer last, next to its bar.
    fn draw(&self, look: Look) {
        let Some(bar) = &self.bar else { return };
        let (transfers, steps): (Vec<&Running>, Vec<&Running>) =
            self.running.iter().partition(|running| running.transfer);
        let titles: Vec<&str> =
            steps.iter().chain(&transfers).map(|running| running.title.as_str()).collect();
        bar.set_style(match (self.running.is_empty(), transfers.is_empty(), bar.length()) {
            (true, ..) => idle(look),
            (_, true, _) => spinner(look),
            (_, false, Some(_)) => transfer(look),
            (_, false, None) => transfer_of_unknown_size(look),
        });
        bar.set_message(if titles.is_empty() { self.idle.to_owned() } else { titles.join(" + ") });
    }
}

impl Running {
    fn is(&self, module: &str, task: &str) -> bool {
        self.module == module && self.task == task
    }
}

/// `50 hosts: 31 Start containerd, 12 Upload programs, 7 waiting`, the most frequent first.
fn tally(titles: &[&str]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for title in titles {
        *counts.entry(title).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let parts: Vec<String> = counts.iter().map(|(title, count)| format!("{count} {title}")).collect();
    format!("{} hosts: {}", titles.len(), parts.join(", "))
}

fn style(look: Look, coloured: &str, plain: &str) -> ProgressStyle {
    let template = if look.paint.colour { coloured } else { plain };
    ProgressStyle::with_template(template).expect("the templates in this file are well-formed")
}

fn idle(look: Look) -> ProgressStyle {
    style(look, "  {prefix:.bold}  {wide_msg:.dim}", "  {prefix}  {wide_msg}")
}

fn spinner(look: Look) -> ProgressStyle {
    style(
        look,
        "{spinner:.cyan} {prefix:.bold}  {wide_msg} {elapsed:.dim}",
        "{spinner} {prefix}  {wide_msg} {elapsed}",
    )
}

/// The one line for all hosts.
fn folded(look: Look) -> ProgressStyle {
    style(look, "{spinner:.cyan} {wide_msg} {elapsed:.dim}", "{spinner} {wide_msg} {elapsed}")
}

fn transfer(look: Look) -> ProgressStyle {
    if look.wide {
        style(
            look,
            "{spinner:.cyan} {prefix:.bold}  {wide_msg} {bar:20.cyan/dim} {bytes:>10}/{total_bytes:10} \
             {binary_bytes_per_sec:>12} {eta:>4}",
            "{spinner} {prefix}  {wide_msg} {bar:20} {bytes:>10}/{total_bytes:10} {binary_bytes_per_sec:>12} {eta:>4}",
        )
        .progress_chars("━╸─")
    } else {
        style(
            look,
            "{spinner:.cyan} {prefix:.bold}  {wide_msg} {percent:>3}% {binary_bytes_per_sec:>12} {eta:>4}",
            "{spinner} {prefix}  {wide_msg} {percent:>3}% {binary_bytes_per_sec:>12} {eta:>4}",
        )
    }
}

fn transfer_of_unknown_size(look: Look) -> ProgressStyle {
    style(
        look,
        "{spinner:.cyan} {prefix:.bold}  {wide_msg} {bytes:>10} {binary_bytes_per_sec:>12}",
        "{spinner} {prefix}  {wide_msg} {bytes:>10} {binary_bytes_per_sec:>12}",
    )
}

#[cfg(test)]
mod tests {
    use super::tally;

    #[test]
    fn folded_hosts_are_counted_by_what_they_do() {
        let titles = ["waiting", "Start etcd", "Start etcd", "connecting", "Start etcd", "waiting"];
        assert_eq!(tally(&titles), "6 hosts: 3 Start etcd, 2 waiting, 1 connecting");
    }
}
