//! The runs of a queue's worker, and their order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use shell_operator::context::{BindingContext, Event};
use shell_operator::queue::{BindingType, Handler, Outcome, Queue, Run, Task, Work, delay, run};
use tokio_util::sync::CancellationToken;

use crate::value::same;

/// Tasks that wait, and the runs they become.
///
/// A task is `[COUNT*]hook[:kind[:group]]`; the kind is `e` (event), `c` (schedule), `s` (run at start), `k` or `t` (enable
/// kubernetes bindings, schedules). A hook named `bad` fails twice, `panics` once; `again` puts itself at the end once, and
/// `adds` returns two tasks of the hook `x` as the next ones.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Waiting {
    tasks: String,
    /// Tasks that arrive a second after the worker began.
    #[serde(default)]
    later: String,
    /// `hook(binding/group,…)` of each run in order; `hook!` for what is no run.
    runs: String,
    /// Length of the queue before the worker begins.
    length: Option<usize>,
}

impl Waiting {
    pub(crate) fn run(&self) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runs = runtime.unwrap().block_on(self.work_off())?;
        let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
        same(runs.as_slice(), &self.runs.split_whitespace().collect::<Vec<_>>())
    }

    async fn work_off(&self) -> Result<Vec<String>, String> {
        let queue = Arc::new(Queue::new("q"));
        queue.push(tasks(&self.tasks)?);
        if let Some(length) = self.length {
            same(queue.len(), length)?;
        }
        let (recorder, stop) = (Arc::new(Recorder::default()), CancellationToken::new());
        let worker = tokio::spawn(run(queue.clone(), recorder.clone(), stop.clone()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue.push(tasks(&self.later)?);
        while !queue.is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        stop.cancel();
        worker.await.map_err(|error| error.to_string())?;
        let seen = recorder.0.lock().unwrap();
        Ok(seen.iter().map(|(text, _)| text.clone()).collect())
    }
}

/// The runs, with the hook's name.
#[derive(Default)]
struct Recorder(Mutex<Vec<(String, String)>>);

impl Handler for Recorder {
    async fn handle(&self, queue: &Queue, task: Task) -> Outcome {
        let earlier = {
            let mut seen = self.0.lock().unwrap();
            let earlier = seen.iter().filter(|(_, hook)| **hook == *task.hook).count();
            seen.push((show(&task), task.hook.to_string()));
            earlier
        };
        match (&*task.hook, earlier) {
            ("bad", 0 | 1) => Outcome::Failed("no".to_owned()),
            // As a panic, but without the message of the panic hook.
            ("panics", 0) => std::panic::resume_unwind(Box::new("a mistake")),
            ("again", 0) => {
                queue.push([task]);
                Outcome::Done(Vec::new())
            }
            ("adds", _) => Outcome::Done(tasks("2*x:k").expect("this is well formed")),
            _ => Outcome::Done(Vec::new()),
        }
    }
}

fn tasks(text: &str) -> Result<Vec<Task>, String> {
    let mut all = Vec::new();
    for word in text.split_whitespace() {
        let (count, word) = word.split_once('*').unwrap_or(("1", word));
        let count: usize = count.parse().map_err(|_| format!("{count} is no number"))?;
        for _ in 0..count {
            all.push(task(word)?);
        }
    }
    Ok(all)
}

fn task(text: &str) -> Result<Task, String> {
    let mut parts = text.split(':');
    let hook = parts.next().unwrap_or_default();
    let kind = parts.next().unwrap_or("e");
    let group: Option<Arc<str>> = parts.next().map(Into::into);
    let run = |binding_type, event, synchronizes| {
        let context =
            BindingContext { binding: kind.into(), event, group: group.clone(), snapshots: Arc::new([]) };
        let contexts = vec![context];
        Work::Run(Run { binding_type, contexts, allow_failure: false, synchronizes, combines: true })
    };
    let work = match kind {
        "e" => run(BindingType::Kubernetes, Event::Schedule, vec![]),
        "c" => run(BindingType::Schedule, Event::Schedule, vec![]),
        "s" => run(BindingType::Kubernetes, Event::Synchronization, vec![0]),
        "k" => Work::EnableKubernetesBindings,
        "t" => Work::EnableScheduleBindings,
        other => return Err(format!("unknown kind {other}")),
    };
    Ok(Task::new(name(hook), work))
}

/// The one name of a hook that all its tasks have.
fn name(hook: &str) -> Arc<str> {
    static NAMES: Mutex<Vec<Arc<str>>> = Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap();
    let known = names.iter().find(|known| ***known == *hook).cloned();
    known.unwrap_or_else(|| {
        names.push(hook.into());
        names[names.len() - 1].clone()
    })
}

/// A run as a case writes it; more than three equal neighbours are counted.
fn show(task: &Task) -> String {
    let Work::Run(run) = &task.work else { return format!("{}!", task.hook) };
    let mut names: Vec<(String, usize)> = Vec::new();
    for context in &run.contexts {
        let name = match &context.group {
            Some(group) => format!("{}/{group}", context.binding),
            None => context.binding.to_string(),
        };
        match names.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => names.push((name, 1)),
        }
    }
    let names = names.iter().map(|(name, count)| match count {
        1..=3 => vec![name.as_str(); *count].join(","),
        more => format!("{more}*{name}"),
    });
    format!("{}({})", task.hook, names.collect::<Vec<_>>().join(","))
}

/// Tasks that arrive from several threads while the worker works.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parallel {
    threads: usize,
    /// Tasks of each.
    tasks: usize,
}

impl Parallel {
    pub(crate) fn run(&self) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
        runtime.unwrap().block_on(async {
            let queue = Arc::new(Queue::new("q"));
            let (recorder, stop) = (Arc::new(Recorder::default()), CancellationToken::new());
            let worker = tokio::spawn(run(queue.clone(), recorder.clone(), stop.clone()));
            let push = |thread: usize| {
                let (queue, count) = (queue.clone(), self.tasks);
                tokio::task::spawn_blocking(move || {
                    for number in 0..count {
                        let work = Work::EnableScheduleBindings;
                        queue.push([Task::new(format!("{thread}:{number}").into(), work)]);
                    }
                })
            };
            let pushing: Vec<_> = (0..self.threads).map(push).collect();
            for thread in pushing {
                thread.await.map_err(|error| error.to_string())?;
            }
            while !queue.is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            stop.cancel();
            worker.await.map_err(|error| error.to_string())?;
            let seen = recorder.0.lock().unwrap();
            for thread in 0..self.threads {
                let of_thread = seen.iter().filter_map(|(_, hook)| hook.split_once(':'));
                let numbers = of_thread.filter(|(name, _)| *name == thread.to_string());
                let numbers: Vec<usize> = numbers.map(|(_, number)| number.parse().unwrap()).collect();
                same(numbers, (0..self.tasks).collect())?;
            }
            Ok(())
        })
    }
}

/// How long a failed task waits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delay {
    /// Failures before this one.
    failures: Vec<u32>,
    /// Seconds at least and at most.
    seconds: [f64; 2],
}

impl Delay {
    pub(crate) fn run(&self) -> Result<(), String> {
        let mut found: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
        for failures in &self.failures {
            found.insert(*failures, [0.0, 1.0].map(|chance| delay(*failures, chance).as_secs_f64()));
        }
        let [least, most] = self.seconds;
        match found.iter().find(|(_, [low, high])| *low < least || *high > most) {
            None => Ok(()),
            Some((failures, [low, high])) => Err(format!("after {failures}: from {low} to {high} s")),
        }
    }
}
