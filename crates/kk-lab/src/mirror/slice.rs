//! The slice of Debian below kube-proxy and flanneld in their images: iptables with its extensions and the libraries it loads,
//! `nft`, `ipset` with the names of protocols, `sh`, `cp`, `ip`, `conntrack`, `modprobe`. Cut out of the hosts' root file system,
//! about 17 MB.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::mirror::image::{Files, Source};
use crate::sys::run::{command, output};

const PROGRAMS: [&str; 14] = [
    "usr/sbin/xtables-nft-multi",
    "usr/sbin/xtables-legacy-multi",
    "usr/sbin/nft",
    "usr/sbin/conntrack",
    "usr/sbin/ipset",
    "usr/sbin/sysctl",
    "usr/bin/dash",
    "usr/bin/ip",
    "usr/bin/kmod",
    "usr/bin/cp",
    "usr/bin/cat",
    "usr/bin/ls",
    "usr/bin/grep",
    "usr/bin/sleep",
];
const IPTABLES: [&str; 6] =
    ["iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"];

/// A link and its target. kube-proxy cleans up nothing of IPVS when there is no `modprobe`.
const MODPROBE: (&str, &str) = ("usr/sbin/modprobe", "../bin/kmod");

/// Names that ipset and nft read.
const FILES: [&str; 2] = ["etc/protocols", "etc/services"];

/// Changes when anything else is to be cut out.
pub(crate) fn recipe() -> String {
    [&PROGRAMS[..], &IPTABLES, &FILES, &[MODPROBE.0, MODPROBE.1]].concat().join(" ")
}

/// Cuts the slice out of the root file system `base`.
pub(crate) fn cut(base: &Path) -> Result<Files> {
    let mut files = Files::new();
    for (link, target) in
        [("lib", "usr/lib"), ("lib64", "usr/lib64"), ("sbin", "usr/sbin"), ("bin", "usr/bin")]
    {
        files.insert(link.into(), Source::Link(target.into()));
    }
    for name in IPTABLES {
        files.insert(format!("usr/sbin/{name}"), Source::Link("xtables-nft-multi".into()));
    }
    files.insert("usr/bin/sh".into(), Source::Link("dash".into()));
    files.insert(MODPROBE.0.into(), Source::Link(MODPROBE.1.into()));
    let mut wanted: Vec<String> = PROGRAMS.iter().map(|path| (*path).to_owned()).collect();
    wanted.extend(extensions(base)?);
    let libraries = libraries(base, &wanted)?;
    for path in FILES.into_iter().chain(wanted.iter().chain(&libraries).map(String::as_str)) {
        take(base, path, &mut files)?;
    }
    Ok(files)
}

/// iptables' own loadable extensions.
fn extensions(base: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for directory in fs::read_dir(base.join("usr/lib"))?.flatten().map(|entry| entry.path().join("xtables")) {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            found.push(relative(base, &entry.path())?);
        }
    }
    if found.is_empty() {
        bail!("{} has no iptables extensions", base.display());
    }
    Ok(found)
}

/// Libraries that the files load, as the loader reports them.
fn libraries(base: &Path, files: &[String]) -> Result<BTreeSet<String>> {
    let absolute = files.iter().map(|path| format!("/{path}"));
    let said =
        output(command("chroot", [base]).arg("ldd").args(absolute)).context("cannot list libraries")?;
    let lines = said.lines().filter(|line| !line.ends_with(':'));
    let words =
        lines.flat_map(str::split_whitespace).filter(|word| word.starts_with('/') && word.contains(".so"));
    // Debian's /lib is a link to /usr/lib, in the image too.
    Ok(words
        .map(|word| word.trim_start_matches('/'))
        .map(|path| path.strip_prefix("usr/").unwrap_or(path))
        .map(|path| format!("usr/{path}"))
        .collect())
}

/// Adds a file to the slice; for a link, its target, too.
fn take(base: &Path, path: &str, files: &mut Files) -> Result<()> {
    if files.contains_key(path) {
        return Ok(());
    }
    let whole = base.join(path);
    let kind = fs::symlink_metadata(&whole).with_context(|| format!("the root file system lacks {path}"))?;
    if !kind.is_symlink() {
        files.insert(path.to_owned(), Source::File(whole));
        return Ok(());
    }
    let target = fs::read_link(&whole)?;
    let next = target_of(Path::new(path), &target)?;
    files.insert(path.to_owned(), Source::Link(target.display().to_string()));
    take(base, &next, files)
}

/// The target of a link inside the root, as a path from the root.
fn target_of(link: &Path, target: &Path) -> Result<String> {
    let start = if target.is_absolute() { Path::new("") } else { link.parent().unwrap_or(Path::new("")) };
    let mut path = PathBuf::new();
    for part in start.components().chain(target.components()) {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => _ = path.pop(),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    let text = path.to_str().context("a link that is no text")?.to_owned();
    Ok(if text.starts_with("lib") { format!("usr/{text}") } else { text })
}

fn relative(base: &Path, path: &Path) -> Result<String> {
    Ok(path.strip_prefix(base)?.to_str().context("a file name that is no text")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_inside_the_root() {
        for (link, target, leads_to) in [
            ("usr/lib/x/liba.so.1", "liba.so.1.2", "usr/lib/x/liba.so.1.2"),
            ("usr/lib64/ld.so", "/lib/x/ld.so", "usr/lib/x/ld.so"),
            ("usr/lib64/ld.so", "../lib/x/ld.so", "usr/lib/x/ld.so"),
        ] {
            assert_eq!(target_of(Path::new(link), Path::new(target)).unwrap(), leads_to);
        }
    }
}
