//! Processes that hooks leave behind, and the operator as process 1.

use crate::cluster::control_plane::shared;
use crate::cluster::operator::{Operator, Setup, signal};

/// Leaves a child in its own session, a child in the hook's group, and a grandchild; all end soon. The hook's own exit
/// status has to be seen all the same: 3 for each second run.
const LEAVES: &str = "keep\nsetsid sleep 0.2 & sleep 0.3 & (sh -c 'sleep 0.4 & exit 0' &)\n\
    n=$(ls $OUT | grep -c '^h[.]'); [ $((n % 2)) = 0 ] && exit 3; exit 0";
const EVERY_SECOND: &str = "configVersion: v1\nschedule: [{crontab: '* * * * * *', allowFailure: true}]";

/// Makes itself a subreaper and becomes the operator: what process 1 of a container is, without root.
const SUBREAPER: [&str; 3] = [
    "python3",
    "-c",
    "import ctypes, os, sys; ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0) and sys.exit(1); os.execv(sys.argv[1], sys.argv[1:])",
];

/// Children of `pid`, as `state name`.
fn children(pid: u32) -> Vec<String> {
    let stat = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (name, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?;
        (fields.next()? == pid.to_string()).then(|| format!("{state} {}", name.split_once('(').unwrap().1))
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(stat).collect()
}

fn runs_and_results(operator: &Operator) -> (usize, usize, usize) {
    let log = operator.log();
    let count = |text: &str| log.matches(text).count();
    (operator.contexts("h").len(), count("Hook executed successfully"), count("cmd run: exit status 3"))
}

fn check_orphans(operator: &mut Operator, pid: u32) {
    operator.wait_for("runs", |operator| operator.contexts("h").len() >= 6);
    let (runs, good, bad) = runs_and_results(operator);
    assert!(
        good >= 2 && bad >= 2 && good + bad >= runs - 1,
        "{runs} runs, {good} good, {bad} bad\n{}",
        operator.log()
    );
    assert!(!operator.log().contains("cannot wait for its end"), "{}", operator.log());
    operator.wait_for("no zombie", |_| !children(pid).iter().any(|child| child.starts_with("Z sleep")));
    let adopted = children(pid).iter().filter(|child| child.ends_with("sleep")).count();
    assert!(adopted <= 8, "they end and are taken: {:?}", children(pid));
}

#[test]
fn children_that_hooks_leave_are_reaped_and_the_hooks_own_status_is_not_lost() {
    let mut operator = Setup::new(shared())
        .flag("--shutdown-timeout=10m")
        .wrapper(&SUBREAPER)
        .hook("h", EVERY_SECOND, LEAVES)
        .start();
    let pid = operator.pid();
    operator.wait_for("an orphan", |_| children(pid).iter().any(|child| child.ends_with("sleep")));
    check_orphans(&mut operator, pid);
    // Long before hooks would be asked to end.
    signal(pid, "TERM");
    assert_eq!(operator.wait_for_end(), Some(0), "{}", operator.log());
}

#[test]
fn as_process_1_it_reaps_and_ends_when_told() {
    let wrapper = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let tried = std::process::Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").output();
    if !tried.as_ref().is_ok_and(|output| output.status.success()) {
        skipped(&format!("{} needs root: {tried:?}", wrapper.join(" ")));
        return;
    }
    let mut operator = Setup::new(shared()).wrapper(&wrapper).hook("h", EVERY_SECOND, LEAVES).start();
    operator.wait_for("a run", |operator| !operator.contexts("h").is_empty());
    // The child of `unshare` is process 1 of the namespace.
    let process = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent = text.rsplit_once(')')?.1.split_whitespace().nth(1)?.to_owned();
        (parent == operator.pid().to_string())
            .then(|| entry.file_name().to_string_lossy().parse::<u32>().ok())?
    };
    let inner = std::fs::read_dir("/proc").unwrap().flatten().find_map(process).unwrap();
    check_orphans(&mut operator, inner);
    signal(inner, "TERM");
    assert_eq!(operator.wait_for_end(), Some(0), "{}", operator.log());
    assert!(operator.log().contains("Shutdown begins."));
}

#[expect(clippy::print_stderr, reason = "who runs the tests wants to know what was not tested")]
pub(crate) fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}
