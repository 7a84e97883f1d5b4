//! Converts text into a [`Spec`]: finds the documents of a file, reads and checks them.

use crate::findings::{At, Findings};
use crate::normalise::{normalise, warn_of_fields_without_effect};
use crate::v1alpha2::{self, Cluster};
use crate::yaml::{self, Document, Node, Span};
use crate::{
    ConfigErrors, Diagnostic, KubeVersion, LocalFile, Overrides, Role, Spec, earlier, foreign, local_files,
    reader, schema, typing,
};
use std::net::Ipv4Addr;

/// Name of the cluster of [`Spec::all_in_one`].
const ALL_IN_ONE: &str = "all-in-one";

/// A configuration that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The wanted cluster.
    pub spec: Spec,
    /// The warnings, in the order of the file.
    pub warnings: Vec<Diagnostic>,
    /// Files on the control machine that the Cluster file names, in the order of the Cluster file.
    pub files: Vec<LocalFile>,
}

/// Reads a Cluster file. `file_name` is the name that the user gave and only appears in messages.
pub fn load(file_name: &str, text: &str, overrides: &Overrides) -> Result<Loaded, ConfigErrors> {
    let mut out = Findings::new(file_name, text);
    let parsed = yaml::parse(text);
    if let Some(error) = foreign_file(file_name, text, &parsed.documents) {
        return Err(error);
    }
    let schema = schema();
    let keys = typing::keys(&schema);
    for error in &parsed.errors {
        typing::report(error, &keys, &mut out);
    }
    let documents = sort_documents(&parsed.documents, &mut out);
    let Some(cluster) = documents.cluster else {
        let hint = format!("begin it with `apiVersion: {}` and `kind: Cluster`", v1alpha2::API_VERSION);
        out.missing(At::nowhere(), format!("{file_name} has no Cluster document"), hint);
        return Err(out.finish().expect_err("an error was added or found before"));
    };
    typing::check(&cluster.root, &keys, &mut out);
    let mut root = cluster.root.clone();
    earlier::translate(&mut root, &mut out);
    let json = reader::read(&root, &schema, &mut out);
    let at = At::root(&root);
    let document = serde_json::from_value::<Cluster>(json).unwrap_or_else(|error| {
        // Types and schema have the same source, so this is not the user's mistake.
        let message = format!("the document cannot be read: {error}");
        out.structure_error(root.span, message, "this is a mistake in kk; please report it");
        Cluster::default()
    });
    let second = documents.kubesphere.map(|document| &document.root);
    let spec = normalise(document, second, overrides, at, &mut out);
    warn_of_fields_without_effect(&root, &mut out);
    let files = local_files::of(&root, &out);
    Ok(Loaded { spec, warnings: out.finish()?, files })
}

/// A file of another tool is reported as one mistake, however many of its fields are unknown.
fn foreign_file(file_name: &str, text: &str, documents: &[Document]) -> Option<ConfigErrors> {
    let first = documents.iter().find(|document| !document.root.is_null())?;
    let (message, hint) = foreign::refusal(&first.root)?;
    let place = first.root.entry("apiVersion").map_or(first.root.span, |(_, version)| version.span);
    let mut out = Findings::new(file_name, text);
    out.error(Span { end_line: place.line, ..place }, message, hint);
    out.finish().err()
}

/// Adapts hints that name fields: without a file there are no fields to change.
fn for_no_file(mut errors: ConfigErrors) -> ConfigErrors {
    for hint in errors.errors.iter_mut().filter_map(|found| found.hint.as_mut()) {
        if !hint.contains("create config") && !hint.starts_with("give a version") {
            hint.push_str("; for that write a file (`kk create config`) and specify it with -f");
        }
    }
    errors
}

/// Whether a text is a Manifest, as opposed to a Cluster.
pub fn is_manifest(text: &str) -> bool {
    let documents = yaml::parse(text).documents;
    let kind =
        |kind: &str| documents.iter().any(|one| one.root.get("kind").and_then(Node::text) == Some(kind));
    kind("Manifest") && !kind("Cluster")
}

struct Documents<'a> {
    cluster: Option<&'a Document>,
    kubesphere: Option<&'a Document>,
}

/// Permits one Cluster, at most one `ClusterConfiguration` (or `ConfigMap`, its older form), and nothing else.
fn sort_documents<'a>(documents: &'a [Document], out: &mut Findings<'_>) -> Documents<'a> {
    let mut sorted = Documents { cluster: None, kubesphere: None };
    for document in documents.iter().filter(|document| !document.root.is_null()) {
        let root = &document.root;
        let Some((kind, name)) = root.get("kind").and_then(|kind| Some((kind.span, kind.text()?))) else {
            let hint = format!("begin it with `apiVersion: {}` and `kind: Cluster`", v1alpha2::API_VERSION);
            out.structure_error(root.span, "this document has no kind", hint);
            continue;
        };
        let slot = match name {
            "Cluster" => &mut sorted.cluster,
            "ClusterConfiguration" | "ConfigMap" => &mut sorted.kubesphere,
            _ => {
                let (message, hint) = other_kind(name);
                out.structure_error(kind, message, hint);
                continue;
            }
        };
        if let Some(first) = slot {
            let line = first.root.span.line;
            let message = format!("the file has two documents of this kind; the first begins in line {line}");
            out.structure_error(kind, message, "put each cluster into a file of its own");
        } else {
            *slot = Some(document);
        }
    }
    sorted
}

/// The message and the hint for a document of an unsupported kind.
fn other_kind(name: &str) -> (String, String) {
    match name {
        "Config" | "Inventory" | "Playbook" => (
            format!("documents of kind `{name}` are KubeKey 4's, which is not read here"),
            format!("describe the cluster as KubeKey 3 does: kind Cluster of {}", v1alpha2::API_VERSION),
        ),
        "Manifest" => (
            "a Manifest describes an offline bundle, not a cluster".to_owned(),
            "specify the file that contains the Cluster; a Manifest is made from it".to_owned(),
        ),
        _ => (
            format!("documents of kind `{name}` are not known"),
            reader::did_you_mean(name, ["Cluster", "ClusterConfiguration"].into_iter()).unwrap_or_else(
                || {
                    "a file contains a Cluster, and may contain a \
                                    ClusterConfiguration"
                        .to_owned()
                },
            ),
        ),
    }
}

impl Spec {
    /// A cluster of one host with every role: the control machine.
    ///
    /// Errors if the name or the address cannot belong to a node, or if the address is in a default range.
    pub fn all_in_one(hostname: &str, address: Ipv4Addr, version: KubeVersion) -> Result<Self, ConfigErrors> {
        let host = v1alpha2::Host {
            name: hostname.to_owned(),
            address: Some(address.to_string()),
            ..v1alpha2::Host::default()
        };
        let roles = [Role::Etcd, Role::ControlPlane, Role::Worker];
        let spec = v1alpha2::ClusterSpec {
            hosts: vec![host],
            role_groups: roles.map(|role| (role.to_string(), vec![hostname.to_owned()])).into(),
            ..v1alpha2::ClusterSpec::default()
        };
        let metadata = v1alpha2::Metadata { name: ALL_IN_ONE.to_owned(), ..v1alpha2::Metadata::default() };
        let cluster = Cluster { metadata, spec, ..Cluster::default() };
        let overrides = Overrides { kubernetes_version: Some(version), ..Overrides::default() };
        let mut out = Findings::new("", "");
        let mut spec = normalise(cluster, None, &overrides, At::nowhere(), &mut out);
        out.finish().map_err(for_no_file)?;
        for host in &mut spec.hosts {
            host.local = true;
        }
        Ok(spec)
    }
}
