//! Files and directories on the control machine that a Cluster file names. The caller checks whether they exist, because this
//! crate does not access the disk.

use crate::Place;
use crate::findings::Findings;
use crate::yaml::{Node, Value};

/// A file or a directory on the control machine that the Cluster file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFile {
    /// The path as written.
    pub path: String,
    /// Whether a leading `~/` is the home directory.
    pub expands_home: bool,
    /// The position of the path in the Cluster file.
    pub place: Place,
}

/// Fields with paths on the control machine. `[]` stands for each item of a list, `*` for each value of a map.
const FIELDS: [&[&str]; 10] = [
    &["spec", "hosts", "[]", "privateKeyPath"],
    &["spec", "hosts", "[]", "bastion", "privateKeyPath"],
    &["spec", "bastion", "privateKeyPath"],
    &["spec", "registry", "auths", "*", "certsPath"],
    &["spec", "download", "caFile"],
    &["spec", "download", "catalogue"],
    &["spec", "kubesphere", "image"],
    &["spec", "addons", "[]", "sources", "yaml", "path", "[]"],
    &["spec", "addons", "[]", "sources", "chart", "path"],
    &["spec", "addons", "[]", "sources", "chart", "valuesFile"],
];
/// The only one of these fields in which `~/` is the home directory.
const KEY: &str = "privateKeyPath";
/// The only one of these fields that may also name an image of a registry.
const IMAGE: &str = "image";

/// All files, in the order of the Cluster file.
pub(crate) fn of(root: &Node, findings: &Findings<'_>) -> Vec<LocalFile> {
    let mut found = Vec::new();
    for field in FIELDS {
        let mut nodes = Vec::new();
        collect(root, field, &mut nodes);
        let may_be_image = field.last() == Some(&IMAGE);
        nodes.retain(|(node, path)| {
            !node.is_null()
                && !path.is_empty()
                && !path.contains("://")
                && (!may_be_image || path.starts_with(['/', '.']))
        });
        found.extend(nodes.into_iter().map(|(node, path)| {
            let file = LocalFile {
                path: path.to_owned(),
                expands_home: field.last() == Some(&KEY),
                place: findings.place(node.span, &format!("`{path}`")),
            };
            (node.span, file)
        }));
    }
    found.sort_by_key(|(span, _)| *span);
    found.into_iter().map(|(_, file)| file).collect()
}

fn collect<'a>(node: &'a Node, field: &[&str], found: &mut Vec<(&'a Node, &'a str)>) {
    let Some((first, rest)) = field.split_first() else {
        found.extend(node.text().map(|text| (node, text)));
        return;
    };
    match (&node.value, *first) {
        (Value::List(items), "[]") => items.iter().for_each(|item| collect(item, rest, found)),
        (Value::Map(entries), "*") => entries.iter().for_each(|(_, value)| collect(value, rest, found)),
        (Value::Map(_), key) => node.get(key).into_iter().for_each(|value| collect(value, rest, found)),
        _ => {}
    }
}
