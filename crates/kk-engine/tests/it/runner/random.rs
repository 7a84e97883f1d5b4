//! Runs many generated pipelines, with failures and stops at random positions: each must end, and in the right order.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use kk_connector::{Connection, FakeHost, Output};
use kk_engine::{
    HostWork, Module, Most, Options, Pipeline, Plan, PlanError, Redactor, Slot, SlotKey, Task, Turn,
    actions::Command, events, testing,
};

/// A small random number generator (linear congruential), so that a failing case has a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

const NAMES: [&str; 8] = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"];

fn slot(task: usize, host: u64) -> SlotKey {
    Slot::<()>::of_host(NAMES[task], &format!("h{host}")).key()
}

/// A pipeline whose tasks need only slots that earlier tasks provide; the needs of each task, as `tX@hY`; and the tasks inside
/// the turn "shared".
struct Case {
    pipeline: Pipeline,
    needs: HashMap<String, Vec<String>>,
    turn: Turn,
    in_turn: Vec<&'static str>,
}

fn case(dice: &mut Dice, hosts: u64) -> Case {
    let mut needs: HashMap<String, Vec<String>> = HashMap::new();
    let mut provided: Vec<(usize, u64)> = Vec::new();
    let mut barriers: Vec<(SlotKey, Vec<String>)> = Vec::new();
    let mut tasks = Vec::new();
    let mut turn = Turn::new("shared", Most::Hosts(1 + usize::try_from(dice.below(2)).unwrap()));
    if dice.percent(50) {
        turn = turn.order((0..hosts).rev().map(|host| format!("h{host}")));
    }
    let mut in_turn = Vec::new();
    for (number, name) in NAMES.iter().enumerate().take(1 + usize::try_from(dice.below(8)).unwrap()) {
        let mut task = Task::new(*name, *name);
        task.background = dice.percent(20);
        if dice.percent(25) {
            task = task.turn(turn.clone());
            in_turn.push(*name);
        } else if dice.percent(20) {
            task = task.concurrency(1);
        }
        let before = provided.clone();
        for host in (0..hosts).filter(|_| dice.percent(70)).collect::<Vec<_>>() {
            let me = format!("{name}@h{host}");
            let action = |dice: &mut Dice, last: bool| {
                let fate = if dice.percent(6) {
                    "fail"
                } else if dice.percent(2) {
                    "stop"
                } else {
                    "pass"
                };
                let idle = dice.percent(20);
                let end = if last { "end" } else { "" };
                Box::new(Command::new("do", format!("{fate} {me} {end}\n")).when(move |_| !idle))
                    as Box<dyn kk_engine::Action>
            };
            let mut work =
                HostWork::new(vec![action(dice, false), action(dice, true)]).provides(slot(number, host));
            for &(task, of) in before.iter().filter(|_| dice.percent(15)).collect::<Vec<_>>() {
                if dice.percent(80) {
                    work = work.needs(slot(task, of));
                    needs.entry(me.clone()).or_default().push(format!("{}@h{of}", NAMES[task]));
                } else {
                    work = work.after(slot(task, of));
                }
            }
            for (slot, of) in barriers.iter().filter(|_| dice.percent(30)) {
                work = work.needs(slot.clone());
                needs.entry(me.clone()).or_default().extend(of.iter().cloned());
            }
            task = task.on(&format!("h{host}"), work);
            provided.push((number, host));
        }
        if dice.percent(20) {
            let hosts = provided.iter().filter(|(task, _)| *task == number).map(|(_, host)| *host);
            let hosts: Vec<u64> = hosts.collect();
            let key = Slot::<()>::new(&format!("all_{name}")).key();
            let all = hosts.iter().map(|&host| slot(number, host));
            tasks.push(Task::barrier(format!("all_{name}"), all, key.clone()));
            barriers.push((key, hosts.iter().map(|host| format!("{name}@h{host}")).collect()));
        }
        tasks.push(task);
    }
    let pipeline = Pipeline::new(vec![Module::new("m", tasks)]);
    Case { pipeline, needs, turn, in_turn }
}

/// Asserts that no more hosts than allowed are inside the turn. With one host at a time, no other host may start after a failure.
fn check_turn(seed: u64, case: (&Turn, &[&str]), ran: &[String], failed: &[String]) {
    let (turn, in_turn) = case;
    let Most::Hosts(most) = turn.most else { unreachable!() };
    let parts =
        |who: &String| who.split_once('@').map(|(task, host)| (task.to_owned(), host.to_owned())).unwrap();
    let inside = |who: &String| in_turn.contains(&parts(who).0.as_str());
    let mut spans: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (at, who) in ran.iter().enumerate().filter(|(_, who)| inside(who)) {
        spans.entry(parts(who).1).or_insert((at, at)).1 = at;
    }
    for at in 0..ran.len() {
        let now = spans.values().filter(|(first, last)| (*first..=*last).contains(&at)).count();
        assert!(now <= most, "seed {seed}: {now} hosts inside the turn at once: {ran:?}");
    }
    for who in failed.iter().filter(|who| most == 1 && inside(who)) {
        let at = ran.iter().rposition(|did| did == who).unwrap();
        let host = parts(who).1;
        let later = ran[at + 1..].iter().find(|did| inside(did) && parts(did).1 != host);
        assert_eq!(later, None, "seed {seed}: after {who} had failed: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_run_ends_and_nothing_begins_before_what_it_needs() {
    let (mut failed, mut passed, mut refused, mut turns) = (0, 0, 0, 0);
    for seed in 0..500 {
        let mut dice = Dice(seed);
        let hosts = 1 + dice.below(4);
        let Case { pipeline, needs, turn, in_turn } = case(&mut dice, hosts);
        let options = Options {
            ignore_err: dice.percent(50),
            forks: 1 + usize::try_from(dice.below(3)).unwrap(),
            ..Options::default()
        };
        // The works that ran, in chronological order: `tX@hY`.
        let ran: Arc<Mutex<Vec<String>>> = Arc::default();
        let connections = (0..hosts).map(|host| {
            let (ran, stop) = (ran.clone(), options.stop.clone());
            let fake = FakeHost::new(format!("h{host}")).on_fn(testing::is_batch, move |command| {
                Ok(testing::answer(command, |script| {
                    let words: Vec<&str> = script.split_whitespace().collect();
                    ran.lock().unwrap().push(words[1].to_owned());
                    if words[0] == "stop" {
                        stop.cancel();
                    }
                    Output { code: i32::from(words[0] == "fail"), ..Output::default() }
                }))
            });
            (format!("h{host}"), Arc::new(fake) as Arc<dyn Connection>)
        });
        let connections: BTreeMap<_, _> = connections.collect();
        let plan = match Plan::new(pipeline, &BTreeMap::new()) {
            Ok(plan) => plan,
            // A plan whose needs contradict the order of turns is refused before anything runs.
            Err(PlanError::Cycle(_)) if !in_turn.is_empty() => {
                refused += 1;
                continue;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let busy: Vec<String> =
            plan.changes().iter().map(|planned| format!("{}@{}", planned.task, planned.host)).collect();
        let (sender, mut receiver) = events(Redactor::default());
        let run = kk_engine::run(plan, connections, options, sender);
        let report = tokio::time::timeout(Duration::from_mins(1), run).await;
        let report = report.unwrap_or_else(|_| panic!("seed {seed} hangs"));
        let (mut ended, mut all_done, mut have_failed) = (Vec::new(), true, Vec::new());
        while let Some(event) = receiver.recv().await {
            let value = serde_json::to_value(&event).unwrap();
            if value["event"] == "task_finished" {
                all_done &= value["outcome"] == "changed";
                let who = format!("{}@{}", value["task"].as_str().unwrap(), value["host"].as_str().unwrap());
                if value["outcome"] == "failed" {
                    have_failed.push(who.clone());
                }
                ended.push(who);
            }
        }
        ended.sort();
        let mut wanted = busy.clone();
        wanted.sort();
        assert_eq!(ended, wanted, "seed {seed}: each task with work ends once");
        let ran = ran.lock().unwrap();
        for (me, others) in &needs {
            let Some(began) = ran.iter().position(|who| who == me) else { continue };
            for other in others.iter().filter(|other| busy.contains(other)) {
                let done = ran.iter().rposition(|who| who == other);
                assert!(
                    done.is_some_and(|done| done < began),
                    "seed {seed}: {me} began before {other}: {ran:?}"
                );
            }
        }
        check_turn(seed, (&turn, &in_turn), &ran, &have_failed);
        turns += usize::from(in_turn.len() > 1 && report.ok);
        assert_eq!(report.ok, all_done, "seed {seed}");
        failed += usize::from(!report.failures.is_empty());
        passed += usize::from(report.ok && !busy.is_empty());
    }
    println!(
        "{failed} failed, {passed} passed, {refused} refused, {turns} with turns of several tasks passed"
    );
    assert!(
        failed > 50 && passed > 50 && refused < 250 && turns > 5,
        "the dice are loaded: {failed} failed, {passed} passed, {refused} refused, {turns} with turns"
    );
}
