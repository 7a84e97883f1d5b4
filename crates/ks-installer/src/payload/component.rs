//! The definition of a component: `components/<name>.yaml`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::expression::Expression;
use super::extension;

/// How long a component may take to be ready, when it does not say that.
const READY_WITHIN: Duration = Duration::from_mins(10);
/// How long a group of objects has to go, when its component does not say that, or is not known any more.
pub const GONE_WITHIN: Duration = Duration::from_mins(5);

/// What a component is, as data.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Component {
    /// Its name, that of the file.
    #[serde(skip)]
    pub name: String,
    /// The text of the definition; a change of it is one of the component.
    #[serde(skip)]
    pub text: String,
    /// Where in the status its entry is, like `metricsServer`; none for parts that nobody asks about.
    pub status_key: Option<String>,
    /// When it is wanted.
    pub enabled: Expression,
    /// Components that must be ready before, and are removed after.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// Components that come before when they are wanted, too. Nobody needs them.
    #[serde(default)]
    pub after: Vec<String>,
    /// Components whose kinds are known before, when they are wanted, too: its programs look for them only when they start.
    #[serde(default)]
    pub kinds_of: Vec<String>,
    /// Paths of the spec that its templates may read. Nothing else is there for them: so nothing is forgotten here.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Files of variables, for templates of an Ansible role: with them the inputs' first keys are names at the top, too.
    #[serde(default)]
    pub variables: Vec<String>,
    /// Namespace of objects that name none.
    pub namespace: Option<String>,
    /// Passwords and certificates that are made once.
    #[serde(default)]
    pub generated: Vec<Generated>,
    /// What must be in the cluster before.
    #[serde(default)]
    pub requires: Vec<Requirement>,
    /// Specs and clusters for which it cannot be.
    #[serde(default)]
    pub refused: Vec<Refusal>,
    /// Where its objects come from.
    pub sources: Vec<Source>,
    /// What is changed in them.
    #[serde(default)]
    pub overlay: Vec<Overlay>,
    /// Objects that are made once and then left as they are, because each rendering makes other ones.
    #[serde(default)]
    pub keep: Vec<Kept>,
    /// When custom resources are ready. Those of Kubernetes itself are known.
    #[serde(default)]
    pub ready: Vec<ReadyRule>,
    /// What controllers make of its custom resources, and what it is there for.
    #[serde(default)]
    pub waits_for: Vec<Awaited>,
    /// Seconds after which it is told that it is not ready.
    ready_within_seconds: Option<u64>,
    /// How it is removed.
    #[serde(default)]
    pub remove: Remove,
    /// Path of the spec where `Retain` or `Delete` may be said about its volumes and secrets.
    pub data_policy: Option<String>,
    /// Images that are in no object, because a controller names them.
    #[serde(default)]
    pub images: Vec<String>,
}

/// Where objects come from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", untagged)]
pub enum Source {
    /// Templates of manifests: a file or a directory.
    Manifests {
        /// Where.
        manifests: String,
        /// They are no templates, whatever is in them.
        #[serde(default)]
        plain: bool,
        /// Names of files that are left out; one `*` stands for any text.
        #[serde(default)]
        except: Vec<String>,
        /// Only then.
        when: Option<Expression>,
    },
    /// A chart.
    Chart {
        /// Its directory, or the archive that helm packs.
        chart: String,
        /// Name of the release.
        release: String,
        /// Template of its values.
        #[serde(default)]
        values: String,
        /// File with a template of values, below those of `values`.
        #[serde(rename = "valuesFrom")]
        values_from: Option<String>,
        /// Whether its release is recorded as helm does it, so that users of helm see it and go on with it.
        #[serde(default)]
        record: bool,
        /// Kinds of hooks that are applied as other objects are. Hooks are left out, because they are helm's steps.
        #[serde(default)]
        hooks: Vec<String>,
        /// Only then.
        when: Option<Expression>,
    },
    /// An extension of KubeSphere 4: an `InstallPlan`, which a controller of KubeSphere works on.
    Extension {
        /// Its name.
        extension: String,
        /// Template of its version; the recommended one when it gives none.
        #[serde(default)]
        version: String,
        /// Template of its values, below those of the spec.
        #[serde(default)]
        config: String,
        /// Only then.
        when: Option<Expression>,
    },
}

/// A spec or a cluster for which a component cannot be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// An expression on `spec`, `cluster.version` and `cluster.minor`.
    pub when: Expression,
    /// Why, and what to do.
    pub why: String,
}

/// A change of objects that sources give.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// Their kind.
    pub kind: String,
    /// Their name; empty for all of the kind.
    #[serde(default)]
    pub name: String,
    /// The namespace that the source names; empty for all, and for those that name none.
    #[serde(default)]
    pub namespace: String,
    /// They are left out.
    #[serde(default)]
    pub omit: bool,
    /// Values by path, like `/webhooks/*/clientConfig/caBundle`; texts are templates, null takes away.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
}

/// A value that is made once and kept in a Secret: one of both kinds, or that of another component.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generated {
    /// `generated.<name>` in templates.
    pub name: String,
    /// A password of this many letters and digits.
    pub password: Option<usize>,
    /// A certificate for these names by an authority of its own: `.cert`, `.key` and `.ca`.
    pub certificate: Option<Vec<String>>,
    /// The component that makes it; this one depends on it.
    pub of: Option<String>,
}

/// An object that must be there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Requirement {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    #[serde(default)]
    pub namespace: String,
    /// Its name; empty for any object of the kind.
    #[serde(default)]
    pub name: String,
    /// Only then.
    pub when: Option<Expression>,
    /// Which objects count.
    pub matches: Option<Expression>,
    /// What to do about it.
    pub hint: String,
}

/// An object that is made once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// When objects of a kind are ready.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ReadyRule {
    /// The kind.
    pub kind: String,
    /// An expression on `object`.
    pub when: Expression,
}

/// A workload that a controller makes. It belongs to the custom resource and not to the component.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Awaited {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Only then.
    pub when: Option<Expression>,
}

/// How a component is removed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Remove {
    /// Seconds that one group of objects has to go.
    within_seconds: Option<u64>,
    /// What its controllers leave in objects of others. It is removed when none of the controllers is left.
    #[serde(default)]
    pub traces: Vec<Trace>,
}

/// What controllers leave in objects of a kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Trace {
    /// Its API version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Finalizers, labels and annotations of this domain, and of those below it, are taken away.
    pub domain: Option<String>,
    /// Objects with one of these labels or annotations are the controllers' own, and are deleted.
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

    /// All components that it waits for in any way.
    pub(super) fn all_before(&self) -> impl Iterator<Item = &String> {
        self.depends_on.iter().chain(&self.after).chain(&self.kinds_of)
    }

    /// Names of the extensions that it consists of.
    pub fn extensions(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().filter_map(|source| match source {
            Source::Extension { extension, .. } => Some(extension.as_str()),
            Source::Manifests { .. } | Source::Chart { .. } => None,
        })
    }

    /// Whether it exists for others only, and goes with the last of them.
    pub fn is_shared(&self) -> bool {
        self.enabled.is_when_needed()
    }

    /// All files and directories of the payload that it names.
    pub fn files(&self) -> Vec<&str> {
        let sources = self.sources.iter().flat_map(|source| [source.directory(), source.values_from()]);
        sources.flatten().chain(self.variables.iter().map(String::as_str)).collect()
    }

    /// Whether helm's records are written for one of its charts.
    pub fn is_recorded(&self) -> bool {
        self.sources.iter().any(|source| matches!(source, Source::Chart { record: true, .. }))
    }

    /// How long it may take to be ready.
    pub fn time_to_ready(&self) -> Duration {
        self.ready_within_seconds
            .map_or_else(|| self.time_of_helm().unwrap_or(READY_WITHIN), Duration::from_secs)
    }

    /// How long one group of its objects has to go.
    pub fn time_to_go(&self) -> Duration {
        self.remove
            .within_seconds
            .map_or_else(|| self.time_of_helm().unwrap_or(GONE_WITHIN), Duration::from_secs)
    }

    /// The Job of an extension is given ten minutes by KubeSphere.
    fn time_of_helm(&self) -> Option<Duration> {
        self.extensions().next().map(|_| Duration::from_mins(15))
    }
}

impl Source {
    /// What messages call it.
    pub fn name(&self) -> &str {
        match self {
            Self::Manifests { manifests: name, .. }
            | Self::Chart { chart: name, .. }
            | Self::Extension { extension: name, .. } => name,
        }
    }

    /// Where its files are.
    fn directory(&self) -> Option<&str> {
        match self {
            Self::Manifests { manifests: directory, .. } | Self::Chart { chart: directory, .. } => {
                Some(directory)
            }
            Self::Extension { .. } => None,
        }
    }

    /// Where more values of a chart are.
    fn values_from(&self) -> Option<&str> {
        match self {
            Self::Manifests { .. } | Self::Extension { .. } => None,
            Self::Chart { values_from, .. } => values_from.as_deref(),
        }
    }

    /// When it counts.
    pub fn when(&self) -> Option<&Expression> {
        match self {
            Self::Manifests { when, .. } | Self::Chart { when, .. } | Self::Extension { when, .. } => {
                when.as_ref()
            }
        }
    }
}
