//! Order, combining, retry and merging of tasks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::config::WatchEvent;
use crate::context::{Event, Identity, Item};
use crate::limiter::Limiter;

/// A change of an object, of which there is no other.
fn change() -> Event {
    static OBJECTS: AtomicUsize = AtomicUsize::new(0);
    change_of(&format!("o{}", OBJECTS.fetch_add(1, Ordering::Relaxed)), WatchEvent::Modified)
}

fn change_of(name: &str, change: WatchEvent) -> Event {
    let identity = Arc::new(Identity { name: name.to_owned(), ..Identity::default() });
    Event::Object { change, item: Item::default(), identity }
}

/// The one name of a hook that all its tasks have.
fn hook(name: &str) -> Arc<str> {
    static NAMES: Mutex<Vec<Arc<str>>> = Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap();
    let known = names.iter().find(|known| ***known == *name).cloned();
    known.unwrap_or_else(|| {
        names.push(name.into());
        names[names.len() - 1].clone()
    })
}

/// `hook[:kind[:group]]`, where kind is `e` (event), `c` (schedule), `s` (start), `k` or `t` (enable bindings).
fn task(text: &str) -> Task {
    let mut parts = text.split(':');
    let hook = hook(parts.next().unwrap());
    let kind = parts.next().unwrap_or("e");
    let group: Option<Arc<str>> = parts.next().map(Into::into);
    let context = |event, binding: &str| BindingContext {
        binding: binding.into(),
        event,
        group: group.clone(),
        snapshots: Arc::new([]),
    };
    let run = |binding_type, context: BindingContext, synchronizes| {
        Work::Run(Run {
            binding_type,
            contexts: vec![context],
            allow_failure: true,
            synchronizes,
            combines: true,
        })
    };
    let work = match kind {
        "e" => run(BindingType::Kubernetes, context(change(), "e"), vec![]),
        "c" => run(BindingType::Schedule, context(Event::Schedule, "c"), vec![]),
        "s" => run(BindingType::Kubernetes, context(Event::Synchronization, "s"), vec![7]),
        "k" => Work::EnableKubernetesBindings,
        "t" => Work::EnableScheduleBindings,
        other => panic!("unknown kind {other}"),
    };
    Task::new(hook, work)
}

/// `hook(binding/group,…)` for runs, `hook!` for others.
fn show(tasks: &VecDeque<Task>) -> String {
    let one = |task: &Task| match task.run() {
        None => format!("{}!", task.hook),
        Some(run) => {
            let names = run.contexts.iter().map(|context| match &context.group {
                Some(group) => format!("{}/{group}", context.binding),
                None => context.binding.to_string(),
            });
            format!("{}({})", task.hook, names.collect::<Vec<_>>().join(","))
        }
    };
    tasks.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn combining() {
    for (case, tasks, expected) in [
        ("same_hook", "a a a:c a b a", "a(e,e,c,e) b(e) a(e)"),
        ("different", "a b c", "a(e) b(e) c(e)"),
        ("group", "a:e:g a:e:g a:c:g a b a", "a(c/g,e) b(e) a(e)"),
        ("groups_and_others", "a:s:g a:s:g a:c:g a a:c:g a:c a:e:g a:k a", "a(c/g,e,c/g,c,e/g) a! a(e)"),
        ("start_stands_alone", "a:s a a", "a(s) a(e) a(e)"),
        ("not_a_run", "a:k a a", "a! a(e) a(e)"),
        ("two_groups", "a:e:g a:e:h a:e:h", "a(e/g,e/h)"),
    ] {
        let mut tasks: VecDeque<Task> = tasks.split(' ').map(task).collect();
        combine::combine_head(&mut tasks);
        assert_eq!(show(&tasks), expected, "{case}");
    }
}

#[test]
fn a_combined_run_synchronizes_all_its_bindings_and_may_fail_only_if_each_may() {
    let mut tasks: VecDeque<Task> = ["a:s:g", "a:s:g"].map(task).into();
    let Work::Run(run) = &mut tasks[1].work else { panic!() };
    run.allow_failure = false;
    combine::combine_head(&mut tasks);
    let run = tasks[0].run().unwrap();
    assert_eq!(run.synchronizes, [7, 7]);
    assert!(!run.allow_failure);
}

#[test]
fn v0_runs_are_never_combined() {
    let mut tasks: VecDeque<Task> = ["a", "a"].map(task).into();
    let Work::Run(run) = &mut tasks[0].work else { panic!() };
    run.combines = false;
    combine::combine_head(&mut tasks);
    assert_eq!(tasks.len(), 2);
}

#[test]
fn a_long_queue_grows_by_contexts_and_not_by_tasks() {
    let queue = Queue::new("q");
    queue.push((0..200).map(|_| task("a")));
    queue.push([task("b")]);
    queue.push((0..200).map(|_| task("a:e:g")));
    queue.push([task("a:s"), task("a")]);
    let state = queue.lock();
    let contexts: Vec<usize> = state.tasks.iter().map(|task| task.run().unwrap().contexts.len()).collect();
    assert_eq!(contexts, [1, 200, 1, 1, 1], "ungrouped contexts are all kept, of a group only the last");
}

/// Events of one object go to all its hooks, so their runs alternate.
#[tokio::test(start_paused = true)]
async fn two_hooks_on_the_same_objects_catch_up_in_a_run_each() {
    let queue = Arc::new(Queue::new("q"));
    queue.push([task("slow")]);
    for _ in 0..10_000 {
        queue.push([task("a"), task("b")]);
    }
    assert_eq!((queue.len(), queue.contexts()), (3, 20_001));
    assert_eq!(work_off(queue).await.len(), 3);
}

/// A change of one of 10 objects: the first ten make them.
fn change_task(number: u32) -> Task {
    let change = if number < 10 { WatchEvent::Added } else { WatchEvent::Modified };
    let mut task = task("a");
    let Work::Run(run) = &mut task.work else { panic!() };
    run.contexts[0].event = change_of(&format!("o{}", number % 10), change);
    task
}

#[test]
fn a_queue_that_is_far_behind_keeps_one_change_an_object() {
    let queue = Queue::new("q");
    queue.push([task("slow")]);
    queue.push((0..100_000).map(change_task));
    assert!(queue.contexts() < 10_100, "{}", queue.contexts());
    let state = queue.lock();
    let Event::Object { change, identity, .. } = &state.tasks[1].run().unwrap().contexts[0].event else {
        panic!()
    };
    assert_eq!((*change, &*identity.name), (WatchEvent::Added, "o0"));
}

/// Contexts that arrive between two attempts are added to the run that failed.
#[test]
fn a_run_that_fails_for_long_keeps_one_context_of_a_kind() {
    for (case, task) in [("changes", change_task as fn(u32) -> Task), ("schedules", |_| task("a:c"))] {
        println!("case {case}");
        let mut tasks = VecDeque::from([task(0)]);
        for attempt in 0..10 {
            for number in 0..9_000 {
                combine::push(&mut tasks, task(attempt * 9_000 + number));
            }
            combine::combine_head(&mut tasks);
        }
        let contexts = tasks[0].run().unwrap().contexts.len();
        assert!(tasks.len() == 1 && contexts < 20_000, "{case}: {} tasks, {contexts} contexts", tasks.len());
    }
}

#[test]
fn delays() {
    for (failures, chance, milliseconds) in
        [(0, 0.9, 5000), (1, 0.0, 6000), (1, 0.99, 6900), (5, 0.55, 21500), (6, 0.0, 32000), (60, 1.0, 32000)]
    {
        assert_eq!(delay(failures, chance), Duration::from_millis(milliseconds), "{failures}, {chance}");
    }
}

/// Records its tasks; fails the first attempts for a hook named `bad`.
#[derive(Default)]
struct Recorder {
    seen: Mutex<Vec<String>>,
    attempts: AtomicUsize,
    limiter: Option<Limiter>,
}

impl Handler for Recorder {
    async fn admit(&self, _hook: &Arc<str>) {
        if let Some(limiter) = &self.limiter {
            limiter.wait().await;
        }
    }

    async fn handle(&self, _queue: &Queue, task: Task) -> Outcome {
        self.seen.lock().unwrap().push(show(&[task.clone()].into()));
        match &*task.hook {
            "bad" if self.attempts.fetch_add(1, Ordering::SeqCst) < 2 => Outcome::Failed("no".into()),
            "panics" if self.attempts.fetch_add(1, Ordering::SeqCst) < 1 => panic!("bug"),
            "adds" => Outcome::Done(vec![self::task("x"), self::task("y")]),
            _ => Outcome::Done(vec![]),
        }
    }
}

async fn work_off_tasks(tasks: &[&str]) -> Vec<String> {
    let queue = Arc::new(Queue::new("q"));
    queue.push(tasks.iter().map(|text| task(text)));
    work_off(queue).await
}

/// Lets a worker empty the queue; the runs that it did.
async fn work_off(queue: Arc<Queue>) -> Vec<String> {
    let (handler, stop) = (Arc::new(Recorder::default()), CancellationToken::new());
    let worker = tokio::spawn(run(queue.clone(), handler.clone(), stop.clone()));
    while !queue.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    worker.await.unwrap();
    handler.seen.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_failing_task_blocks_its_queue_until_it_succeeds() {
    assert_eq!(work_off_tasks(&["bad", "b", "bad"]).await, ["bad(e)", "bad(e)", "bad(e)", "b(e)", "bad(e)"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failed_run() {
    assert_eq!(work_off_tasks(&["panics", "b"]).await, ["panics(e)", "panics(e)", "b(e)"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_task_adds_comes_before_the_others() {
    assert_eq!(work_off_tasks(&["adds", "b"]).await, ["adds(e)", "x(e)", "y(e)", "b(e)"]);
}

#[tokio::test(start_paused = true)]
async fn what_arrives_while_a_task_waits_for_its_retry_is_added_to_it() {
    let queue = Arc::new(Queue::new("q"));
    queue.push([task("bad")]);
    let (handler, stop) = (Arc::new(Recorder::default()), CancellationToken::new());
    let worker = tokio::spawn(run(queue.clone(), handler.clone(), stop.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.push([task("bad:c")]);
    tokio::time::sleep(Duration::from_mins(1)).await;
    stop.cancel();
    worker.await.unwrap();
    assert_eq!(*handler.seen.lock().unwrap(), ["bad(e)", "bad(e,c)", "bad(e,c)"]);
}

/// The run waits for its turn, and takes with it what arrives meanwhile.
#[tokio::test(start_paused = true)]
async fn a_hook_that_may_not_run_yet_gathers_what_arrives() {
    let queue = Arc::new(Queue::new("q"));
    queue.push([task("a")]);
    let limiter = Some(Limiter::new(Duration::from_secs(5), 1));
    let handler = Arc::new(Recorder { limiter, ..Recorder::default() });
    let stop = CancellationToken::new();
    let worker = tokio::spawn(run(queue.clone(), handler.clone(), stop.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(queue.busy_for(), None, "the first run is done");
    queue.push([task("a:c")]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.push([task("a:c")]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(dump(&queue).status, "wait until the hook may run again");
    assert!(queue.busy_for().is_some());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(*handler.seen.lock().unwrap(), ["a(e)", "a(c,c)"]);
    queue.push([task("a")]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.cancel();
    let ended = tokio::time::Instant::now();
    worker.await.unwrap();
    assert!(ended.elapsed() < Duration::from_secs(1), "an end does not wait for the hook's turn");
}

#[tokio::test]
async fn a_dump_shows_status_and_failures() {
    let queue = Queue::new("q1");
    let mut failed = task("hook.sh:e:g");
    failed.failures = 2;
    failed.last_error = Some("hook.sh FAILED: cmd run: exit status 1".into());
    queue.push([failed, task("hook.sh:t")]);
    queue.lock().status = Status::Sleeping { delay: Duration::from_secs(6), since: Instant::now() };
    let dump = dump(&queue);
    assert_eq!(dump.status, "sleep after fail for 6s (6s left of 6s delay)");
    let texts: Vec<&str> = dump.tasks.iter().map(|task| task.description.as_str()).collect();
    assert_eq!(
        texts,
        [
            "HookRun:q1:kubernetes:hook.sh:group=g:e:failures 2:hook.sh FAILED: cmd run: exit status 1",
            "EnableScheduleBindings:::hook.sh:EnableScheduleBindings"
        ]
    );
}
