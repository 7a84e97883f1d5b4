//! `spec.addons`: charts and manifests that are installed once the cluster runs.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{set_values, source, syntax};
use crate::findings::{At, Findings};
use crate::spec::{Addon, AddonChart, ChartSource, ManifestSource};
use crate::{NetworkPlugin, Secret, mask, v1alpha2};

/// Longest name of a release (helm's documentation, "helm install").
const LONGEST_NAME: usize = 53;
/// Default wait before another attempt, in seconds.
const DELAY: u32 = 5;

/// The name of the release of Cilium as a network plugin.
const CILIUM: &str = "cilium";

pub(super) fn addons(
    docs: Vec<v1alpha2::Addon>,
    plugin: &NetworkPlugin,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> Vec<Addon> {
    let (mut all, mut names) = (Vec::new(), BTreeSet::new());
    for (i, doc) in docs.into_iter().enumerate() {
        let at = at.item(i);
        let Some(addon) = addon(doc, at, out) else { continue };
        if *plugin == NetworkPlugin::Cilium && addon.name == CILIUM {
            let hint = "remove the addon, and put its values into `network.cilium.values`; or set `network.plugin: none`";
            out.error(at.key("name"), "the network plugin installs `cilium` already", hint);
        }
        if !names.insert(addon.name.clone()) {
            out.error(at, format!("two addons have the name `{}`", addon.name), "give one of them another");
        }
        all.push(addon);
    }
    all
}

/// Checks an addon. `None`: an error was reported.
fn addon(doc: v1alpha2::Addon, at: At<'_>, out: &mut Findings<'_>) -> Option<Addon> {
    let Some(name) = doc.name else {
        out.missing(at, "an addon has no name", "add `name: …`");
        return None;
    };
    if !syntax::is_dns_label(&name) || name.len() > LONGEST_NAME {
        let hint =
            "use at most 53 small letters, digits and `-`, beginning and ending with a letter or digit";
        out.error(at.key("name"), format!("`{name}` cannot name an addon"), hint);
    }
    if let Some(namespace) = doc.namespace.as_ref().filter(|text| !syntax::is_dns_label(text)) {
        out.error(at.key("namespace"), format!("`{namespace}` cannot be a namespace"), syntax::DNS_LABEL);
    }
    for (key, scripts) in [("preInstall", &doc.pre_install), ("postInstall", &doc.post_install)] {
        if !scripts.is_empty() {
            let message = format!("without effect yet: spec.addons.{key}");
            out.warning(at.name(key), message, "run the script yourself");
        }
    }
    let sources = at.key("sources");
    let yaml = sources.key("yaml");
    if !is_empty(&doc.sources.yaml.values) {
        let message = "without effect yet: spec.addons.sources.yaml.values";
        out.warning(yaml.name("values"), message, "the manifests are applied as they are");
    }
    let has_manifests = !doc.sources.yaml.path.is_empty();
    let manifests: Vec<ManifestSource> = doc
        .sources
        .yaml
        .path
        .into_iter()
        .enumerate()
        .filter_map(|(i, text)| file(text, yaml.key("path").item(i), "a manifest", out))
        .collect();
    let has_chart = {
        let v1alpha2::AddonChart { name, repo, path, .. } = &doc.sources.chart;
        [name, repo, path].into_iter().any(Option::is_some)
    };
    let place = sources.key("chart");
    let chart = if has_chart { chart(doc.sources.chart, place, out) } else { None };
    if !has_chart && !has_manifests {
        let message = format!("the addon `{name}` has no source");
        out.missing(at, message, "add `sources: {chart: {…}}` or `sources: {yaml: {path: […]}}`");
    }
    let (retries, delay) = (doc.retries.unwrap_or(0), doc.delay.unwrap_or(DELAY));
    let delay = Duration::from_secs(delay.into());
    let (namespace, phase) = (doc.namespace, doc.phase);
    Some(Addon { name, namespace, phase, chart, manifests, retries, delay })
}

/// A file on the control machine, or a URL.
fn file(text: String, at: At<'_>, what: &str, out: &mut Findings<'_>) -> Option<ManifestSource> {
    if text.contains("://")
        && let Some(problem) = syntax::url_problem(&text)
    {
        out.error(at, format!("this is not the URL of {what}"), problem);
        return None;
    }
    source::warn_of_http(&text, at, "use https://, or a file of this machine", out);
    Some(ManifestSource::from_text(source::one_line(text, at, out)?))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn chart(mut doc: v1alpha2::AddonChart, at: At<'_>, out: &mut Findings<'_>) -> Option<AddonChart> {
    if doc.repo.is_some() && doc.path.take().is_some() {
        out.warning(
            at.name("path"),
            "without effect: a path in addition to a repo",
            "the chart is taken \
                             from the repo",
        );
    }
    // KubeKey's path is the directory that contains the chart with this name.
    let in_path = doc.path.is_some().then(|| doc.name.take()).flatten();
    if doc.path.is_some() && doc.version.take().is_some() {
        let hint = "the chart itself says its version";
        out.warning(at.name("version"), "without effect: the version of a chart by its path", hint);
    }
    let is_open = doc.repo.is_some() && doc.version.is_none();
    let (name, repo, version, path) = (doc.name, doc.repo, doc.version, doc.path);
    let given = source::Chart { name, repo, version, path, may_be_open: true };
    let source = given.source(at, out);
    let below = match (&source, in_path) {
        (Some(ChartSource::Path(path)), Some(name)) => {
            Some(ChartSource::Path(format!("{}/{name}", path.trim_end_matches('/'))))
        }
        _ => None,
    };
    let (values, secrets) = values(&doc.values, doc.values_file.is_some(), at.key("values"), out);
    let place = at.key("valuesFile");
    let values_file = doc.values_file.and_then(|text| file(text, place, "a file with values", out));
    let wait = doc.wait.unwrap_or(false);
    Some(AddonChart { source: source?, is_open, below, values_file, values, secrets, wait })
}

/// All values as one JSON object, and those that are secrets by their names.
fn values(
    texts: &[Secret],
    has_file: bool,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> (Option<Secret>, Vec<Secret>) {
    let (mut all, mut secrets) = (json!({}), Vec::new());
    for (i, text) in texts.iter().enumerate() {
        let at = at.item(i);
        let pairs = match set_values::parse(text.expose()) {
            Ok(pairs) => pairs,
            Err(reason) => {
                let hint = "write KEY=VALUE as for helm's --set, with `\\,` for a comma in a value";
                out.error(at, format!("this is not a value of a chart: {reason}"), hint);
                continue;
            }
        };
        for pair in pairs {
            if has_file && pair.has_index() {
                let hint = "put it into the file: a list of the file would be replaced as a whole";
                out.error(at, "an item of a list cannot be set in addition to a valuesFile", hint);
            }
            if pair.keys().any(mask::names_secret) {
                let value = pair.value.as_str().map_or_else(|| pair.value.to_string(), str::to_owned);
                secrets.extend((!value.is_empty()).then(|| Secret::new(value)));
            }
            pair.set(&mut all);
        }
    }
    ((!texts.is_empty()).then(|| Secret::new(all.to_string())), secrets)
}
