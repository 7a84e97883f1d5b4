//! `spec.operatingSystems` of a Manifest: packages for hosts.

use std::collections::BTreeSet;

use crate::findings::{At, Findings};
use crate::spec::{Arch, OperatingSystem};
use crate::v1alpha2;

/// An entry without an architecture is for all architectures of the Manifest.
pub(super) fn operating_systems(
    doc: Vec<v1alpha2::OperatingSystem>,
    arches: &BTreeSet<Arch>,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> Vec<OperatingSystem> {
    let mut all: Vec<OperatingSystem> = Vec::new();
    for (i, one) in doc.into_iter().enumerate() {
        let at = at.item(i);
        if one.kind.as_deref().is_some_and(|kind| kind != "linux") {
            out.error(at.key("type"), "only hosts of the type `linux` are known", "remove this entry");
            continue;
        }
        let of: Vec<Arch> = one.arch.map_or_else(|| arches.iter().copied().collect(), |arch| vec![arch]);
        for arch in of {
            let Some(system) = operating_system(&one, arch, at, out) else { break };
            let is_same = |known: &OperatingSystem| known.to_string() == system.to_string();
            if all.iter().any(is_same) {
                out.error(at, format!("{system} is there twice"), "remove one of them");
            } else {
                all.push(system);
            }
        }
    }
    all
}

/// Checks an entry. `None`: an error was reported.
fn operating_system(
    doc: &v1alpha2::OperatingSystem,
    arch: Arch,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> Option<OperatingSystem> {
    let field = |key: &str, value: &Option<String>, out: &mut Findings<'_>| {
        let text = value.clone().unwrap_or_default();
        if text.is_empty() {
            out.missing(
                at,
                format!("an operating system has no {key}"),
                format!("add `{key}` as its os-release has it"),
            );
            return None;
        }
        if !text.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c)) {
            out.error(
                at.key(key),
                format!("`{text}` cannot be the {key} of an operating system"),
                "give it as its os-release has it",
            );
            return None;
        }
        Some(text)
    };
    let (id, version) = (field("id", &doc.id, out), field("version", &doc.version, out));
    let (id, version) = (id?, version?);
    let of = &doc.repository;
    let from = at.key("repository");
    let mut is_right = true;
    let (sources, keyring) = (of.sources.clone(), of.keyring.clone());
    let system = OperatingSystem { id, version, arch, sources, keyring, packages: BTreeSet::new() };
    let (fits, hint): (fn(&str) -> bool, _) = if system.is_rpm() {
        (
            is_repository,
            "give the address of a repository, such as `https://mirror.example/9/BaseOS/x86_64/os/`",
        )
    } else {
        (is_source, "give `URI SUITE COMPONENT…`, such as `http://mirror.example/debian bookworm main`")
    };
    for (i, source) in of.sources.iter().enumerate().filter(|(_, source)| !fits(source)) {
        let message = format!("`{source}` is not a source of packages");
        out.error(from.key("sources").item(i), message, hint);
        is_right = false;
    }
    let is_path = |path: &String| {
        path.starts_with('/') && !path.contains([' ', ']', ',']) && !path.contains(char::is_control)
    };
    if let Some(path) = of.keyring.as_ref().filter(|path| !is_path(path)) {
        let message = format!("`{path}` cannot be a keyring");
        out.error(from.key("keyring"), message, "give the absolute path of a file on this machine");
        is_right = false;
    }
    if [&of.iso.local_path, &of.iso.url].into_iter().flatten().any(|text| !text.is_empty()) {
        let message = "without effect: repository.iso";
        out.warning(from.name("iso"), message, "the packages are collected from the repository itself");
    }
    let name = format!("{} {}", system.id, system.version);
    if system.is_zypper() {
        let hint = "remove this entry, and install the packages of these hosts by other means";
        out.error(at, format!("packages for zypper are not supported: {name}"), hint);
        return None;
    }
    if system.is_rpm() {
        let repository = [
            (of.sources.is_empty(), "sources", "addresses of its repositories"),
            (of.keyring.is_none(), "keyring", "a file with the keys that sign its packages"),
        ];
        for (_, key, what) in repository.into_iter().filter(|(is_missing, ..)| *is_missing) {
            let hint = format!("add `repository.{key}`: {what}");
            out.missing(at, format!("{name} has no repository.{key}"), hint);
            is_right = false;
        }
        return is_right.then_some(system);
    }
    if is_right && system.sources.is_empty() && system.code_name().is_none() {
        let hint = "add `repository: {sources: [\"URI SUITE COMPONENT…\"]}`";
        out.error(at, format!("the release of {name} is not known, nor where its packages are"), hint);
        return None;
    }
    is_right.then_some(system)
}

/// Whether a text is one line with an address that apt fetches by itself: other methods of apt may run commands.
fn is_source(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    let is_word = |word: &&str| {
        !word.is_empty() && word.bytes().all(|c| c.is_ascii_graphic() && !b"[]#\"'".contains(&c))
    };
    let is_address =
        ["http://", "https://", "file:/", "copy:/"].iter().any(|scheme| text.starts_with(scheme));
    let has_suite = words.len() >= 3 || words.get(1).is_some_and(|suite| suite.ends_with('/'));
    is_address && has_suite && words.iter().all(is_word)
}

/// Whether a text is one word without variables of dnf.
fn is_repository(text: &str) -> bool {
    let is_address = ["http://", "https://", "file:///"].iter().any(|scheme| text.starts_with(scheme));
    is_address && text.bytes().all(|c| c.is_ascii_graphic() && !b"$,\"'".contains(&c))
}
