//! The figures, each from a run of the operator of its own.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::control_plane::ControlPlane;
use crate::cost;
use crate::figure::{Figure, Goal, median, quantile};
use crate::objects::{Api, COUNT};
use crate::operator::{Operator, Setup};

/// Namespace with objects of 10 KiB.
pub(crate) const LARGE: &str = "large";
/// Namespace with objects of 1 KiB.
pub(crate) const SMALL: &str = "small";
/// How often short measurements are made; the median counts.
const ROUNDS: usize = 3;
/// Time for the operator to become idle.
const REST: Duration = Duration::from_secs(3);

/// The environment of the measurements.
pub(crate) struct Bench {
    pub(crate) api: Api,
    pub(crate) plane: ControlPlane,
}

/// One or more figures from one run of the operator.
type Measure = fn(&Bench) -> Vec<Figure>;

/// All measurements with their names.
pub(crate) const ALL: [(&str, Measure); 7] = [
    ("start", start),
    ("small_memory", small_memory),
    ("full_memory", full_memory),
    ("metadata", metadata),
    ("many_hooks", many_hooks),
    ("latency", latency),
    ("filter_and_idle", filter_and_idle),
];

/// A binding that needs only the results of its filter.
const LEAN: &str = "jqFilter: .data.k, keepFullObjectsInMemory: false";

fn figure(
    name: &'static str,
    value: f64,
    unit: &'static str,
    beside: impl Into<String>,
    goal: Goal,
) -> Figure {
    Figure { name, value, unit, beside: beside.into(), goal }
}

impl Bench {
    /// An operator with hooks that only write the time.
    fn operator(&self, hooks: usize, binding: &str) -> Operator {
        let mut setup = Setup::new(&self.plane).flag("--kube-client-qps=200").flag("--kube-client-burst=400");
        for i in 0..hooks {
            let out = setup.out();
            let name = format!("h{i:02}");
            let config = format!(
                "configVersion: v1\nkubernetes: [{{name: b, apiVersion: v1, kind: ConfigMap, queue: q{i}, {binding}}}]"
            );
            let text = format!(
                "#!/bin/bash\nT=$EPOCHREALTIME\nif [ \"$1\" = --config ]; then printf '%s' '{config}'; exit; fi\nprintf '%s\\n' $T >> {}/{name}\n",
                out.display()
            );
            setup = setup.program(&name, &text);
        }
        setup.start()
    }

    /// An operator with one hook on a namespace.
    fn on(&self, namespace: &str, more: &str) -> Operator {
        self.operator(1, &format!("namespace: {{nameSelector: {{matchNames: [{namespace}]}}}}, {more}"))
    }
}

/// When a hook ran, in seconds since 1970.
fn runs(operator: &Operator, hook: usize) -> Vec<f64> {
    operator
        .file(&format!("h{hook:02}"))
        .lines()
        .map(|line| line.replace(',', ".").parse().unwrap())
        .collect()
}

fn wait_for_runs(operator: &Operator, hook: usize, count: usize) {
    while runs(operator, hook).len() < count {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// Memory with large objects, and the time from the start to the hook, compared with a plain GET of the same list.
fn start(bench: &Bench) -> Vec<Figure> {
    let (mut starts, mut gets, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        gets.push(bench.api.get(LARGE).0.as_secs_f64());
        let begin = now();
        let operator = bench.on(LARGE, LEAN);
        wait_for_runs(&operator, 0, 1);
        starts.push(runs(&operator, 0)[0] - begin);
        std::thread::sleep(REST);
        memory.push(cost::memory(operator.pid()));
    }
    let get = median(&gets);
    vec![
        figure("so_memory_10k", median(&memory), "MB", "flant:594", Goal::AtMost(40.0)),
        figure(
            "so_start_10k",
            median(&starts),
            "s",
            format!("plain_get:{get:.2},flant:6.4"),
            Goal::AtMost(2.0 * get),
        ),
    ]
}

fn small_memory(bench: &Bench) -> Vec<Figure> {
    let operator = bench.on(SMALL, LEAN);
    wait_for_runs(&operator, 0, 1);
    std::thread::sleep(REST);
    vec![figure("so_memory_1k", cost::memory(operator.pid()), "MB", "flant:183", Goal::AtMost(30.0))]
}

/// Memory with the objects kept, for each byte of their JSON.
fn full_memory(bench: &Bench) -> Vec<Figure> {
    let (_, bytes) = bench.api.get(LARGE);
    let operator = bench.on(LARGE, "jqFilter: .data.k");
    wait_for_runs(&operator, 0, 1);
    std::thread::sleep(REST);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let json = bytes as f64 / 1e6;
    let ratio = cost::memory(operator.pid()) / json;
    vec![figure("so_memory_full", ratio, "x_json", format!("json_mb:{json:.0}"), Goal::AtMost(1.3))]
}

/// Memory, and bytes that the API server sends, when a filter reads metadata only.
fn metadata(bench: &Bench) -> Vec<Figure> {
    let before = bench.api.listed_bytes();
    let operator = bench.on(LARGE, "jqFilter: .metadata.labels, keepFullObjectsInMemory: false");
    wait_for_runs(&operator, 0, 1);
    std::thread::sleep(REST);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let bytes = (bench.api.listed_bytes() - before) / COUNT as f64;
    vec![
        figure("so_listed_metadata", bytes, "bytes_per_object", "whole_object:10654", Goal::AtMost(1000.0)),
        figure("so_memory_metadata", cost::memory(operator.pid()), "MB", "-", Goal::AtMost(30.0)),
    ]
}

/// 50 hooks in 50 queues on the same objects.
fn many_hooks(bench: &Bench) -> Vec<Figure> {
    const HOOKS: usize = 50;
    /// A list consists of pages of 500 objects.
    const PAGES: f64 = 20.0;
    let (lists, begin) = (bench.api.lists(), now());
    let binding = format!("namespace: {{nameSelector: {{matchNames: [{SMALL}]}}}}, {LEAN}");
    let operator = bench.operator(HOOKS, &binding);
    (0..HOOKS).for_each(|hook| wait_for_runs(&operator, hook, 1));
    let last = (0..HOOKS).map(|hook| runs(&operator, hook)[0]).fold(0.0, f64::max);
    std::thread::sleep(REST);
    let lists = (bench.api.lists() - lists) / PAGES;
    vec![
        figure("so_start_50_hooks", last - begin, "s", "flant:35", Goal::AtMost(3.0)),
        figure("so_memory_50_hooks", cost::memory(operator.pid()), "MB", "flant:529", Goal::AtMost(60.0)),
        figure("so_lists_50_hooks", lists, "lists", "-", Goal::AtMost(1.0)),
    ]
}

/// From before the POST of an object to the first line of the hook.
fn latency(bench: &Bench) -> Vec<Figure> {
    const POSTS: usize = 300;
    bench.api.namespace("posts");
    let operator = bench.on("posts", "executeHookOnSynchronization: false");
    operator.wait_ready();
    std::thread::sleep(REST);
    let (mut posts, mut hooks) = (Vec::new(), Vec::new());
    for i in 0..POSTS {
        let begin = now();
        posts.push(bench.api.post("posts", i).as_secs_f64() * 1e3);
        wait_for_runs(&operator, 0, i + 1);
        hooks.push((runs(&operator, 0)[i] - begin) * 1e3);
        std::thread::sleep(Duration::from_millis(30));
    }
    let post = |part| format!("the_post:{:.1}", quantile(&posts, part));
    vec![
        figure(
            "so_post_to_hook_p50",
            median(&hooks),
            "ms",
            format!("{},flant:201", post(0.5)),
            Goal::AtMost(10.0),
        ),
        figure(
            "so_post_to_hook_p99",
            quantile(&hooks, 0.99),
            "ms",
            format!("{},flant:257", post(0.99)),
            Goal::AtMost(25.0),
        ),
    ]
}

/// How long the operator has handled events that had arrived, by its own metrics.
fn seconds_of_events(operator: &Operator) -> f64 {
    let text = operator.get("/metrics").unwrap();
    let sums = text.lines().filter(|line| line.starts_with("shell_operator_kube_event_duration_seconds_sum"));
    sums.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

/// CPU for events that the filter does not see, and for nothing at all.
fn filter_and_idle(bench: &Bench) -> Vec<Figure> {
    const IDLE: Duration = Duration::from_secs(30);
    let operator = bench.on(LARGE, LEAN);
    wait_for_runs(&operator, 0, 1);
    std::thread::sleep(REST);
    let pid = operator.pid();
    let (begin, at_rest) = (Instant::now(), cost::cpu(pid));
    std::thread::sleep(IDLE);
    let idle = cost::cpu(pid).saturating_sub(at_rest).as_secs_f64() / begin.elapsed().as_secs_f64() * 100.0;
    let (before, ticks, switches) = (cost::cpu(pid), cost::ticks(pid), cost::switches(pid));
    let taken = seconds_of_events(&operator);
    bench.api.touch(LARGE);
    bench.api.change_last(LARGE);
    wait_for_runs(&operator, 0, 2);
    let cpu = cost::cpu(pid).saturating_sub(before);
    let (user, system) = cost::ticks(pid);
    let (user, system) = (user - ticks.0, system - ticks.1);
    let switches = cost::switches(pid).saturating_sub(switches);
    // A tick is 10 ms.
    let of_one = |ticks: u64| ticks * 10_000 / COUNT as u64;
    assert_eq!(runs(&operator, 0).len(), 2, "only one change is one that the filter sees");
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let (rate, parse) =
        (COUNT as f64 / cpu.as_secs_f64(), (seconds_of_events(&operator) - taken) * 1e6 / COUNT as f64);
    vec![
        figure("so_idle_cpu", idle, "percent", "flant:0.3", Goal::AtMost(0.1)),
        figure(
            "so_filtered_events",
            rate,
            "per_s_and_core",
            format!(
                "user_us:{},system_us:{},parse_us:{parse:.1},context_switches:{switches}",
                of_one(user),
                of_one(system)
            ),
            Goal::AtLeast(30_000.0),
        ),
    ]
}
