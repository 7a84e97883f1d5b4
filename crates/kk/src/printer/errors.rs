//! Formats the problems of a failed command, and warnings of the configuration, as text.

use kk_engine::{FailedTask, Problem, Warning};

use crate::exit::ExitStatus;

use super::{Paint, text};

/// The title for a host that did not answer before any task began.
pub const CONNECT: &str = "Connect";

/// One block for each problem; hosts that failed in the same way share one.
pub fn render(problems: &[Problem], paint: Paint) -> String {
    let same = |a: &Problem, b: &Problem| {
        let ignoring_host = |problem: &Problem| {
            let mut problem = problem.clone();
            problem.task.iter_mut().for_each(|task| task.host.clear());
            problem
        };
        a.task.is_some() && ignoring_host(a) == ignoring_host(b)
    };
    let host = |problem: &Problem| problem.task.as_ref().map_or("", |task| &task.host).to_owned();
    let blocks: Vec<String> = text::fold(problems, host, same)
        .into_iter()
        .map(|(problem, hosts)| match (&problem.place, &problem.task) {
            (Some(place), _) => format!("{}\n", coloured(&place.text, |word| paint.red(word))),
            (None, Some(task)) => on_hosts(problem, task, &hosts, paint),
            (None, None) => block(paint, &problem.message, &[], problem.hint.as_deref()),
        })
        .collect();
    blocks.join("\n")
}

/// A warning with its position.
pub fn warning(warning: &Warning, paint: Paint) -> String {
    if let Some(place) = &warning.place {
        return format!("{}\n", coloured(&place.text, |word| paint.yellow(word)));
    }
    let hint = warning.hint.as_ref().map(|hint| format!("\n  {} {hint}", paint.cyan("hint:")));
    format!("{} {}{}\n", paint.yellow("warning:"), warning.message, hint.unwrap_or_default())
}

/// The text below the problems of a run: its state, its log, and the next step.
pub fn closing(problems: &[Problem], changed: usize, log: Option<&str>) -> String {
    let cancelled = problems.iter().any(|problem| problem.exit_code == ExitStatus::Cancelled.code());
    let tasks_ran =
        |problem: &Problem| problem.task.is_some() && problem.exit_code == ExitStatus::Failed.code();
    let log = log.map_or_else(String::new, |log| format!("log: {log}\n"));
    if changed > 0 || problems.iter().any(tasks_ran) {
        format!("{log}run the same command again to continue\n")
    } else if cancelled {
        log
    } else {
        format!("{log}nothing was changed on any host\n")
    }
}

/// The text below the problems of a command that did not begin a run.
pub fn count(problems: &[Problem]) -> Option<String> {
    let config = |problem: &&Problem| problem.exit_code == ExitStatus::Config.code();
    let number = problems.iter().filter(config).count();
    (number > 0)
        .then(|| format!("{} in the configuration; no host was contacted\n", text::count(number, "error")))
}

/// The first word in colour.
fn coloured(plain: &str, colour: impl Fn(&str) -> String) -> String {
    let (word, rest) = plain.split_once(' ').unwrap_or((plain, ""));
    format!("{} {rest}", colour(word))
}

fn on_hosts(problem: &Problem, task: &FailedTask, hosts: &[String], paint: Paint) -> String {
    let hosts = text::names(hosts, 8);
    let unreached = [ExitStatus::Connection, ExitStatus::Partly].map(ExitStatus::code);
    let doing = if unreached.contains(&problem.exit_code) || task.title == CONNECT {
        "connect to".to_owned()
    } else {
        format!("{} on", text::in_sentence(&task.title))
    };
    let message = format!("failed to {doing} {hosts}: {}", problem.message);
    block(paint, &message, &details(paint, task), problem.hint.as_deref())
}

fn block(paint: Paint, message: &str, details: &[String], hint: Option<&str>) -> String {
    let mut out = format!("{} {message}\n", paint.red("error:"));
    for detail in details {
        out += &text::indent(detail, 2);
    }
    if let Some(hint) = hint {
        out += &format!("  {} {hint}\n", paint.cyan("hint:"));
    }
    out
}

fn details(paint: Paint, task: &FailedTask) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(command) = &task.command {
        lines.push(format!("{} {command}", paint.dim("command:")));
    }
    if let Some(code) = task.code {
        lines.push(format!("{} {code}", paint.dim("exit code:")));
    }
    if !task.stderr.is_empty() {
        lines.push(paint.dim("last lines of stderr:"));
        lines.extend(task.stderr.iter().map(|line| format!("  {line}")));
    }
    lines
}
