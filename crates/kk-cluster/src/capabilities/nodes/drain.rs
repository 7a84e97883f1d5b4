//! Drain a node that leaves or is upgraded: its pods move to other nodes.

use std::time::Duration;

use kk_config::Host;
use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    base::{host_layout::KUBECTL, shell::script, slots},
    model::{inputs::Inputs, options::Drain},
};

/// Runs on the host whose API is used, for one node after the other. A node whose pods cannot move accepts pods again.
pub(super) fn task(inputs: &Inputs, host: &Host, drain: &Drain) -> Task {
    let seconds = drain.timeout.as_secs().to_string();
    let force = if drain.force { "yes" } else { "" };
    let variables = [("node", host.name.as_str()), ("seconds", &seconds), ("force", force)];
    let text = format!("{KUBECTL}{}", script(&variables, include_str!("drain.sh")));
    let moves = Command::new("move its pods to other nodes", text);
    let work =
        HostWork::new(vec![Box::new(moves)]).about(&host.name).provides(slots::drained_slot(&host.name));
    Task::new(format!("drain_{}", host.name), format!("Drain {}", host.name))
        .timeout(drain.timeout + Duration::from_mins(3))
        .on(&inputs.api_host.name, work)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::{base::shell::script, testing};

    /// Runs the script with these results of `kubectl get` and `kubectl drain`. Returns whether it succeeds, its last message,
    /// and the calls.
    fn drain(get: &str, drain: &str, force: &str) -> (bool, String, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let kubectl = format!("echo \"$*\" >>calls\ncase $1 in get) {get} ;; drain) {drain} ;; esac");
        testing::program(directory.path(), "kubectl", &kubectl);
        let text = script(&[("node", "n4"), ("seconds", "9"), ("force", force)], include_str!("drain.sh"));
        let output = testing::run_script(
            directory.path(),
            &format!("kk_fail() {{ echo \"$*\" >&2; exit 1; }}\n{text}"),
        );
        let said = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
        let calls = fs::read_to_string(directory.path().join("calls")).unwrap();
        (output.status.success(), said, calls.lines().map(str::to_owned).collect())
    }

    const REFUSES: &str = "echo 'cannot delete Pods that declare no controller: default/lonely' >&2; exit 1";

    #[test]
    fn a_node_whose_pods_cannot_move_takes_pods_again() {
        let (ok, said, calls) = drain("exit 0", REFUSES, "");
        assert!(!ok && said.contains("cannot be moved: cannot delete") && said.contains("lonely"), "{said}");
        assert_eq!(calls.last().unwrap(), "uncordon n4");
    }

    #[test]
    fn a_node_that_somebody_has_cordoned_stays_so() {
        let (ok, said, calls) = drain("printf true", REFUSES, "");
        assert!(!ok && said.contains("lonely") && said.contains("it stays cordoned"), "{said}");
        assert!(!calls.iter().any(|call| call.starts_with("uncordon")), "{calls:?}");
    }

    #[test]
    fn the_pod_that_a_budget_keeps_is_named() {
        let keeps = "echo 'error when evicting pods/\"web-1\": Cannot evict pod as it would violate the budget.' >&2\n\
                     echo 'error: unable to drain node n4: global timeout reached: 9s' >&2; exit 1";
        let (ok, said, _) = drain("exit 0", keeps, "");
        assert!(!ok && said.contains("web-1"), "{said}");
    }

    #[test]
    fn with_force_budgets_count_only_for_a_while() {
        let budget = "case $* in *disable-eviction*) ;; *) exit 1 ;; esac";
        let (ok, _, calls) = drain("exit 0", budget, "yes");
        assert!(ok && calls[1].contains("--force --timeout=9s") && !calls.contains(&"uncordon n4".into()));
        let (ok, said, _) = drain("exit 0", REFUSES, "yes");
        assert!(!ok && said.contains("its pods do not end"), "{said}");
    }

    #[test]
    fn a_node_that_is_not_there_has_no_pods_and_silence_is_no_answer() {
        let (ok, _, calls) = drain("echo 'Error from server (NotFound): nodes n4' >&2; exit 1", "exit 1", "");
        assert!(ok && calls.len() == 1);
        let (ok, said, _) = drain("echo 'connection refused' >&2; exit 1", "exit 0", "");
        assert!(!ok && said.contains("does not say"), "{said}");
    }
}
