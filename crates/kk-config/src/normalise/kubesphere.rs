//! `spec.kubesphere`, and the `ClusterConfiguration` document next to the Cluster.

use crate::Overrides;
use crate::findings::{At, Findings};
use crate::spec::{InstallerImage, KubeSphere};
use crate::v1alpha2;
use crate::yaml::Node;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Fields of the only object that ks-installer reads, and their required values.
const OBJECT: [(&[&str], &str); 3] = [
    (&["apiVersion"], "installer.kubesphere.io/v1alpha1"),
    (&["metadata", "name"], "ks-installer"),
    (&["metadata", "namespace"], "kubesphere-system"),
];

/// `None` if KubeSphere is not requested. `second` is the second document.
pub(super) fn kubesphere(
    doc: v1alpha2::KubeSphere,
    second: Option<&Node>,
    overrides: &Overrides,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> Option<KubeSphere> {
    let by_flag = overrides.kubesphere_version.is_some();
    if !by_flag && doc.enabled == Some(false) {
        return None;
    }
    let second = second.filter(|document| is_read(document, out));
    let label = ["metadata", "labels", "version"];
    let label =
        second.and_then(|document| label.iter().try_fold(document, |node, key| node.get(key))?.text());
    let configuration = second.map(|document| configuration(document, out)).unwrap_or_default();
    let image = image(doc.image.as_deref(), at.key("image"), out);
    if !by_flag && !doc.enabled.unwrap_or(second.is_some()) {
        return None;
    }
    if let Some(document) = second.filter(|_| !by_flag && doc.enabled.is_none() && doc.image.is_none()) {
        // Files of KubeKey name no image, because KubeKey has its own.
        let hint = "set spec.kubesphere.image to an image of ks-installer (docs/kubesphere.md), or set \
                    spec.kubesphere.enabled: false";
        out.warning(
            At::root(document).key("kind"),
            "KubeSphere is not installed: the file does not specify an image of ks-installer",
            hint,
        );
        return None;
    }
    let version = [overrides.kubesphere_version.as_deref(), doc.version.as_deref(), label];
    let version = version.into_iter().flatten().find(|version| !version.is_empty()).map(with_v);
    if let Some(version) = version.as_deref().filter(|version| version.contains(char::is_whitespace)) {
        out.error(at.key("version"), format!("`{version}` is no version"), "write it like v3.4.1");
    }
    Some(KubeSphere { version, image, registry: doc.registry, configuration })
}

/// `ConfigMaps` were read by installers before 3.0.
fn is_read(document: &Node, out: &mut Findings<'_>) -> bool {
    let at = At::root(document);
    let is_old = document.get("kind").and_then(Node::text) == Some("ConfigMap");
    if is_old {
        let hint = "KubeSphere is not installed from it; write it as a ClusterConfiguration";
        out.warning(at.key("kind"), "without effect: the ConfigMap of old installers", hint);
    }
    !is_old
}

/// The spec of the document, with old keys renamed and types checked.
fn configuration(document: &Node, out: &mut Findings<'_>) -> Map<String, Value> {
    let at = At::root(document);
    for (path, wanted) in OBJECT {
        let found = path.iter().try_fold(document, |node, key| node.get(key)).and_then(Node::text);
        if let Some(found) = found.filter(|found| *found != wanted) {
            let at = path.iter().fold(at, |at, key| at.key(key));
            let name = path.join(".");
            out.error(
                at,
                format!("`{name}` cannot be `{found}`"),
                format!("ks-installer reads `{wanted}` only"),
            );
        }
    }
    let spec = document.get("spec").map_or(Value::Null, Node::to_json);
    let mut spec = match spec {
        Value::Null => Map::new().into(),
        Value::Object(_) => spec,
        _ => {
            out.error(at.key("spec"), "`spec` must be a map of keys and values", "");
            return Map::new();
        }
    };
    let problems = ks_spec::check(&spec, &[]);
    for wrong in problems.wrong {
        let path = wrong.split(' ').next().unwrap_or_default();
        let at = path.split('.').fold(at, At::key);
        out.error(at, wrong.clone(), "");
    }
    ks_spec::migrate(&mut spec);
    spec.as_object().cloned().unwrap_or_default()
}

/// Parses the image: a path begins with `/` or `.`, which no name of a registry does.
fn image(text: Option<&str>, at: At<'_>, out: &mut Findings<'_>) -> Option<InstallerImage> {
    let text = text?;
    if text.starts_with(['/', '.']) {
        return Some(InstallerImage::Archive(PathBuf::from(text)));
    }
    match text.parse() {
        Ok(name) => Some(InstallerImage::Registry(name)),
        Err(hint) => {
            out.error(at, format!("`{text}` is not the name of an image"), hint);
            None
        }
    }
}

fn with_v(version: &str) -> String {
    if version.starts_with(|c: char| c.is_ascii_digit()) { format!("v{version}") } else { version.to_owned() }
}
