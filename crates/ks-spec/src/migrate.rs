//! Keys of older versions under their names of today. Nothing that a user said is lost, and the object stays the same one.

use serde_json::{Value, json};

/// Values that moved as they were: from, to.
const MOVED: [(&str, &str); 16] = [
    ("common.redisVolumSize", "common.redis.volumeSize"),
    ("common.openldapVolumeSize", "common.openldap.volumeSize"),
    ("common.minioVolumeSize", "common.minio.volumeSize"),
    ("common.es.elasticsearchMasterReplicas", "common.es.master.replicas"),
    ("common.es.elasticsearchDataReplicas", "common.es.data.replicas"),
    ("common.es.elasticsearchMasterVolumeSize", "common.es.master.volumeSize"),
    ("common.es.elasticsearchDataVolumeSize", "common.es.data.volumeSize"),
    ("common.es.externalElasticsearchUrl", "common.es.externalElasticsearchHost"),
    ("common.opensearch.opensearchMasterReplicas", "common.opensearch.master.replicas"),
    ("common.opensearch.opensearchDataReplicas", "common.opensearch.data.replicas"),
    ("common.opensearch.opensearchMasterVolumeSize", "common.opensearch.master.volumeSize"),
    ("common.opensearch.opensearchDataVolumeSize", "common.opensearch.data.volumeSize"),
    ("common.opensearch.externalOpensearchUrl", "common.opensearch.externalOpensearchHost"),
    ("console", "common.core.console"),
    ("logging.logsidecarReplicas", "logging.logsidecar.replicas"),
    ("networkpolicy", "network.networkpolicy"),
];

/// Values that nothing has read for long.
const DROPPED: [&str; 2] = ["common.mysqlVolumeSize", "common.etcdVolumeSize"];

/// Renames what has another name today. Returns what it did, in words for people.
pub fn migrate(spec: &mut Value) -> Vec<String> {
    let mut done = Vec::new();
    for path in DROPPED {
        if take(spec, path).is_some() {
            done.push(format!("{path} is not used any more"));
        }
    }
    let had_sidecars = at(spec, "logging.logsidecarReplicas").is_some();
    let had_networkpolicy = at(spec, "networkpolicy").is_some();
    for (from, to) in MOVED {
        if let Some(value) = take(spec, from) {
            put_missing(spec, to, value);
            done.push(format!("{from} is {to}"));
        }
    }
    if had_sidecars {
        let enabled = at(spec, "logging.enabled").cloned().unwrap_or(Value::Bool(false));
        put_missing(spec, "logging.logsidecar.enabled", enabled);
    }
    if had_networkpolicy {
        put_missing(spec, "network.ippool.type", "none".into());
        put_missing(spec, "network.topology.type", "none".into());
    }
    notification(spec, &mut done);
    store(spec, &mut done);
    edge(spec, &mut done);
    done
}

/// All of it was replaced but the history.
fn notification(spec: &mut Value, done: &mut Vec<String>) {
    let Some(Value::Object(mut old)) = spec.get("notification").cloned() else { return };
    let history = old.remove("history");
    if old.is_empty() {
        return;
    }
    take(spec, "notification");
    if let Some(history) = history {
        put_missing(spec, "notification.history", history);
    }
    done.push("notification is part of monitoring".to_owned());
}

fn store(spec: &mut Value, done: &mut Vec<String>) {
    if at(spec, "openpitrix.store").is_none()
        && let Some(enabled) = take(spec, "openpitrix.enabled")
    {
        put_missing(spec, "openpitrix.store.enabled", enabled);
        done.push("openpitrix.enabled is openpitrix.store.enabled".to_owned());
    }
}

fn edge(spec: &mut Value, done: &mut Vec<String>) {
    let Some(mut kubeedge) = take(spec, "kubeedge") else { return };
    take(&mut kubeedge, "edgeWatcher");
    let enabled = kubeedge.get("enabled").cloned().unwrap_or(Value::Bool(false));
    put_missing(&mut kubeedge, "iptables-manager", json!({ "enabled": true, "mode": "external" }));
    put_missing(spec, "edgeruntime.enabled", enabled);
    put_missing(spec, "edgeruntime.kubeedge", kubeedge);
    done.push("kubeedge is edgeruntime.kubeedge".to_owned());
}

fn at<'a>(spec: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(spec, |at, key| at.get(key))
}

fn take(spec: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
    let keys = parent.split('.').filter(|key| !key.is_empty());
    let parent = keys.into_iter().try_fold(spec, |at, key| at.get_mut(key))?;
    parent.as_object_mut()?.shift_remove(key)
}

/// Sets a value, unless there is one under the name of today. Both may be maps: then they are merged.
fn put_missing(spec: &mut Value, path: &str, value: Value) {
    let mut here = spec;
    for key in path.split('.') {
        if here.is_null() {
            *here = json!({});
        }
        let Some(map) = here.as_object_mut() else { return };
        here = map.entry(key).or_insert(Value::Null);
    }
    match (&mut *here, value) {
        (Value::Null, value) => *here = value,
        (Value::Object(map), Value::Object(old)) => {
            for (key, value) in old {
                map.entry(key).or_insert(value);
            }
        }
        _ => {}
    }
}
