//! Determines whether an object is ready.

use serde_json::Value;

use super::install_plan;

/// State of an object.
#[derive(Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The object works.
    Ready,
    /// The object is not ready yet, with the reason.
    Waiting(String),
    /// The object will never be ready, with the reason.
    Failed(String),
}

/// Whether an object of Kubernetes is ready. Kinds that are not listed here are always ready.
pub fn readiness(object: &Value) -> Readiness {
    let (status, spec) = (&object["status"], &object["spec"]);
    let group = object["apiVersion"].as_str().and_then(|v| v.split_once('/')).map_or("", |(group, _)| group);
    match (group, object["kind"].as_str().unwrap_or_default()) {
        ("apps", kind @ ("Deployment" | "StatefulSet" | "DaemonSet")) => workload(object, kind),
        ("batch", "Job") => {
            if holds(status, "Complete") {
                Readiness::Ready
            } else if holds(status, "Failed") {
                Readiness::Failed(message(status, "Failed").unwrap_or_else(|| "the job failed".to_owned()))
            } else {
                Readiness::Waiting("the job runs".to_owned())
            }
        }
        ("apiextensions.k8s.io", _) => condition(status, "Established"),
        ("apiregistration.k8s.io", _) => condition(status, "Available"),
        ("", "PersistentVolumeClaim") if status["phase"] == "Lost" => {
            Readiness::Failed("the volume is lost".to_owned())
        }
        ("", "Namespace") if status["phase"] == "Terminating" => {
            Readiness::Waiting("the namespace is being deleted".to_owned())
        }
        ("kubesphere.io", install_plan::KIND) => install_plan::readiness(object),
        ("", "Pod") if spec["restartPolicy"] == "Never" && status["phase"] == "Succeeded" => Readiness::Ready,
        ("", "Pod") => condition(status, "Ready"),
        _ => Readiness::Ready,
    }
}

fn workload(object: &Value, kind: &str) -> Readiness {
    let (status, spec) = (&object["status"], &object["spec"]);
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    if number(&status["observedGeneration"]) < number(&object["metadata"]["generation"]) {
        return Readiness::Waiting("its controller has not seen the change".to_owned());
    }
    let replicas = spec["replicas"].as_i64().unwrap_or(1);
    let (wanted, updated, available) = match kind {
        "DaemonSet" => (
            number(&status["desiredNumberScheduled"]),
            number(&status["updatedNumberScheduled"]),
            number(&status["numberAvailable"]),
        ),
        _ => (replicas, number(&status["updatedReplicas"]), number(&status["availableReplicas"])),
    };
    // While pods of the previous version run, the available pods may be old ones.
    let old = if kind == "Deployment" { number(&status["replicas"]) - updated } else { 0 };
    if updated >= wanted && available >= wanted && old <= 0 {
        return Readiness::Ready;
    }
    if kind == "Deployment" && reason(status, "Progressing") == Some("ProgressDeadlineExceeded") {
        return Readiness::Waiting(format!(
            "{available} of {wanted} pods are available, and there is no progress"
        ));
    }
    let left = if old > 0 { format!(", {old} of the previous version are left") } else { String::new() };
    Readiness::Waiting(format!(
        "{available} of {wanted} pods are available, {updated} are of the new version{left}"
    ))
}

fn condition(status: &Value, kind: &str) -> Readiness {
    if holds(status, kind) {
        return Readiness::Ready;
    }
    let why = message(status, kind).map_or_else(String::new, |message| format!(": {message}"));
    Readiness::Waiting(format!("it is not {kind}{why}"))
}

fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn holds(status: &Value, kind: &str) -> bool {
    find(status, kind).is_some_and(|condition| condition["status"] == "True")
}

fn message(status: &Value, kind: &str) -> Option<String> {
    find(status, kind)?["message"].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn reason<'a>(status: &'a Value, kind: &str) -> Option<&'a str> {
    find(status, kind)?["reason"].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn readiness_is_read_from_the_status() {
        for (case, object, expected) in [
            ("map", json!({"apiVersion": "v1", "kind": "ConfigMap"}), true),
            (
                "new",
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 1}}),
                false,
            ),
            (
                "none_wanted",
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 0}}),
                true,
            ),
            (
                "old_pods",
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 2},
                    "status": {"observedGeneration": 2, "updatedReplicas": 0, "availableReplicas": 1}}),
                false,
            ),
            (
                "old_pods_beside_new_ones",
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 2},
                    "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1}}),
                false,
            ),
            (
                "unseen",
                json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"generation": 2},
                    "status": {"observedGeneration": 1, "updatedReplicas": 1, "availableReplicas": 1}}),
                false,
            ),
            (
                "done",
                json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"generation": 2},
                    "status": {"observedGeneration": 2, "updatedReplicas": 1, "availableReplicas": 1}}),
                true,
            ),
            (
                "no_node",
                json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"generation": 1},
                    "status": {"observedGeneration": 1}}),
                true,
            ),
            (
                "definition",
                json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "status": {"conditions": [{"type": "Established", "status": "True"}]}}),
                true,
            ),
            ("job", json!({"apiVersion": "batch/v1", "kind": "Job"}), false),
        ] {
            assert_eq!(readiness(&object) == Readiness::Ready, expected, "{case}");
        }
    }

    #[test]
    fn a_job_that_failed_never_becomes_ready() {
        let status = json!({"conditions": [{"type": "Failed", "status": "True", "message": "BackoffLimit"}]});
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "status": status});
        assert_eq!(readiness(&job), Readiness::Failed("BackoffLimit".to_owned()));
    }
}
