//! Builds a payload from a release of KubeSphere (`payload build --from`). The definitions belong to ks-installer. Only the files
//! of the release that they use are copied, below `release/`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Component, Payload, PayloadError, build};

/// Directory for files of the release in the payload.
const PARTS: &str = "release/";

macro_rules! files {
    ($version:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../definitions/", $version, "/", $name)))),*]
    };
}

/// A release with built-in definitions.
struct Release {
    /// Version of KubeSphere in the release.
    kubesphere: &'static str,
    /// Name of the unpacked source.
    is: &'static str,
    /// A file and a text in it that identify the release.
    known_by: (&'static str, &'static str),
    /// Path of its top directory below `release/`.
    root: &'static str,
    /// Definitions, and manifests of ks-installer.
    files: &'static [(&'static str, &'static str)],
}

const RELEASES: [Release; 2] = [
    Release {
        kubesphere: "v3.4.1",
        is: "the source of ks-installer at its tag v3.4.1, the directory with roles/ in it",
        known_by: ("roles/download/defaults/main.yml", "v3.4.1"),
        root: "",
        files: files!["v3.4.1":
            "components/alerting.yaml",
            "components/argocd.yaml",
            "components/auditing.yaml",
            "components/core.yaml",
            "components/devops.yaml",
            "components/edgeruntime.yaml",
            "components/elasticsearch.yaml",
            "components/events.yaml",
            "components/fluentbit-operator.yaml",
            "components/gatekeeper.yaml",
            "components/logging-system.yaml",
            "components/logging.yaml",
            "components/metrics-server.yaml",
            "components/minio.yaml",
            "components/monitoring.yaml",
            "components/multicluster.yaml",
            "components/namespaces.yaml",
            "components/notification.yaml",
            "components/openldap.yaml",
            "components/openpitrix.yaml",
            "components/opensearch.yaml",
            "components/prometheus-operator.yaml",
            "components/redis.yaml",
            "components/servicemesh.yaml",
            "components/topology.yaml",
            "own/core-variables.yaml",
            "own/core.yaml",
            "own/devops-variables.yaml",
            "own/elasticsearch.yaml",
            "own/gatekeeper.yaml",
            "own/metrics-server.yaml",
            "own/monitoring-variables.yaml",
            "own/namespace.yaml",
            "own/namespaces.yaml",
            "own/opensearch.yaml",
            "own/prometheus-operator.yaml",
            "own/redis.yaml",
        ],
    },
    Release {
        kubesphere: "v4.1.3",
        is: "the chart ks-core of KubeSphere v4.1.3, the directory with Chart.yaml in it",
        known_by: ("Chart.yaml", "v4.1.3"),
        root: "ks-core/",
        files: files!["v4.1.3":
            "components/core.yaml",
            "components/extension-devops.yaml",
            "components/extension-gatekeeper.yaml",
            "components/extension-gateway.yaml",
            "components/extension-kubeedge.yaml",
            "components/extension-metrics-server.yaml",
            "components/extension-network.yaml",
            "components/extension-openpitrix.yaml",
            "components/extension-opensearch.yaml",
            "components/extension-servicemesh.yaml",
            "components/extension-storage-utils.yaml",
            "components/extension-vector.yaml",
            "components/extension-whizard-alerting.yaml",
            "components/extension-whizard-auditing.yaml",
            "components/extension-whizard-events.yaml",
            "components/extension-whizard-logging.yaml",
            "components/extension-whizard-monitoring.yaml",
            "components/extension-whizard-notification.yaml",
            "components/extension-whizard-telemetry.yaml",
            "components/namespaces.yaml",
            "components/topology.yaml",
            "own/core.yaml",
            "own/namespaces.yaml",
        ],
    },
];

/// Builds the payload `dir`, which must not exist, from the unpacked release in `from`.
pub fn build_from(from: &Path, dir: &Path, version: &str) -> Result<Payload, PayloadError> {
    let release = known(from)?;
    if dir.exists() {
        return Err(PayloadError::Release(format!(
            "{} is there already\nhint: name a directory that is not there yet",
            dir.display()
        )));
    }
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    let unfinished = dir.with_file_name(name);
    let made = fill(release, from, &unfinished)
        .and_then(|()| build(&unfinished, version, release.kubesphere).map(drop))
        .and_then(|()| fs::rename(&unfinished, dir).map_err(|error| unreadable(dir, &error)));
    if made.is_err() {
        // The pending error is more informative than a failed removal.
        let _ = fs::remove_dir_all(&unfinished);
    }
    made.and_then(|()| Payload::open(dir))
}

fn known(from: &Path) -> Result<&'static Release, PayloadError> {
    let is_known = |release: &&Release| {
        let (path, word) = release.known_by;
        fs::read_to_string(from.join(path)).is_ok_and(|text| text.contains(word))
    };
    RELEASES.iter().find(is_known).ok_or_else(|| {
        let known: Vec<&str> = RELEASES.iter().map(|release| release.is).collect();
        PayloadError::Release(format!(
            "{} is no release for which there are definitions\nhint: name {}",
            from.display(),
            known.join("; or ")
        ))
    })
}

fn fill(release: &Release, from: &Path, dir: &Path) -> Result<(), PayloadError> {
    // A run that was killed has left this directory.
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(|error| unreadable(dir, &error))?;
    }
    let mut parts = BTreeSet::new();
    for (name, text) in release.files {
        write(&dir.join(name), text.as_bytes())?;
        if let Some(component) = name.strip_prefix("components/") {
            let component = Component::parse(component.trim_end_matches(".yaml"), text)
                .map_err(|why| PayloadError::Definition { part: (*name).to_owned(), why })?;
            parts.extend(component.files().into_iter().map(str::to_owned));
        }
    }
    for part in parts.iter().filter_map(|part| part.strip_prefix(PARTS)) {
        let inside = format!("{part}/");
        let inside = inside.strip_prefix(release.root).unwrap_or(&inside).trim_end_matches('/');
        let inside = from.join(inside);
        copy(archive(&inside).as_ref().unwrap_or(&inside), &dir.join(PARTS).join(part))?;
    }
    Ok(())
}

/// The archive of a chart: `NAME-VERSION.tgz` for `NAME.tgz`. The version differs between patches of a release.
fn archive(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_suffix(".tgz")?;
    let is_it = |entry: &fs::DirEntry| {
        let found = entry.file_name();
        let version = found
            .to_str()
            .and_then(|found| found.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(".tgz"));
        version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
    };
    let mut found: Vec<PathBuf> =
        fs::read_dir(path.parent()?).ok()?.flatten().filter(is_it).map(|entry| entry.path()).collect();
    found.sort();
    found.pop()
}

/// Copies files and directories. Links are refused, because they can point outside of the release.
fn copy(from: &Path, to: &Path) -> Result<(), PayloadError> {
    let kind = fs::symlink_metadata(from).map_err(|error| unreadable(from, &error))?.file_type();
    if kind.is_file() {
        return write(to, &fs::read(from).map_err(|error| unreadable(from, &error))?);
    }
    if !kind.is_dir() {
        return Err(PayloadError::Release(format!("{} is not a plain file", from.display())));
    }
    let entries = fs::read_dir(from).map_err(|error| unreadable(from, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(from, &error))?;
        if entry.file_name() != ".git" {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), PayloadError> {
    let parent = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    let written = fs::create_dir_all(&parent).and_then(|()| fs::write(path, bytes));
    written.map_err(|error| PayloadError::Release(format!("cannot write {}: {error}", path.display())))
}

fn unreadable(path: &Path, error: &std::io::Error) -> PayloadError {
    PayloadError::Release(format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::{Map, Value, json};
    use tempfile::TempDir;

    use super::*;
    use crate::engine::desired;
    use crate::render::{Inputs, Nodes, Renderer};

    /// A test directory like the first release.
    fn release(leave_out: &str) -> TempDir {
        release_of(&RELEASES[0], leave_out)
    }

    /// A directory with an empty file or a chart for each path in the definitions.
    fn release_of(release: &Release, leave_out: &str) -> TempDir {
        let dir = TempDir::new().unwrap();
        for (name, text) in release.files.iter().filter(|(name, _)| name.starts_with("components/")) {
            for part in Component::parse(name, text).unwrap().files() {
                let Some(part) = part.strip_prefix(PARTS).filter(|part| *part != leave_out) else { continue };
                let part = part.strip_prefix(release.root.trim_end_matches('/')).unwrap_or(part);
                let name = part.rsplit('/').next().unwrap_or_default();
                let path = match name.strip_suffix(".tgz") {
                    Some(name) => dir.path().join(part).with_file_name(format!("{name}-1.2.3.tgz")),
                    None if name.contains(".y") => dir.path().join(part),
                    None => dir.path().join(part).join("x.yaml"),
                };
                write(&path, name.as_bytes()).unwrap();
            }
        }
        write(&dir.path().join("roles/none/of/it.yaml"), b"{}").unwrap();
        write(&dir.path().join(release.known_by.0), release.known_by.1.as_bytes()).unwrap();
        dir
    }

    #[test]
    fn only_what_definitions_name_is_copied() {
        let (from, to) = (release(""), TempDir::new().unwrap());
        let payload = build_from(from.path(), &to.path().join("payload"), "1").unwrap();
        assert_eq!(payload.kubesphere(), "v3.4.1");
        assert!(payload.components().len() >= 11);
        assert_eq!(payload.parts("release/roles/none"), [""; 0]);
        let names = |component: &Component| {
            component.files().iter().map(|part| (*part).to_owned()).collect::<Vec<_>>()
        };
        for part in payload.components().values().flat_map(names) {
            assert!(!payload.parts(&part).is_empty(), "{part}");
        }
        // The archive opensearch-dashboards-1.2.3.tgz next to it does not match.
        let archive = "release/roles/common/files/opensearch/opensearch.tgz";
        assert_eq!(payload.text(archive).unwrap(), "opensearch.tgz");
        let again = build_from(from.path(), &to.path().join("payload"), "1").unwrap_err().to_string();
        assert!(again.contains("is there already"), "{again}");
    }

    /// The extensions of KubeSphere 4 that a spec enables, by component, with their values.
    async fn extensions(spec: &Value) -> BTreeMap<String, Value> {
        let (from, to) = (release_of(&RELEASES[1], ""), TempDir::new().unwrap());
        let payload = Arc::new(build_from(from.path(), &to.path().join("payload"), "1").unwrap());
        let spec = ks_spec::effective(spec, &Value::Null);
        let desired = desired(&payload, &spec, "v1.36.0");
        assert!(desired.refused.is_empty(), "{:?}", desired.refused);
        let (helm, kubernetes) = (PathBuf::new(), "v1.36.0".to_owned());
        let renderer = Renderer { payload: payload.clone(), helm, kubernetes, nodes: Nodes::default() };
        let mut plans = BTreeMap::new();
        for component in desired.wanted.iter().map(|name| &payload.components()[name]) {
            if component.extensions().next().is_none() {
                continue;
            }
            let inputs = Inputs { spec: &spec, generated: &Map::new() };
            let [plan] = renderer.objects(component, inputs).await.unwrap().try_into().unwrap();
            assert_eq!(format!("extension-{}", plan["metadata"]["name"].as_str().unwrap()), component.name);
            let config = plan["spec"]["config"]
                .as_str()
                .map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
            plans.insert(component.name.trim_start_matches("extension-").to_owned(), config);
        }
        plans
    }

    #[tokio::test]
    async fn keys_of_version_3_ask_for_extensions_of_version_4() {
        let on = json!({"enabled": true});
        for (spec, expected) in [
            (json!({"logging": {"enabled": false}}), &[][..]),
            (json!({"logging": on}), &["opensearch", "vector", "whizard-logging", "whizard-telemetry"]),
            (
                json!({"auditing": on, "common": {"opensearch": {"externalOpensearchHost": "o"}}}),
                &["vector", "whizard-auditing", "whizard-telemetry"],
            ),
            (
                json!({"monitoring": {}, "alerting": on}),
                &["whizard-alerting", "whizard-monitoring", "whizard-telemetry"],
            ),
            (json!({"monitoring": {}, "common": {"monitoring": {"type": "external"}}}), &[]),
            (
                json!({"devops": on, "servicemesh": on, "metrics_server": on, "gatekeeper": on, "openpitrix": {"store": on}}),
                &["devops", "gatekeeper", "metrics-server", "openpitrix", "servicemesh"],
            ),
            (
                json!({"edgeruntime": {"enabled": true, "kubeedge": on}, "network": {"ippool": {"type": "calico"}}}),
                &["kubeedge", "network"],
            ),
            (
                json!({"extensions": {"vector": on, "gateway": on, "storage-utils": {"enabled": false}}}),
                &["gateway", "vector"],
            ),
        ] {
            let plans = extensions(&spec).await;
            assert_eq!(plans.keys().map(String::as_str).collect::<Vec<_>>(), expected, "{spec}");
        }
    }

    #[tokio::test]
    async fn settings_of_version_3_are_values_of_extensions() {
        let spec = json!({
            "persistence": {"storageClass": "fast"},
            "etcd": {"monitoring": true, "endpointIps": "192.0.2.1, 192.0.2.2"},
            "monitoring": {"prometheus": {"volumeSize": "9Gi"}},
            "logging": {"enabled": true, "logsidecar": {"enabled": false}},
            "network": {"networkpolicy": {"enabled": true}},
        });
        let plans = extensions(&spec).await;
        let stack = &plans["whizard-monitoring"]["kube-prometheus-stack"];
        let expected = json!({"volumeClaimTemplate": {"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "9Gi"}}}}});
        assert_eq!(stack["prometheus"]["prometheusSpec"]["storageSpec"], expected);
        assert_eq!(stack["prometheus"]["prometheusSpec"]["secrets"], json!(["kube-etcd-client-certs"]));
        assert_eq!(stack["kubeEtcd"]["endpoints"], json!(["192.0.2.1", "192.0.2.2"]));
        assert_eq!(stack["kubeEtcd"]["serviceMonitor"], Value::Null);
        let metrics = json!({"etcd": {"monitoring": true, "endpointIps": "192.0.2.1", "port": 2381, "tlsEnable": false}, "monitoring": {}});
        let plain = extensions(&metrics).await;
        let plain = &plain["whizard-monitoring"]["kube-prometheus-stack"];
        assert_eq!(plain["kubeEtcd"]["service"], json!({"port": 2381, "targetPort": 2381}));
        assert_eq!(plain["kubeEtcd"]["serviceMonitor"], json!({"scheme": "http"}));
        assert_eq!(plain["prometheus"]["prometheusSpec"]["secrets"], Value::Null);
        assert_eq!(plans["whizard-logging"], json!({"logsidecar-injector": {"enabled": false}}));
        assert_eq!(plans["network"]["global"]["networkpolicy"], json!({"enabled": true}));
        // Settings without a value keep the default of the extension.
        assert_eq!(extensions(&json!({"monitoring": {}})).await["whizard-monitoring"], Value::Null);
    }

    #[test]
    fn what_is_no_release_is_refused_and_nothing_is_left() {
        let to = TempDir::new().unwrap();
        let chart = "roles/ks-core/ks-core/files/ks-core";
        for (from, expected) in [(TempDir::new().unwrap(), "no release for which"), (release(chart), chart)] {
            let error = build_from(from.path(), &to.path().join("payload"), "1").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
        }
    }
}
