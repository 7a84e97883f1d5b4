//! Assigns pods to workloads, and finds the reasons why a pod does not start.

use serde_json::Value;

use super::Id;

/// Reasons for which a container waits until a user makes a change. A container that ends repeatedly is not stuck, because it may
/// wait for another component.
const STUCK: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
];

/// The query that lists the pods of a Deployment, `StatefulSet` or `DaemonSet`; `None` if the object has no pods of its own.
pub fn pods_query(workload: &Value) -> Option<String> {
    let labels = workload["spec"]["selector"]["matchLabels"].as_object()?;
    let words: Vec<String> =
        labels.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?))).collect();
    (!words.is_empty()).then(|| format!("labelSelector={}", words.join(",")))
}

/// Whether a Deployment, `StatefulSet` or `DaemonSet` has created a pod. The workload may be deleted. Labels are not sufficient,
/// because pods of users can have the same labels.
pub fn is_pod_of(pod: &Value, workload: &Id) -> bool {
    let metadata = &pod["metadata"];
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let Some(controller) = owners.into_iter().find(|owner| owner["controller"] == true) else { return false };
    let is_controller = |kind: &str, name: &str| {
        ["apiVersion", "kind", "name"].map(|key| controller[key].as_str())
            == [&workload.api_version, kind, name].map(Some)
    };
    let is_owned = if workload.kind == "Deployment" {
        let hash = metadata["labels"]["pod-template-hash"].as_str().unwrap_or_default();
        is_controller("ReplicaSet", &format!("{}-{hash}", workload.name))
    } else {
        is_controller(&workload.kind, &workload.name)
    };
    is_owned && metadata["namespace"].as_str() == Some(workload.namespace.as_str())
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainerStatuses", "containerStatuses"];
    lists.into_iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten())
}

/// Restarts and last exit code of a container that is restarted repeatedly.
pub fn keeps_ending(pod: &Value) -> Option<String> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    containers(pod).find_map(|container| {
        let is_paused = container["state"]["waiting"]["reason"] == "CrashLoopBackOff";
        let (ended, times) = (&container["lastState"]["terminated"], container["restartCount"].as_u64()?);
        let (code, reason) = (ended["exitCode"].as_i64()?, ended["reason"].as_str().unwrap_or_default());
        let container = container["name"].as_str().unwrap_or_default();
        is_paused.then(|| {
            format!("{container} of pod {name} was restarted {times} times, and ended with exit code {code} ({reason}) last")
        })
    })
}

/// Whether no container of a pod runs or will run again.
pub fn has_ended(pod: &Value) -> bool {
    pod["status"]["phase"] == "Succeeded" || pod["status"]["phase"] == "Failed"
}

/// Reason why a container of a pod cannot start.
pub fn stuck(pod: &Value) -> Option<String> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    containers(pod).find_map(|container| {
        let waiting = &container["state"]["waiting"];
        let reason = waiting["reason"].as_str().filter(|reason| STUCK.contains(reason))?;
        let image = container["image"].as_str().unwrap_or_default();
        let message = waiting["message"].as_str().map_or_else(String::new, |text| format!(": {text}"));
        Some(format!("pod {name} cannot start {image}: {reason}{message}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_that_cannot_start_says_why() {
        let pod = |list: &str, reason: &str| {
            let waiting = json!({"reason": reason, "message": "not found"});
            json!({"metadata": {"name": "p"}, "status": {list: [{"image": "a/b:1", "state": {"waiting": waiting}}]}})
        };
        let expected = Some("pod p cannot start a/b:1: ImagePullBackOff: not found".to_owned());
        for (list, reason, said) in [
            ("containerStatuses", "ImagePullBackOff", expected.clone()),
            ("initContainerStatuses", "ImagePullBackOff", expected),
            ("containerStatuses", "ContainerCreating", None),
            ("containerStatuses", "CrashLoopBackOff", None),
        ] {
            assert_eq!(stuck(&pod(list, reason)), said, "{list} {reason}");
        }
        assert_eq!(stuck(&json!({"metadata": {"name": "p"}})), None);
    }

    #[test]
    fn a_pod_that_keeps_ending_says_with_what() {
        let pod = |reason: &str| {
            let last = json!({"terminated": {"exitCode": 2, "reason": "Error"}});
            let state = json!({"waiting": {"reason": reason}});
            json!({"metadata": {"name": "p"}, "status": {"containerStatuses": [
                {"name": "sidecar", "restartCount": 0, "state": {"running": {}}, "lastState": {}},
                {"name": "main", "restartCount": 4, "state": state, "lastState": last}
            ]}})
        };
        let said = "main of pod p was restarted 4 times, and ended with exit code 2 (Error) last";
        assert_eq!(keeps_ending(&pod("CrashLoopBackOff")).as_deref(), Some(said));
        assert_eq!(keeps_ending(&pod("ContainerCreating")), None);
    }

    #[test]
    fn only_pods_that_a_workload_created_are_its_pods() {
        let owner = |kind: &str, name: &str| json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": true});
        let other = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a-5c", "uid": "u"});
        let of_group = json!({"apiVersion": "apps.kruise.io/v1", "kind": "DaemonSet", "name": "a", "uid": "u", "controller": true});
        for (case, kind, namespace, owners, expected) in [
            ("of_a_deployment", "Deployment", "n", json!([owner("ReplicaSet", "a-5c")]), true),
            ("of_a_longer_name", "Deployment", "n", json!([owner("ReplicaSet", "a-b-5c")]), false),
            ("of_another_hash", "Deployment", "n", json!([owner("ReplicaSet", "a-b")]), false),
            ("of_a_stateful_set", "StatefulSet", "n", json!([owner("StatefulSet", "a")]), true),
            ("of_a_daemon_set", "DaemonSet", "n", json!([owner("DaemonSet", "a")]), true),
            ("of_another_kind", "DaemonSet", "n", json!([owner("StatefulSet", "a")]), false),
            ("of_another_name", "DaemonSet", "n", json!([owner("DaemonSet", "b")]), false),
            ("of_another_group", "DaemonSet", "n", json!([of_group]), false),
            ("elsewhere", "DaemonSet", "m", json!([owner("DaemonSet", "a")]), false),
            ("owner_but_not_controller", "Deployment", "n", json!([other]), false),
            ("second_owner", "Deployment", "n", json!([other, owner("ReplicaSet", "a-5c")]), true),
            ("orphan", "Deployment", "n", Value::Null, false),
        ] {
            let pod = json!({"metadata": {"namespace": "n", "name": "p", "labels": {"pod-template-hash": "5c"},
                "ownerReferences": owners}});
            assert_eq!(is_pod_of(&pod, &Id::new("apps/v1", kind, namespace, "a")), expected, "{case}");
        }
    }

    #[test]
    fn pods_are_found_by_the_labels_of_their_workload() {
        let labels = json!({"app.kubernetes.io/name": "core", "tier": "back"});
        let workload = json!({"spec": {"selector": {"matchLabels": labels}}});
        let query = "labelSelector=app.kubernetes.io/name=core,tier=back";
        assert_eq!(pods_query(&workload).as_deref(), Some(query));
        assert_eq!(pods_query(&json!({"kind": "Namespace"})), None);
    }
}
