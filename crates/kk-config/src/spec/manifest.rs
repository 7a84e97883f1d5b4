//! The contents of an offline bundle, and the file that lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{
    Arch, ChartSource, Download, ImageName, ManifestFile, ManifestSource, OperatingSystem, Registry,
};
use crate::KubeVersion;
use crate::v1alpha2::API_VERSION;

/// The contents of an offline bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// `metadata.name`; may be empty.
    pub name: String,
    /// Architectures of the hosts; never empty.
    pub arches: BTreeSet<Arch>,
    /// Versions of Kubernetes.
    pub kubernetes: BTreeSet<KubeVersion>,
    /// Versions of other binaries, without a leading v, by key of [`crate::Components`].
    pub components: BTreeMap<&'static str, BTreeSet<String>>,
    /// Images by their upstream names.
    pub images: BTreeSet<ImageName>,
    /// Helm charts.
    pub charts: BTreeSet<ChartSource>,
    /// Kubernetes manifests; each has a unique name.
    pub manifests: BTreeSet<ManifestFile>,
    /// Operating systems whose packages are needed.
    pub operating_systems: Vec<OperatingSystem>,
    /// Access to registries.
    pub registry: Registry,
    /// The sources of binaries.
    pub download: Download,
}

impl Manifest {
    /// Adds all contents of another Manifest.
    pub fn add(&mut self, other: Self) {
        self.arches.extend(other.arches);
        self.kubernetes.extend(other.kubernetes);
        for (component, versions) in other.components {
            self.components.entry(component).or_default().extend(versions);
        }
        self.images.extend(other.images);
        self.charts.extend(other.charts);
        self.manifests.extend(other.manifests);
        for system in other.operating_systems {
            if !self.operating_systems.contains(&system) {
                self.operating_systems.push(system);
            }
        }
    }

    /// The text of the file. It contains no password: the user adds those that are needed.
    pub fn text(&self) -> String {
        let mut text = format!(
            "apiVersion: {API_VERSION}\nkind: Manifest\nmetadata:\n  name: {}\nspec:\n  arches: [{}]\n  \
             kubernetesDistributions:\n",
            self.name,
            self.arches.iter().map(|arch| arch.as_str()).collect::<Vec<_>>().join(", "),
        );
        for version in &self.kubernetes {
            let _ = writeln!(text, "  - {{type: kubernetes, version: {version}}}");
        }
        text += "  components:\n";
        for (component, versions) in &self.components {
            if *component == "containerd" {
                text += "    containerRuntimes:\n";
                for version in versions {
                    let _ = writeln!(text, "    - {{type: containerd, version: {}}}", json!(version));
                }
            } else {
                let _ = writeln!(text, "    {component}: {{versions: {}}}", json!(versions));
            }
        }
        text += "  images:\n";
        for image in &self.images {
            let _ = writeln!(text, "  - {image}");
        }
        for (key, entries) in [
            ("charts", self.charts.iter().map(chart).collect::<Vec<_>>()),
            ("manifests", self.manifests.iter().map(manifest).collect()),
        ] {
            if !entries.is_empty() {
                let _ = writeln!(text, "  {key}:");
            }
            for entry in entries {
                let _ = writeln!(text, "  - {entry}");
            }
        }
        if !self.operating_systems.is_empty() {
            text += "  operatingSystems:\n";
        }
        for system in &self.operating_systems {
            let _ = writeln!(text, "  - {}", operating_system(system));
        }
        for (key, value) in [("registry", self.registry_value()), ("download", self.download_value())] {
            // JSON is YAML.
            if value.as_object().is_some_and(|fields| !fields.is_empty()) {
                let _ = writeln!(text, "  {key}: {value}");
            }
        }
        text
    }

    fn registry_value(&self) -> Value {
        let mut registry = serde_json::Map::new();
        let mut put = |key: &str, value: Value, empty: bool| {
            if !empty {
                registry.insert(key.to_owned(), value);
            }
        };
        let of = &self.registry;
        put("registryMirrors", json!(of.registry_mirrors), of.registry_mirrors.is_empty());
        put("insecureRegistries", json!(of.insecure_registries), of.insecure_registries.is_empty());
        let mirrors = of.remote_mirrors.iter();
        let mirrors = mirrors.map(|(host, mirror)| (host.clone(), json!({"endpoint": mirror.endpoint})));
        put("remoteMirrors", mirrors.collect(), of.remote_mirrors.is_empty());
        let auths = of.auths.iter().map(|(host, auth)| {
            let mut value = json!({"skipTLSVerify": auth.skip_tls_verify, "plainHTTP": auth.plain_http});
            if let Some(path) = &auth.certs_path {
                value["certsPath"] = json!(path);
            }
            (host.clone(), value)
        });
        put("auths", auths.collect(), of.auths.is_empty());
        Value::Object(registry)
    }

    fn download_value(&self) -> Value {
        let Download { mirror, ca_file, catalogue, public_key: _ } = &self.download;
        let fields = [("mirror", mirror), ("caFile", ca_file), ("catalogue", catalogue)];
        let given =
            fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?))));
        Value::Object(given.collect())
    }
}

fn chart(source: &ChartSource) -> Value {
    match source {
        ChartSource::Repository { repo, name, version } => {
            json!({"name": name, "repo": repo, "version": version})
        }
        ChartSource::Oci { version, .. } => json!({"name": source.origin(), "version": version}),
        ChartSource::Path(path) => json!({"path": path}),
    }
}

fn manifest(file: &ManifestFile) -> Value {
    let name = &file.name;
    match &file.source {
        ManifestSource::Url { url, sha256: Some(sum) }
        | ManifestSource::Published { url, sha256: sum, .. } => {
            json!({"name": name, "url": url, "sha256": sum})
        }
        ManifestSource::Url { url, sha256: None } => json!({"name": name, "url": url}),
        ManifestSource::Path(path) => json!({"name": name, "path": path}),
    }
}

fn operating_system(system: &OperatingSystem) -> Value {
    let OperatingSystem { id, version, arch, sources, keyring, .. } = system;
    let mut value = json!({"id": id, "version": version, "arch": arch.as_str()});
    if !sources.is_empty() {
        value["repository"]["sources"] = json!(sources);
    }
    if let Some(keyring) = keyring {
        value["repository"]["keyring"] = json!(keyring);
    }
    value
}
