//! Defines the format of a component definition: `components/<name>.yaml`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::expression::Expression;
use super::extension;

/// Default time limit until a component is ready.
const READY_WITHIN: Duration = Duration::from_mins(10);
/// Default time limit for the removal of a group of objects. It also applies to components that the payload no longer contains.
pub const GONE_WITHIN: Duration = Duration::from_mins(5);

/// A component, as data.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Component {
    /// Name of the component and of its file.
    #[serde(skip)]
    pub name: String,
    /// Text of the definition. A changed text changes the component.
    #[serde(skip)]
    pub text: String,
    /// Key of its entry in the status, such as `metricsServer`; `None` for components without an entry.
    pub status_key: Option<String>,
    /// Condition under which the component is wanted.
    pub enabled: Expression,
    /// Components that must be ready before this one, and are removed after it.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// Components that come before this one if they are wanted. This one does not require them.
    #[serde(default)]
    pub after: Vec<String>,
    /// Components whose kinds must be known before this one if they are wanted, because its programs look for the kinds only when
    /// they start.
    #[serde(default)]
    pub kinds_of: Vec<String>,
    /// Paths of the spec that its templates may read. Templates cannot read other paths, so the list is always complete.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Files of variables for templates of an Ansible role. With them, the first keys of `inputs` are top-level names in
    /// templates, too.
    #[serde(default)]
    pub variables: Vec<String>,
    /// Namespace of objects that specify none.
    pub namespace: Option<String>,
    /// Passwords and certificates that are created once.
    #[serde(default)]
    pub generated: Vec<Generated>,
    /// Objects that must exist in the cluster before the component is applied.
    #[serde(default)]
    pub requires: Vec<Requirement>,
    /// Specs and clusters that the component does not support.
    #[serde(default)]
    pub refused: Vec<Refusal>,
    /// Sources of its objects.
    pub sources: Vec<Source>,
    /// Changes to its objects.
    #[serde(default)]
    pub overlay: Vec<Overlay>,
    /// Objects that are created once and never changed, because each rendering differs.
    #[serde(default)]
    pub keep: Vec<Kept>,
    /// Conditions for the readiness of custom resources. The readiness of Kubernetes' own kinds is known.
    #[serde(default)]
    pub ready: Vec<ReadyRule>,
    /// Objects that controllers create for its custom resources. The component is ready after they are ready.
    #[serde(default)]
    pub waits_for: Vec<Awaited>,
    /// Seconds after which the component is reported as not ready.
    ready_within_seconds: Option<u64>,
    /// Settings for its removal.
    #[serde(default)]
    pub remove: Remove,
    /// Path of the spec that sets `Retain` or `Delete` for its volumes and Secrets.
    pub data_policy: Option<String>,
    /// Images that only a controller names, so no object contains them.
    #[serde(default)]
    pub images: Vec<String>,
}

/// Source of objects.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", untagged)]
pub enum Source {
    /// Templates of manifests: a file or a directory.
    Manifests {
        /// Path of the file or directory.
        manifests: String,
        /// Whether the files are no templates, regardless of their content.
        #[serde(default)]
        plain: bool,
        /// Names of files to leave out; one `*` matches any text.
        #[serde(default)]
        except: Vec<String>,
        /// Condition for this source.
        when: Option<Expression>,
    },
    /// A chart.
    Chart {
        /// Directory of the chart, or its packed archive.
        chart: String,
        /// Name of the release.
        release: String,
        /// Template of its values.
        #[serde(default)]
        values: String,
        /// File with a template of values, which `values` overrides.
        #[serde(rename = "valuesFrom")]
        values_from: Option<String>,
        /// Whether its release is recorded in helm's format, so that users of helm see it and can continue with it.
        #[serde(default)]
        record: bool,
        /// Kinds of hooks that are applied as ordinary objects. Other hooks are left out, because they are steps of helm.
        #[serde(default)]
        hooks: Vec<String>,
        /// Condition for this source.
        when: Option<Expression>,
    },
    /// An extension of KubeSphere 4: an `InstallPlan`, which a controller of KubeSphere carries out.
    Extension {
        /// Name of the extension.
        extension: String,
        /// Template of its version; if it is empty, the recommended version.
        #[serde(default)]
        version: String,
        /// Template of its values, which the values in the spec override.
        #[serde(default)]
        config: String,
        /// Condition for this source.
        when: Option<Expression>,
    },
}

/// A spec or a cluster that a component does not support.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// An expression on `spec`, `cluster.version` and `cluster.minor`.
    pub when: Expression,
    /// The reason, and what to do.
    pub why: String,
}

/// A change to objects of the sources.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// Kind of the objects.
    pub kind: String,
    /// Name of the object; empty for all objects of the kind.
    #[serde(default)]
    pub name: String,
    /// Namespace in the source; empty for all namespaces and for objects that specify none.
    #[serde(default)]
    pub namespace: String,
    /// Whether the objects are left out.
    #[serde(default)]
    pub omit: bool,
    /// Values by path, such as `/webhooks/*/clientConfig/caBundle`. Texts are templates, and null removes the value.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
}

/// A value that is created once and stored in a Secret: a password, a certificate, or the value of another component.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generated {
    /// `generated.<name>` in templates.
    pub name: String,
    /// A password with this number of letters and digits.
    pub password: Option<usize>,
    /// A certificate for these names, signed by its own CA: `.cert`, `.key` and `.ca`.
    pub certificate: Option<Vec<String>>,
    /// The component that creates the value. This component depends on it.
    pub of: Option<String>,
}

/// A required object.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Requirement {
    /// API version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object.
    #[serde(default)]
    pub namespace: String,
    /// Name of the object; empty for any object of the kind.
    #[serde(default)]
    pub name: String,
    /// Condition for this requirement.
    pub when: Option<Expression>,
    /// Condition that the object has to meet.
    pub matches: Option<Expression>,
    /// What to do if the object is missing.
    pub hint: String,
}

/// An object that is created once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
}

/// Condition for the readiness of objects of a kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ReadyRule {
    /// The kind.
    pub kind: String,
    /// An expression on `object`.
    pub when: Expression,
}

/// A workload that a controller creates. It belongs to the custom resource and not to the component.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Awaited {
    /// API version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Condition for this wait.
    pub when: Option<Expression>,
}

/// Settings for the removal of a component.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Remove {
    /// Time limit in seconds for a group of objects.
    within_seconds: Option<u64>,
    /// Traces of its controllers in objects of other owners. They are removed after all these controllers are gone.
    #[serde(default)]
    pub traces: Vec<Trace>,
}

/// Traces of controllers in objects of a kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Trace {
    /// API version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Domain whose finalizers, labels and annotations are removed, including its subdomains.
    pub domain: Option<String>,
    /// Objects with one of these labels or annotations belong to the controllers and are deleted.
    #[serde(default)]
    pub deleted_with: Vec<String>,
}

impl Component {
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut component: Self = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        name.clone_into(&mut component.name);
        text.clone_into(&mut component.text);
        let mut sources = component.sources.iter();
        if sources
            .any(|source| matches!(source, Source::Chart { record: true, hooks, .. } if !hooks.is_empty()))
        {
            return Err("a chart with `record` cannot have `hooks`: helm does not record them".to_owned());
        }
        let read: Vec<String> = component.extensions().flat_map(extension::inputs).collect();
        component.inputs.extend(read);
        Ok(component)
    }

    /// All components that may have to come before this one.
    pub(super) fn all_before(&self) -> impl Iterator<Item = &String> {
        self.depends_on.iter().chain(&self.after).chain(&self.kinds_of)
    }

    /// Names of its extensions.
    pub fn extensions(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().filter_map(|source| match source {
            Source::Extension { extension, .. } => Some(extension.as_str()),
            Source::Manifests { .. } | Source::Chart { .. } => None,
        })
    }

    /// Whether it exists only for other components, and is removed with the last of them.
    pub fn is_shared(&self) -> bool {
        self.enabled.is_when_needed()
    }

    /// All files and directories of the payload that its sources name.
    pub fn files(&self) -> Vec<&str> {
        let sources = self.sources.iter().flat_map(|source| [source.directory(), source.values_from()]);
        sources.flatten().chain(self.variables.iter().map(String::as_str)).collect()
    }

    /// Whether one of its charts is recorded in helm's format.
    pub fn is_recorded(&self) -> bool {
        self.sources.iter().any(|source| matches!(source, Source::Chart { record: true, .. }))
    }

    /// Time limit until it is ready.
    pub fn time_to_ready(&self) -> Duration {
        self.ready_within_seconds
            .map_or_else(|| self.time_of_helm().unwrap_or(READY_WITHIN), Duration::from_secs)
    }

    /// Time limit for the removal of a group of its objects.
    pub fn time_to_go(&self) -> Duration {
        self.remove
            .within_seconds
            .map_or_else(|| self.time_of_helm().unwrap_or(GONE_WITHIN), Duration::from_secs)
    }

    /// KubeSphere limits the Job of an extension to ten minutes.
    fn time_of_helm(&self) -> Option<Duration> {
        self.extensions().next().map(|_| Duration::from_mins(15))
    }
}

impl Source {
    /// Name in messages.
    pub fn name(&self) -> &str {
        match self {
            Self::Manifests { manifests: name, .. }
            | Self::Chart { chart: name, .. }
            | Self::Extension { extension: name, .. } => name,
        }
    }

    /// Path of its files.
    fn directory(&self) -> Option<&str> {
        match self {
            Self::Manifests { manifests: directory, .. } | Self::Chart { chart: directory, .. } => {
                Some(directory)
            }
            Self::Extension { .. } => None,
        }
    }

    /// File with additional values of a chart.
    fn values_from(&self) -> Option<&str> {
        match self {
            Self::Manifests { .. } | Self::Extension { .. } => None,
            Self::Chart { values_from, .. } => values_from.as_deref(),
        }
    }

    /// Condition for this source.
    pub fn when(&self) -> Option<&Expression> {
        match self {
            Self::Manifests { when, .. } | Self::Chart { when, .. } | Self::Extension { when, .. } => {
                when.as_ref()
            }
        }
    }
}
