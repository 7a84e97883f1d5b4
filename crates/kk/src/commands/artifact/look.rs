//! `kk artifact inspect`, `diff` and `verify`: show the contents of a bundle, the differences between two bundles, and whether a
//! bundle is intact.

use std::collections::BTreeMap;

use kk_artifact::bundle::{self, BundleIndex, Difference, Verified, VerifyingKey};
use serde_json::json;

use crate::args::{ArtifactDiff, ArtifactInspect, ArtifactVerify, OutputFormat};
use crate::error::Error;
use crate::printer::{Printer, Table, text};

use super::failed;

const WIDEST: usize = 110;

pub(super) fn inspect(args: &ArtifactInspect, printer: &Printer) -> Result<(), Error> {
    let index = bundle::index(&args.artifact).map_err(|error| failed(&[error]))?;
    printer.print_stdout(&match args.output {
        OutputFormat::Json => format!("{:#}\n", json!(index)),
        OutputFormat::Text => tables(&index),
    })
}

pub(super) fn diff(args: &ArtifactDiff, printer: &Printer) -> Result<(), Error> {
    let index = |path| bundle::index(path).map_err(|error| failed(&[error]));
    let difference = Difference::between(&index(&args.base)?, &index(&args.artifact)?);
    printer.print_stdout(&match args.output {
        OutputFormat::Json => format!("{:#}\n", json!(difference)),
        OutputFormat::Text if difference.parts.is_empty() => "both bundles contain the same parts\n".into(),
        OutputFormat::Text => {
            let mut table = Table::new(["OLD", "NEW", "PART"]);
            let list = |versions: &[String]| match versions {
                [] => "-".to_owned(),
                versions => versions.join(", "),
            };
            for part in &difference.parts {
                table.row([list(&part.old), list(&part.new), part.part.clone()]);
            }
            format!(
                "{}\n{} are only in the newer bundle\n",
                table.render(WIDEST),
                text::bytes(difference.bytes)
            )
        }
    })
}

pub(super) fn verify(args: &ArtifactVerify, printer: &Printer) -> Result<(), Error> {
    let look = || {
        let key = args.public_key.as_deref().map(VerifyingKey::read).transpose()?;
        let signed = key.map(|key| key.verify(&args.artifact)).transpose()?;
        let verified = bundle::verify(&args.artifact)?;
        match signed {
            Some(signed) if signed.index != verified.index => Err(kk_artifact::Error::Signature {
                path: args.artifact.clone(),
                reason: "the file was replaced while it was read".to_owned(),
            }),
            signed => Ok((signed.map(|signed| signed.comment), verified)),
        }
    };
    let (signed, Verified { index, size }) = look().map_err(|error| failed(&[error]))?;
    let files = index.files.len();
    printer.print_stdout(&match args.output {
        OutputFormat::Json => {
            format!("{:#}\n", json!({"whole": true, "files": files, "size": size, "signed": signed}))
        }
        OutputFormat::Text => format!(
            "{} is whole: {} in {}\n{}",
            args.artifact.display(),
            text::count(files, "file"),
            text::bytes(size),
            signed.map_or_else(String::new, |comment| format!("its signature is valid: {comment}\n"))
        ),
    })
}

fn tables(index: &BundleIndex) -> String {
    let mut programs = Table::new(["PROGRAM", "VERSION", "ARCH", "SIZE"]);
    for part in &index.programs {
        let bytes = text::bytes(size_of(index, &part.path));
        programs.row([part.name.clone(), part.version.clone(), part.arch.clone(), bytes]);
    }
    let mut images = Table::new(["ARCH", "DIGEST", "IMAGE"]);
    for part in &index.images {
        let arches: Vec<&str> = part.platforms.iter().map(|platform| platform.arch.as_str()).collect();
        // Enough characters to distinguish digests.
        let digest = part.digest.chars().take(19).collect();
        images.row([arches.join(", "), digest, part.name.clone()]);
    }
    format!(
        "{}\n{}\n{}{}{} in {}\n",
        programs.render(WIDEST),
        images.render(WIDEST),
        systems(index).map_or_else(String::new, |table| table.render(WIDEST) + "\n"),
        charts_and_manifests(index),
        text::bytes(index.size()),
        text::count(index.files.len(), "file")
    )
}

/// A row for each operating system whose packages are included.
fn systems(index: &BundleIndex) -> Option<Table<5>> {
    let mut all: BTreeMap<[&String; 3], (usize, u64)> = BTreeMap::new();
    for part in &index.packages {
        let (count, bytes) = all.entry([&part.system, &part.system_version, &part.arch]).or_default();
        *count += 1;
        *bytes += size_of(index, &part.path);
    }
    let mut table = Table::new(["SYSTEM", "VERSION", "ARCH", "PACKAGES", "SIZE"]);
    for (system, (count, bytes)) in &all {
        let [id, version, arch] = system.map(String::clone);
        table.row([id, version, arch, count.to_string(), text::bytes(*bytes)]);
    }
    (!all.is_empty()).then_some(table)
}

/// A table for each of these kinds that the bundle contains.
fn charts_and_manifests(index: &BundleIndex) -> String {
    let mut charts = Table::new(["CHART", "VERSION", "SIZE", "SOURCE"]);
    for part in &index.charts {
        let bytes = text::bytes(size_of(index, &part.path));
        charts.row([part.name.clone(), part.version.clone(), bytes, part.source.clone()]);
    }
    let mut manifests = Table::new(["MANIFEST", "SIZE", "SOURCE"]);
    for part in &index.manifests {
        let bytes = text::bytes(size_of(index, &part.path));
        manifests.row([part.name.clone(), bytes, part.source.clone()]);
    }
    let mut shown = String::new();
    if !index.charts.is_empty() {
        shown += &(charts.render(WIDEST) + "\n");
    }
    if !index.manifests.is_empty() {
        shown += &(manifests.render(WIDEST) + "\n");
    }
    shown
}

fn size_of(index: &BundleIndex, path: &str) -> u64 {
    index.file(path).map_or(0, |file| file.size)
}
