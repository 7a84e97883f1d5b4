//! Restart workloads, so that their pods know the new CA.

use std::{sync::Arc, time::Duration};

use kk_engine::{Failure, HostWork, Slots, Task, actions::Command};

use super::{Authorities, Restarts};
use crate::{
    base::{host_layout::KUBECTL, shell::script, slots},
    model::inputs::Inputs,
};

const RESTART: &str =
    concat!(include_str!("../../base/rollout_progress.sh"), include_str!("restart_workloads.sh"));

/// Restarts workloads before any API server has a certificate of the new CA, because programs read the CA only at their start.
pub(super) fn task(inputs: &Inputs, authorities: &Arc<Authorities>, restarts: Restarts) -> Task {
    let own = || {
        let workloads = inputs.requirements.workloads();
        let name = |path: &str| path.split_once('/').map_or(path, |(_, name)| name).to_owned();
        let names = workloads.iter().map(|one| format!("{}/{}", one.namespace, name(one.path)));
        // ks-installer is also installed with the cluster, but another task waits for it.
        names.chain(["kubesphere-system/ks-installer".to_owned()]).collect::<Vec<_>>().join(" ")
    };
    let only = if restarts == Restarts::All { String::new() } else { own() };
    let sum = authorities.cluster.ca_sum();
    let variables = [("value", sum.get(..16).unwrap_or(&sum)), ("only", &only)];
    let restart = Command::new(
        if restarts == Restarts::All {
            "restart all workloads that may use the API"
        } else {
            "restart the workloads of kk"
        },
        script(&variables, &[KUBECTL, RESTART].concat()),
    )
    .hint("does not become available", "see kubectl describe of its pods; then run again")
    .output(Arc::new(|printed: &str, slots: &Slots| {
        let lines: Vec<&str> = printed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if !lines.is_empty() {
            slots.output("workloads", lines.join("; "));
        }
        Ok::<(), Failure>(())
    }));
    let mut work = HostWork::new(vec![Box::new(restart)])
        .needs(slots::ca_published_slot())
        .provides(slots::workloads_restarted_slot());
    for (host, _) in inputs.nodes().into_iter().filter(|(host, _)| super::is_worker(host)) {
        work = work.needs(slots::kubelet_works_slot(&host.name));
    }
    Task::new("restart_workloads", "Restart workloads")
        .timeout(Duration::from_hours(2))
        .on(&inputs.api_host.name, work)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::RESTART;
    use crate::{base::shell::script, testing};

    /// A cluster with a `DaemonSet` and a paused Deployment. `progress` lists the numbers of updated and available pods of the
    /// `DaemonSet` at each query. Each query takes 100 s, and the rollout ends at the tenth query.
    fn restart(progress: &[&str]) -> (bool, String, String) {
        let directory = tempfile::tempdir().unwrap();
        let list = progress.join("\n") + "\n";
        fs::write(directory.path().join("updated"), list).unwrap();
        let listed = "DaemonSet n d - RollingUpdate - 100 100 -\nDeployment n held - - - 2 2 paused\n";
        fs::write(directory.path().join("listed"), listed).unwrap();
        let kubectl = "case \" $*\" in *' get deployments,'*) cat listed ;; *' patch '*) echo \"$*\" >>patched ;; *updatedNumberScheduled*) head -n 1 updated; sed -i 1d updated ;; *'rollout status'*) echo >>looks; [ $(wc -l <looks) -ge 10 ] || { echo waiting >&2; exit 1; } ;; esac";
        testing::program(directory.path(), "kubectl", kubectl);
        testing::program(directory.path(), "sleep", "exit 0");
        let library = "kk_uptime() { echo $((100 * $(cat looks 2>/dev/null | wc -l))); }; kk_fail() { echo \"$*\" >&2; return 1; }";
        let text = script(&[("value", "new"), ("only", "")], RESTART);
        let output = testing::run_script(directory.path(), &format!("{library}\n{text}"));
        let patched = fs::read_to_string(directory.path().join("patched")).unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap(), patched)
    }

    #[test]
    fn workloads_restart_a_few_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let line = |number| format!("Deployment n d{number} - RollingUpdate - 1 1 -\n");
        fs::write(directory.path().join("listed"), (0..60).map(line).collect::<String>()).unwrap();
        let kubectl = "case \" $*\" in *' get deployments,'*) cat listed ;; *' patch '*) printf p >>log ;; *'rollout status'*) printf w >>log ;; esac";
        testing::program(directory.path(), "kubectl", kubectl);
        let library = "kk_uptime() { echo 1; }; kk_fail() { echo \"$*\" >&2; return 1; }";
        let text = script(&[("value", "new"), ("only", "")], RESTART);
        let output = testing::run_script(directory.path(), &format!("{library}\n{text}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let [few, rest] = [25, 10].map(|count| "p".repeat(count) + &"w".repeat(count));
        assert_eq!(fs::read_to_string(directory.path().join("log")).unwrap(), [&*few, &few, &rest].concat());
    }

    #[test]
    fn a_rollout_that_progresses_is_waited_for_and_one_that_stands_still_is_an_error() {
        let (ok, said, _) =
            restart(&["10 0", "20 0", "30 0", "40 0", "50 0", "60 0", "70 0", "80 0", "90 0"]);
        assert!(ok, "{said}");
        // All pods already have the new template, and become available one after the other.
        let (ok, said, _) =
            restart(&["100 1", "100 2", "100 3", "100 4", "100 5", "100 6", "100 7", "100 8", "100 9"]);
        assert!(ok, "{said}");
        let (ok, said, _) = restart(&["10 5"; 6]);
        assert!(!ok && said.contains("n/d does not become available"), "{said}");
    }

    #[test]
    fn a_paused_deployment_is_named_and_left() {
        let (ok, said, patched) =
            restart(&["10 0", "20 0", "30 0", "40 0", "50 0", "60 0", "70 0", "80 0", "90 0"]);
        assert!(ok && said.contains("n/held is paused"), "{said}");
        assert_eq!(patched.lines().count(), 1, "{patched}");
        assert!(patched.contains("patch DaemonSet d "), "{patched}");
    }
}
