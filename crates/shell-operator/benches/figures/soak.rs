//! A long run with everything that happens to an operator: nothing is lost, and memory stays as it is.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::control_plane::ControlPlane;
use crate::cost;
use crate::figure::{Figure, Goal};
use crate::objects::Api;
use crate::operator::{Operator, Setup};

/// How `--only` names it; it is left out otherwise.
pub(crate) const NAME: &str = "so_soak";

const NAMESPACE: &str = "soak";
const HOOKS: usize = 50;
const OBJECTS: usize = 2000;
const CHANGES_PER_SECOND: u32 = 100;
/// `SOAK_MINUTES` makes it shorter.
const MINUTES: u32 = 20;
/// Time until everything that was changed has reached the hooks.
const CATCH_UP: Duration = Duration::from_mins(5);
const SAMPLE: Duration = Duration::from_secs(2);

/// An event during the run.
enum Disturbance {
    HookFails,
    HookSucceeds,
    /// The API server ends and starts again.
    Restart,
}

/// The written changes: object and value.
type Changes = BTreeSet<(usize, usize)>;

/// 50 hooks with 40 objects each, one of which fails for a quarter of the time, and an API server that is restarted twice.
pub(crate) fn soak() -> Vec<Figure> {
    let mut plane = ControlPlane::start();
    let api = Api::of(&plane);
    api.namespace(NAMESPACE);
    (0..OBJECTS).for_each(|i| api.post_labelled(NAMESPACE, i, &(i % HOOKS).to_string()));
    let operator = start(&plane);
    operator.wait_long_for(Duration::from_mins(2), "readiness", |operator| operator.get("/readyz").is_ok());
    let minutes = std::env::var("SOAK_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(MINUTES);
    let time = Duration::from_mins(u64::from(minutes));
    let (written, ended) = (Mutex::new(Changes::new()), AtomicBool::new(false));
    let memory = std::thread::scope(|scope| {
        scope.spawn(|| change(&api, &written, &ended));
        let memory = sample(&mut plane, &operator, time);
        ended.store(true, Ordering::SeqCst);
        memory
    });
    let written = written.into_inner().unwrap();
    let untold = wait_for_all(&operator, &written);
    let quarter = memory.len() / 4;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / f64::from(u32::try_from(values.len()).unwrap());
    let (second, last) = (mean(&memory[quarter..2 * quarter]), mean(&memory[3 * quarter..]));
    let count = |number: usize| f64::from(u32::try_from(number).unwrap());
    vec![
        Figure {
            name: "so_soak_memory",
            value: last / second,
            unit: "last_by_second_quarter",
            beside: format!("second_mb:{second:.1},last_mb:{last:.1},minutes:{minutes}"),
            goal: Goal::AtMost(1.05),
        },
        Figure {
            name: "so_soak_lost",
            value: count(untold),
            unit: "changes",
            beside: format!("changes:{}", written.len()),
            goal: Goal::AtMost(0.0),
        },
    ]
}

fn start(plane: &ControlPlane) -> Operator {
    let mut setup = Setup::new(plane).flag("--kube-client-qps=0");
    for i in 0..HOOKS {
        let config = format!(
            "{{configVersion: v1, kubernetes: [{{name: b, apiVersion: v1, kind: ConfigMap, queue: q{i}, \
             namespace: {{nameSelector: {{matchNames: [{NAMESPACE}]}}}}, labelSelector: {{matchLabels: {{shard: '{i}'}}}}, \
             jqFilter: '[.metadata.name, .data.k]', keepFullObjectsInMemory: false}}]}}"
        );
        let fails = if i == 0 { "if [ -e $OUT/fail ]; then exit 1; fi" } else { "" };
        let body = format!("{fails}\n{{ cat $BINDING_CONTEXT_PATH; echo; }} >> $OUT/h{i}");
        setup = setup.hook(&format!("h{i:02}"), &config, &body);
    }
    setup.start()
}

/// Changes one object after the other, at the rate that is wanted, until `ended`.
fn change(api: &Api, written: &Mutex<Changes>, ended: &AtomicBool) {
    let begin = Instant::now();
    for number in 0.. {
        let due = begin + Duration::from_secs(1) * u32::try_from(number).unwrap() / CHANGES_PER_SECOND;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let object = number % OBJECTS;
        // While the API server is unavailable, nothing is written; only acknowledged changes count.
        if api.try_change(NAMESPACE, object, &number.to_string()) {
            written.lock().unwrap().insert((object, number));
        }
        if ended.load(Ordering::SeqCst) {
            return;
        }
    }
}

/// Disturbs the operator and samples its memory; returns the samples in MB.
fn sample(plane: &mut ControlPlane, operator: &Operator, time: Duration) -> Vec<f64> {
    let begin = Instant::now();
    let fail = operator.out().join("fail");
    // The first restart is before the compared quarters. Then memory that only a restart needs once is already allocated, and
    // memory that grows with each restart is visible.
    let mut disturbances = vec![
        (0.85, Disturbance::Restart),
        (0.5, Disturbance::HookSucceeds),
        (0.25, Disturbance::HookFails),
        (0.1, Disturbance::Restart),
    ];
    let mut memory = Vec::new();
    while begin.elapsed() < time {
        let due = disturbances.last().is_some_and(|(part, _)| begin.elapsed() > time.mul_f64(*part));
        if due && let Some((_, disturbance)) = disturbances.pop() {
            match disturbance {
                Disturbance::HookFails => std::fs::write(&fail, "").unwrap(),
                Disturbance::HookSucceeds => std::fs::remove_file(&fail).unwrap(),
                Disturbance::Restart => restart(plane),
            }
        }
        memory.push(cost::memory(operator.pid()));
        std::thread::sleep(SAMPLE);
    }
    memory
}

fn restart(plane: &mut ControlPlane) {
    plane.kill("kube-apiserver");
    std::thread::sleep(Duration::from_secs(3));
    plane.start_api_server();
}

/// Waits until hooks have received all written changes; returns the number of changes that they never received.
fn wait_for_all(operator: &Operator, written: &Changes) -> usize {
    let begin = Instant::now();
    loop {
        let missing = written.difference(&told(operator)).count();
        if missing == 0 || begin.elapsed() > CATCH_UP {
            return missing;
        }
        std::thread::sleep(SAMPLE);
    }
}

/// The changes that hooks received.
fn told(operator: &Operator) -> Changes {
    let mut told = Changes::new();
    for hook in 0..HOOKS {
        let text = operator.file(&format!("h{hook}"));
        // The last one may be half written.
        for run in serde_json::Deserializer::from_str(&text).into_iter::<Vec<serde_json::Value>>().flatten() {
            for context in run {
                let (name, value) = (&context["filterResult"][0], &context["filterResult"][1]);
                if let (Some(name), Some(value)) = (name.as_str(), value.as_str()) {
                    let object = name.trim_start_matches('c').parse().unwrap();
                    told.extend(value.parse().ok().map(|value| (object, value)));
                }
            }
        }
    }
    told
}
