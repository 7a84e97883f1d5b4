//! Packages of a distribution that contain the tools a host needs, and whether a bundle has them.

pub(super) mod install_packages;
mod transaction;

use std::collections::BTreeSet;

use kk_artifact::bundle::HostPackages;
use kk_config::{Host, OperatingSystem};
use kk_engine::Facts;

use super::check;
use crate::model::inputs::Inputs;
use install_packages::UNFINISHED;

/// A tool, and its package for dpkg, for rpm of the Red Hat family (or a name that a package provides), and for zypper.
const PACKAGES: [(&str, [&str; 3]); 11] = [
    ("tar", ["tar", "tar", "tar"]),
    ("mount", ["mount", "util-linux", "util-linux"]),
    ("umount", ["mount", "util-linux", "util-linux"]),
    ("ip", ["iproute2", "iproute", "iproute2"]),
    ("iptables", ["iptables", "iptables", "iptables"]),
    ("conntrack", ["conntrack", "conntrack-tools", "conntrack-tools"]),
    ("socat", ["socat", "socat", "socat"]),
    ("modprobe", ["kmod", "kmod", "kmod"]),
    ("nsenter", ["util-linux", "util-linux", "util-linux"]),
    ("ipset", ["ipset", "ipset", "ipset"]),
    ("ipvsadm", ["ipvsadm", "ipvsadm", "ipvsadm"]),
];

/// The command that installs packages by hand on a host with `os_id` as `ID` in os-release, and the column of the package names.
fn by_hand(os_id: &str) -> (&'static str, usize) {
    match os_id {
        "debian" | "ubuntu" | "linuxmint" | "raspbian" | "uos" | "deepin" => ("apt-get install", 0),
        "opensuse-leap" | "opensuse-tumbleweed" | "sles" | "sled" => ("zypper install", 2),
        id if kk_config::has_dnf(id) => ("dnf install", 1),
        _ => ("install them with the host's package manager; Debian calls the packages", 0),
    }
}

/// How to install these tools on a host whose `ID` in os-release is `os_id`.
pub(super) fn hint(os_id: &str, programs: &[&str]) -> String {
    let command = by_hand(os_id).0;
    format!("{command} {}", Vec::from_iter(names(os_id, programs)).join(" "))
}

/// The packages that contain these tools.
fn names(os_id: &str, programs: &[&str]) -> BTreeSet<&'static str> {
    let column = by_hand(os_id).1;
    let package =
        |program: &&str| PACKAGES.iter().find(|(name, _)| name == program).map(|(_, names)| names[column]);
    programs.iter().filter_map(package).collect()
}

/// The packages that hosts with this system need.
pub fn host_packages(system: &OperatingSystem) -> BTreeSet<String> {
    let column = by_hand(&system.id).1;
    PACKAGES.iter().map(|(_, names)| names[column].to_owned()).collect()
}

/// Packages for a host that lacks tools.
pub(super) struct Chosen {
    /// Their names.
    pub names: BTreeSet<&'static str>,
    /// The packages of its operating system.
    pub from: HostPackages,
}

/// The packages of the bundle that contain the missing tools of a host, or why that is impossible. `None` if nothing is missing,
/// or if the user did not request packages.
pub(super) fn of_bundle(inputs: &Inputs, host: &Host, facts: &Facts) -> Option<Result<Chosen, String>> {
    let bundle = inputs.options.bundle.as_ref().filter(|_| inputs.options.with_packages)?;
    let programs = check::missing_tools(inputs, host, facts);
    let unfinished = facts.answer(&UNFINISHED).answered() == Some(true);
    if programs.is_empty() && !unfinished {
        return None;
    }
    let names = names(&facts.os_id, &programs);
    let arch = inputs.arch(host);
    let system = format!("{} {} {arch}", facts.os_id, facts.os_version);
    let Some(from) = bundle.packages(&facts.os_id, &facts.os_version, arch) else {
        return Some(Err(format!("the bundle has no packages for {system}")));
    };
    if from.is_rpm() && !facts.tools.contains_key("dnf") {
        return Some(Err("dnf, which installs the packages of the bundle, is missing".to_owned()));
    }
    let absent: Vec<&str> = names.iter().copied().filter(|name| !from.has(name)).collect();
    if absent.is_empty() {
        return Some(Ok(Chosen { names, from }));
    }
    Some(Err(format!("the bundle lacks packages for {system}: {}", absent.join(", "))))
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use kk_artifact::bundle::{Bundle, BundleIndex, FilePart, PackagePart};
    use kk_engine::Severity;

    use super::*;
    use crate::{capabilities::os::check::NODE_TOOLS, model::options::Options, testing};

    /// A bundle with these packages for Debian 12 on amd64.
    fn bundle(names: &[&str]) -> Arc<Bundle> {
        bundle_of("debian", "12", names, "Packages", "deb")
    }

    fn bundle_of(system: &str, version: &str, names: &[&str], list: &str, ending: &str) -> Arc<Bundle> {
        let directory = format!("packages/{system}/{version}/amd64");
        let part = |name: &&str| PackagePart {
            system: system.into(),
            system_version: version.into(),
            arch: "amd64".into(),
            name: (*name).to_owned(),
            version: "1".into(),
            provides: Vec::new(),
            path: format!("{directory}/{name}_1_amd64.{ending}"),
        };
        // As in the Red Hat family since version 9.
        let part = |name: &&str| match *name {
            "iptables" if ending == "rpm" => {
                PackagePart { name: "iptables-nft".into(), provides: vec!["iptables".into()], ..part(name) }
            }
            _ => part(name),
        };
        let packages: Vec<PackagePart> = names.iter().map(part).collect();
        let paths = packages.iter().map(|part| part.path.clone()).chain([format!("{directory}/{list}")]);
        let files = paths.map(|path| FilePart { path, size: 7, sha256: "0".repeat(64) }).collect();
        let (programs, images, charts, manifests) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (format, name) = (2, String::new());
        let index = BundleIndex { format, name, programs, images, packages, charts, manifests, files };
        Arc::new(Bundle::with_index(Path::new("x.tar.zst"), index))
    }

    #[tokio::test]
    async fn what_a_host_lacks_is_installed_from_the_bundle_or_refused() {
        let both = &["socat", "conntrack"][..];
        let none = "the bundle has no packages for";
        for (with_packages, system, in_bundle, missing, severity, words, change) in [
            (
                true,
                "debian 12",
                both,
                both,
                Severity::Adapted,
                "missing: conntrack, socat",
                "install conntrack, socat from the bundle",
            ),
            (
                true,
                "debian 12",
                both,
                &["socat"][..],
                Severity::Adapted,
                "missing: socat",
                "install socat from the bundle",
            ),
            (
                true,
                "debian 12",
                &["socat"],
                both,
                Severity::Error,
                "lacks packages for debian 12 amd64: conntrack",
                "",
            ),
            (true, "debian 11", both, both, Severity::Error, none, ""),
            (true, "rocky 9", both, both, Severity::Error, none, ""),
            (false, "debian 12", both, both, Severity::Error, "missing: conntrack, socat", ""),
        ] {
            let spec = testing::sample("all-in-one.yaml");
            let directory = tempfile::tempdir().unwrap();
            let options = Options { bundle: Some(bundle(in_bundle)), with_packages, ..Options::default() };
            let session = testing::session_with(spec.clone(), directory.path(), options);
            let mut fresh = testing::fresh(&spec);
            let facts = fresh.facts.values_mut().next().unwrap();
            let (id, version) = system.split_once(' ').unwrap();
            (facts.os_id, facts.os_version) = (id.to_owned(), version.to_owned());
            facts.tools.retain(|tool, _| !missing.contains(&tool.as_str()));
            let create = session.plan_create(&fresh).await.unwrap();
            let found: Vec<_> =
                create.findings.iter().filter(|one| one.message.starts_with("missing: ")).collect();
            assert_eq!(found.len(), 1, "{system}: {found:?}");
            assert_eq!(found[0].severity, severity, "{system}: {found:?}");
            assert!(found[0].message.contains(words), "{system}: {found:?}");
            let changes = create.plan.changes().into_iter().flat_map(|task| task.changes);
            let changes: Vec<String> = changes.filter(|change| change.ends_with("from the bundle")).collect();
            assert_eq!(changes.join(""), change, "{system}");
        }
    }

    /// The names are the Red Hat family's, and a package that provides the name of another counts as that package.
    #[tokio::test]
    async fn rpms_of_the_bundle_are_found_by_what_they_provide() {
        let spec = testing::sample("all-in-one.yaml");
        let directory = tempfile::tempdir().unwrap();
        let bundle = bundle_of("rocky", "9", &["iptables", "conntrack-tools"], "repodata/repomd.xml", "rpm");
        let options = Options { bundle: Some(bundle), with_packages: true, ..Options::default() };
        let session = testing::session_with(spec.clone(), directory.path(), options);
        let mut fresh = testing::fresh(&spec);
        let facts = fresh.facts.values_mut().next().unwrap();
        (facts.os_id, facts.os_version) = ("rocky".into(), "9".into());
        facts.tools.retain(|tool, _| !["iptables", "conntrack"].contains(&tool.as_str()));
        facts.tools.remove("dnf");
        let refused = session.plan_create(&fresh).await.unwrap();
        assert!(refused.findings.iter().any(|one| one.message.contains("dnf, which")));
        let facts = fresh.facts.values_mut().next().unwrap();
        facts.tools.insert("dnf".into(), "/usr/bin/dnf".into());
        let create = session.plan_create(&fresh).await.unwrap();
        let changes = create.plan.changes().into_iter().flat_map(|task| task.changes);
        let changes: Vec<String> = changes.filter(|change| change.ends_with("from the bundle")).collect();
        assert_eq!(changes, ["install conntrack-tools, iptables from the bundle"]);
    }

    /// The next run configures packages that a killed run has unpacked, even if no tool is missing.
    #[tokio::test]
    async fn an_installation_that_was_killed_is_finished() {
        for (unfinished, expected) in [("yes\n", 1), ("no\n", 0)] {
            let spec = testing::sample("all-in-one.yaml");
            let directory = tempfile::tempdir().unwrap();
            let options =
                Options { bundle: Some(bundle(&["socat"])), with_packages: true, ..Options::default() };
            let session = testing::session_with(spec.clone(), directory.path(), options);
            let mut fresh = testing::fresh(&spec);
            let facts = fresh.facts.values_mut().next().unwrap();
            (facts.os_id, facts.os_version) = ("debian".into(), "12".into());
            facts.reply(&UNFINISHED, unfinished);
            let create = session.plan_create(&fresh).await.unwrap();
            assert!(!create.findings.iter().any(|one| one.message.starts_with("missing: ")));
            let changes = create.plan.changes().into_iter().flat_map(|task| task.changes);
            assert_eq!(changes.filter(|change| change.contains("finish the installation")).count(), expected);
        }
    }

    #[test]
    fn each_family_has_its_own_names() {
        let missing = ["conntrack", "ip", "mount", "umount"];
        for (os, said) in [
            ("ubuntu", "apt-get install conntrack iproute2 mount"),
            ("rocky", "dnf install conntrack-tools iproute util-linux"),
            ("euleros", "dnf install conntrack-tools iproute util-linux"),
            ("sles", "zypper install conntrack-tools iproute2 util-linux"),
        ] {
            assert_eq!(hint(os, &missing), said);
        }
        assert!(hint("plan9", &missing).contains("package manager"));
    }

    #[test]
    fn every_tool_has_a_package() {
        for tool in NODE_TOOLS {
            assert!(PACKAGES.iter().any(|(name, _)| *name == tool), "{tool}");
        }
    }
}
