//! `kk version`: prints the version of kk, and the Kubernetes version that it installs.

use kk_artifact::{Catalogue, Component};
use kk_config::{Arch, DEFAULT_KUBERNETES_VERSION, NEWEST_MINOR, OLDEST_MINOR};
use serde_json::json;

use crate::args::{Version, VersionFormat};
use crate::error::Error;
use crate::printer::Printer;

const PROGRAM: &str = env!("CARGO_PKG_VERSION");

pub(super) fn run(args: &Version, printer: &Printer) -> Result<(), Error> {
    if args.show_supported_k8s {
        return printer.print_stdout(&known_versions());
    }
    let (oldest, newest) = (format!("v1.{OLDEST_MINOR}"), format!("v1.{NEWEST_MINOR}"));
    let text = match args.output {
        None => format!(
            "kk {PROGRAM}, installs Kubernetes {oldest} to {newest} (default {DEFAULT_KUBERNETES_VERSION})\n"
        ),
        Some(VersionFormat::Short) => format!("{PROGRAM}\n"),
        Some(VersionFormat::Json) => {
            let kubernetes =
                json!({ "default": DEFAULT_KUBERNETES_VERSION, "oldest": oldest, "newest": newest });
            format!("{:#}\n", json!({ "version": PROGRAM, "kubernetes": kubernetes }))
        }
        Some(VersionFormat::Yaml) => format!(
            "version: {PROGRAM}\nkubernetes:\n  default: {DEFAULT_KUBERNETES_VERSION}\n  oldest: {oldest}\n  newest: {newest}\n"
        ),
    };
    printer.print_stdout(&text)
}

/// Versions of Kubernetes whose checksums are built in, one per line. They are the same for all architectures.
fn known_versions() -> String {
    let catalogue = Catalogue::builtin();
    catalogue.versions(Component::Kubeadm, Arch::Amd64).map(|version| format!("v{version}\n")).collect()
}
