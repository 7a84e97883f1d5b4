//! Results of planning before any host is touched.

use std::collections::BTreeMap;

use kk_engine::{
    Action, Facts, FileFact, HostWork, Module, Pipeline, Plan, PlanError, PlannedTask, Question, Slot,
    SlotKey, Task, actions, actions::Directory, question,
};

fn slot(name: &str) -> SlotKey {
    Slot::<()>::new(name).key()
}

fn work() -> HostWork {
    HostWork::new(vec![Box::new(Directory::new("/d")) as Box<dyn Action>])
}

fn plan(tasks: Vec<Task>, facts: &BTreeMap<String, Facts>) -> Result<Plan, PlanError> {
    Plan::new(Pipeline::new(vec![Module::new("m", tasks), Module::skipped("s", "off")]), facts)
}

fn error(tasks: Vec<Task>) -> String {
    plan(tasks, &BTreeMap::new()).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn only_hosts_with_a_difference_have_something_to_do() {
    let there =
        FileFact { kind: "dir".into(), mode: "755".into(), owner: "root:root".into(), ..FileFact::default() };
    let fine = Facts { files: BTreeMap::from([("/d".into(), there)]), ..Facts::default() };
    let facts = BTreeMap::from([("a".to_owned(), fine.clone()), ("b".to_owned(), Facts::default())]);
    let task = || Task::new("dirs", "Make directories").on("a", work()).on("b", work());
    let some = plan(vec![task()], &facts).unwrap();
    let planned = PlannedTask {
        module: "m".into(),
        task: "dirs".into(),
        title: "Make directories".into(),
        host: "b".into(),
        changes: vec!["make directory /d".into()],
    };
    assert_eq!(some.changes(), [planned]);
    assert_eq!(some.modules(), [("m".to_owned(), 1)]);
    assert!(!some.is_empty());

    let facts = BTreeMap::from([("a".to_owned(), fine.clone()), ("b".to_owned(), fine)]);
    let none = plan(vec![task()], &facts).unwrap();
    assert!(none.is_empty() && none.changes().is_empty() && none.modules().is_empty());
}

#[test]
fn a_host_that_is_only_told_about_is_none_on_which_something_is_done() {
    let task = Task::new("t", "").on("a", work().about("b")).on(kk_engine::CONTROL, work());
    let planned = plan(vec![task], &BTreeMap::new()).unwrap();
    assert_eq!(planned.hosts(), ["a".to_owned()].into());
    assert!(planned.changes().iter().any(|task| task.host == "b"));
}

#[test]
fn a_pipeline_of_empty_facts_tells_what_to_probe_on_each_host() {
    const NOTE: Question<String> = Question::new("note", "cat /note", question::text);
    let command =
        actions::Command::new("x", "x").when(|facts| !facts.files.contains_key("/x")).reads(|spec| {
            spec.files.insert("/x".into());
            spec.ask(&NOTE);
        });
    let wait =
        actions::WaitUntil::new("it is up", "true").done_by(|facts| facts.units.is_empty()).reads(|spec| {
            spec.units.insert("x.service".into());
        });
    let task = Task::new("t", "")
        .on("a", work())
        .on("b", HostWork::new(vec![Box::new(command) as Box<dyn Action>, Box::new(wait)]));
    let pipeline = Pipeline::new(vec![Module::new("m", vec![task])]);
    let asks = pipeline.asks();
    assert_eq!(asks["a"].files, ["/d".to_owned()].into());
    assert!(asks["a"].questions.is_empty() && asks["a"].units.is_empty());
    assert_eq!(asks["b"].files, ["/x".to_owned()].into());
    assert_eq!(asks["b"].questions["note"].snippet, "cat /note");
    assert_eq!(asks["b"].units, ["x.service".to_owned()].into());
}

#[test]
fn a_slot_without_a_provider_is_refused() {
    for work in [work().needs(slot("x")), work().after(slot("x"))] {
        let text = error(vec![Task::new("t", "").on("a", work)]);
        assert_eq!(text, "task m/t on a needs x, which no task provides");
    }
}

#[test]
fn what_a_host_outside_of_the_command_has_is_not_waited_for() {
    let on = |host| Slot::<()>::of_host("runs", host).key();
    let tasks = || vec![Task::new("t", "").on("a", work().needs(on("old")).after(on("old")))];
    let refused = |outside: &[&str]| {
        let outside = outside.iter().map(|host| (*host).to_owned());
        let pipeline = Pipeline::new(vec![Module::new("m", tasks())]).outside(outside);
        Plan::new(pipeline, &BTreeMap::new()).is_err()
    };
    assert!(refused(&[]) && refused(&["other"]) && !refused(&["old"]));
    // But a slot that a task provides is waited for, even there.
    let circle = vec![
        Task::new("first", "").on("old", work().needs(on("a"))),
        Task::new("second", "").on("a", work().needs(on("old")).provides(on("a"))),
        Task::new("third", "").on("old", work().provides(on("old"))),
    ];
    let pipeline = Pipeline::new(vec![Module::new("m", circle)]).outside(["old".to_owned()]);
    assert!(matches!(Plan::new(pipeline, &BTreeMap::new()), Err(PlanError::Cycle(_))));
}

#[test]
fn a_slot_with_two_providers_is_refused() {
    let task = |name| Task::new(name, "").on("a", work().provides(slot("x")));
    assert_eq!(error(vec![task("t"), task("u")]), "x is provided twice: by m/t on a and by m/u on a");
}

#[test]
fn tasks_that_wait_for_each_other_are_refused() {
    // In one lane: the need is before its provider.
    let text = error(vec![
        Task::new("first", "").on("a", work().needs(slot("x"))),
        Task::new("second", "").on("a", work().provides(slot("x"))),
    ]);
    assert_eq!(text, "these tasks wait for each other: m/first on a → m/second on a → m/first on a");

    // In two lanes, each in an order that is valid by itself.
    let text = error(vec![
        Task::new("one", "").on("a", work().needs(slot("y"))).on("b", work().needs(slot("x"))),
        Task::new("two", "").on("a", work().provides(slot("x"))).on("b", work().provides(slot("y"))),
    ]);
    assert!(text.contains("m/one on a → m/two on b → m/one on b → m/two on a"), "{text}");
}

#[test]
fn a_task_beside_waits_for_its_needs_and_not_for_its_lane() {
    // The lane waits for its background task, although that task is later in the pipeline.
    let tasks = vec![
        Task::new("init", "").on("a", work().needs(slot("images"))),
        Task::new("images", "").background().on("a", work().provides(slot("images"))),
    ];
    assert_eq!(error(tasks), "");
    // But the background task waits for its own needs.
    let tasks = vec![
        Task::new("init", "").on("a", work().needs(slot("images")).provides(slot("init"))),
        Task::new("images", "").background().on("a", work().needs(slot("init")).provides(slot("images"))),
    ];
    assert!(error(tasks).contains("wait for each other"));
}
