//! Addons of the file: their charts and manifests, and the checksum that reveals a change.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use kk_artifact::{Content, Store, bundle::Bundle, is_local_chart, local_chart, local_manifest};
use kk_config::{Addon, AddonChart, ChartSource, ManifestSource, Secret, Spec};
use kk_engine::{Finding, Severity};
use kk_util::sha256;
use serde_json::json;

use crate::base::{artifacts::NOT_IN_BUNDLE, requirements::Workload};

/// The version of a chart in the cluster whose version the file leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InstalledVersion {
    /// This version.
    Known(String),
    /// The release exists, but neither helm nor a note shows its version.
    Unknown,
}

/// An addon of the file.
pub(crate) struct Wanted {
    /// The addon as the file specifies it.
    pub addon: Addon,
    /// Its chart.
    pub chart: Option<Part<ChartSource>>,
    /// The content of the file with values.
    pub values: Option<Arc<[u8]>>,
    /// The file with values, if its source is a URL.
    pub values_url: Option<Part<ManifestSource>>,
    /// Its manifests.
    pub manifests: Vec<Part<ManifestSource>>,
    /// For the network plugin of the file: its workloads. If one of them is missing, the addon is installed again.
    pub plugin: Option<&'static [Workload]>,
    /// Problems with files that it names on the control machine, or with the bundle.
    pub problems: Vec<Finding>,
}

/// The network plugin of the file, which kk installs as an addon.
pub(crate) struct OwnAddon {
    /// The addon, with the values of the file.
    pub addon: Addon,
    /// The values of kk, which the values of the file override.
    pub values: String,
    /// Its workloads.
    pub workloads: &'static [Workload],
}

/// A chart or a file with objects.
pub(crate) struct Part<S> {
    /// Its source.
    pub source: S,
    /// `None` if it has to be fetched, or if its bundle is not unpacked yet.
    pub content: Option<Content>,
    /// Whether its source is a server; then it is fetched when it is needed.
    pub is_remote: bool,
    /// A name or a checksum that changes with the content.
    identity: String,
}

impl Wanted {
    /// All addons of the file. Only the control machine is read: a server's chart or manifest is identified by name and version.
    /// `installed` contains the versions of charts that the file leaves open, by addon. The version in a bundle overrides them.
    pub(crate) fn all(
        spec: &Spec,
        installed: &BTreeMap<String, InstalledVersion>,
        bundle: Option<&Bundle>,
        store: &Store,
    ) -> Vec<Self> {
        spec.addons
            .iter()
            .map(|addon| {
                let mut addon = addon.clone();
                let mut unknown = None;
                if let Some(chart) = addon.chart.as_mut().filter(|chart| chart.is_open) {
                    let packed = bundle.and_then(|bundle| bundle.newest_version(&chart.source));
                    match (packed, installed.get(&addon.name)) {
                        (Some(version), _) => chart.source = chart.source.clone().with_version(version),
                        (None, Some(InstalledVersion::Known(version))) => {
                            chart.source = chart.source.clone().with_version(version);
                        }
                        (None, Some(InstalledVersion::Unknown)) => unknown = Some(unknown_version(&addon)),
                        (None, None) => {}
                    }
                }
                let mut wanted = Self::of(addon, bundle, store);
                wanted.problems.extend(unknown);
                wanted
            })
            .collect()
    }

    /// The network plugin of the file.
    pub(crate) fn own(own: OwnAddon, bundle: Option<&Bundle>, store: &Store) -> Self {
        let values = Some(own.values.into_bytes().into());
        Self { values, plugin: Some(own.workloads), ..Self::of(own.addon, bundle, store) }
    }

    fn of(addon: Addon, bundle: Option<&Bundle>, store: &Store) -> Self {
        let mut problems = Vec::new();
        let look = Look { bundle, store };
        let (mut values, mut values_url) = (None, None);
        match addon.chart.as_ref().and_then(|chart| chart.values_file.as_ref()) {
            Some(ManifestSource::Path(path)) => match std::fs::read(path) {
                Ok(bytes) => values = Some(bytes.into()),
                Err(error) => problems.push(problem(
                    format!("the values of the addon {} cannot be read: {path}: {error}", addon.name),
                    "correct sources.chart.valuesFile; a relative path starts at the working directory of kk",
                )),
            },
            Some(source @ (ManifestSource::Url { .. } | ManifestSource::Published { .. })) => {
                match look.manifest(source) {
                    Ok(part) => values_url = Some(part),
                    Err(finding) => problems.push(finding),
                }
            }
            None => {}
        }
        let chart = addon
            .chart
            .as_ref()
            .and_then(|chart| look.chart(chart).map_err(|finding| problems.push(finding)).ok());
        let manifests = addon
            .manifests
            .iter()
            .filter_map(|source| look.manifest(source).map_err(|finding| problems.push(finding)).ok());
        let manifests = manifests.collect();
        let mut wanted = Self { addon, chart, values, values_url, manifests, plugin: None, problems };
        wanted.take_values();
        wanted
    }

    /// Uses the content of the file with values, once it is fetched.
    pub(crate) fn take_values(&mut self) {
        let content = self.values_url.as_ref().and_then(|part| part.content.as_ref());
        if let Some(content) = content {
            self.values = Some(content.0.clone());
        }
    }

    /// The chart whose version is not known yet.
    pub(crate) fn open_chart(&self) -> Option<&ChartSource> {
        let is_open = self.addon.chart.as_ref().is_some_and(|chart| chart.is_open);
        let source = &self.chart.as_ref().filter(|_| is_open)?.source;
        source.version().is_none().then_some(source)
    }

    /// The version of the chart that kk chose because the file sets none.
    pub(crate) fn chosen_version(&self) -> Option<&str> {
        self.addon.chart.as_ref().filter(|chart| chart.is_open)?;
        self.chart.as_ref()?.source.version()
    }

    /// Sets the version of this chart if it is still unknown.
    pub(crate) fn choose_version(&mut self, source: &ChartSource, version: &str) {
        if self.open_chart() == Some(source) {
            self.chart = Some(part(source.clone().with_version(version), None, true, ""));
        }
    }

    /// The text of the addon's note: a checksum of everything that defines the addon. If the file leaves the version of its chart
    /// open, the note also has that version, and a checksum of the repository and the name. It reveals no value to its readers.
    pub(crate) fn note(&self) -> String {
        let Addon { name, chart, .. } = &self.addon;
        let namespace = self.addon.namespace();
        let values = chart.as_ref().and_then(|chart| chart.values.as_ref()).map(Secret::expose);
        let manifests: Vec<&str> = self.manifests.iter().map(|part| part.identity.as_str()).collect();
        let file = self.values_url.as_ref().map(|part| part.identity.clone());
        let all = json!([
            name,
            namespace,
            self.chart.as_ref().map(|part| &part.identity),
            file.or_else(|| self.values.as_deref().map(sha256)),
            values,
            manifests,
        ]);
        let source = self.chart.as_ref().map(|part| &part.source);
        let version = self.chosen_version().zip(source);
        let version = version.map(|(version, source)| format!(" {version} {}", origin_sum(source)));
        let version = version.unwrap_or_default();
        format!("{namespace}/{name} {}{version}\n", sha256(all.to_string()))
    }

    /// Whether the control machine has all of its content.
    pub(crate) fn is_here(&self) -> bool {
        self.chart.iter().all(|part| part.content.is_some())
            && self.values_url.iter().all(|part| part.content.is_some())
            && self.manifests.iter().all(|part| part.content.is_some())
    }
}

struct Look<'a> {
    bundle: Option<&'a Bundle>,
    store: &'a Store,
}

impl Look<'_> {
    fn chart(&self, chart: &AddonChart) -> Result<Part<ChartSource>, Finding> {
        let places = || std::iter::once(&chart.source).chain(&chart.below);
        if let Some(bundle) = self.bundle {
            let there = places().find_map(|source| Some((source, bundle.chart(source)?)));
            if let Some((source, file)) = there {
                let content = self.read(&file.digest);
                return Ok(part(source.clone(), content, false, &file.sha256));
            }
        }
        let source = source_in_manifest(chart);
        match &source {
            ChartSource::Path(path) => {
                // The bundle need not contain a chart that is on the control machine.
                if self.bundle.is_some() && !Path::new(path).exists() {
                    return Err(missing(&format!("chart {source}")));
                }
                let content = local_chart(&source, path).map_err(|error| of_error(&error))?;
                let sum = sha256(&*content.0);
                Ok(part(source, Some(content), false, &sum))
            }
            _ if self.bundle.is_some() => Err(missing(&format!("chart {source}"))),
            _ => Ok(part(source, None, true, "")),
        }
    }

    fn manifest(&self, source: &ManifestSource) -> Result<Part<ManifestSource>, Finding> {
        if let Some(file) = self.bundle.and_then(|bundle| bundle.manifest(source)) {
            let content = self.read(&file.digest);
            return Ok(part(source.clone(), content, false, &file.sha256));
        }
        match source {
            ManifestSource::Path(path) => {
                if self.bundle.is_some() && !Path::new(path).exists() {
                    return Err(missing(&format!("manifest {source}")));
                }
                let content = local_manifest(source, path).map_err(|error| of_error(&error))?;
                let sum = sha256(&*content.0);
                Ok(part(source.clone(), Some(content), false, &sum))
            }
            ManifestSource::Url { .. } | ManifestSource::Published { .. } if self.bundle.is_some() => {
                Err(missing(&format!("manifest {source}")))
            }
            ManifestSource::Url { .. } | ManifestSource::Published { .. } => {
                Ok(part(source.clone(), None, true, ""))
            }
        }
    }

    /// Reads a file of the unpacked bundle. A dry run does not unpack bundles.
    fn read(&self, digest: &str) -> Option<Content> {
        let bytes = std::fs::read(self.store.blob(digest)).ok()?;
        let is_it = digest.strip_prefix("sha256:") == Some(sha256(&bytes).as_str());
        is_it.then(|| Content(bytes.into()))
    }
}

/// A chart or manifest on a server is identified by its name: a version does not change. All others are identified by their
/// content.
trait Origin {
    fn by_name(&self) -> Option<String>;
}

impl Origin for ChartSource {
    fn by_name(&self) -> Option<String> {
        (!matches!(self, Self::Path(_))).then(|| self.to_string())
    }
}

impl Origin for ManifestSource {
    fn by_name(&self) -> Option<String> {
        match self {
            Self::Url { url, .. } | Self::Published { url, .. } => Some(url.clone()),
            Self::Path(_) => None,
        }
    }
}

fn part<S: Origin>(source: S, content: Option<Content>, is_remote: bool, sum: &str) -> Part<S> {
    let identity = source.by_name().unwrap_or_else(|| sum.to_owned());
    Part { source, content, is_remote, identity }
}

/// The location of a chart: KubeKey's path may be the parent directory.
pub(crate) fn source_in_manifest(chart: &AddonChart) -> ChartSource {
    match (&chart.source, &chart.below) {
        (ChartSource::Path(path), Some(below))
            if !is_local_chart(path) && path.strip_suffix(".tgz").is_none() =>
        {
            below.clone()
        }
        (source, _) => source.clone(),
    }
}

/// A checksum of the repository and the name of a chart, whatever its version.
pub(crate) fn origin_sum(source: &ChartSource) -> String {
    sha256(source.clone().with_version("").to_string())
}

fn unknown_version(addon: &Addon) -> Finding {
    let (name, namespace) = (&addon.name, addon.namespace());
    problem(
        format!("the addon {name} has no version in the file, and its installed version is unknown"),
        format!("write `version` into its chart: `helm -n {namespace} list` shows the installed one"),
    )
}

fn missing(part: &str) -> Finding {
    problem(format!("{part} is not in the bundle"), NOT_IN_BUNDLE)
}

fn of_error(error: &kk_artifact::Error) -> Finding {
    problem(error.to_string(), error.hint().unwrap_or_default())
}

fn problem(message: String, hint: impl Into<String>) -> Finding {
    Finding { severity: Severity::Error, host: None, message, hint: hint.into() }
}

/// Findings for the files that could not be fetched.
pub(crate) fn not_fetched(errors: &[kk_artifact::Error]) -> Vec<Finding> {
    errors.iter().map(of_error).collect()
}

/// Warnings for a command that succeeds without the addon: why the addon stays unchanged.
pub(crate) fn left_out<'a>(name: &'a str, problems: &'a [Finding]) -> impl Iterator<Item = Finding> + 'a {
    problems.iter().map(move |problem| Finding {
        severity: Severity::Warning,
        host: None,
        message: format!("the addon {name} is not changed: {}", problem.message),
        hint: match problem.hint.as_str() {
            "" => "kk create cluster installs it later".to_owned(),
            hint => format!("{hint}; then run kk create cluster"),
        },
    })
}
