//! `kk artifact inspect` and `kk artifact verify`: what a bundle holds, and whether it is whole.

use kk_artifact::bundle::{self, BundleIndex, Verified, VerifyingKey};
use serde_json::json;

use crate::args::{ArtifactInspect, ArtifactVerify, OutputFormat};
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

pub(super) fn verify(args: &ArtifactVerify, printer: &Printer) -> Result<(), Error> {
    let look = || {
        let key = args.signature.public_key.as_deref().map(VerifyingKey::read).transpose()?;
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
            signed.map_or_else(String::new, |comment| format!("its signature is right: {comment}\n"))
        ),
    })
}

fn tables(index: &BundleIndex) -> String {
    let size = |path: &str| index.files.iter().find(|file| file.path == path).map_or(0, |file| file.size);
    let mut programs = Table::new(["PROGRAM", "VERSION", "ARCH", "SIZE"]);
    for part in &index.programs {
        let bytes = text::bytes(size(&part.path));
        programs.row([part.name.clone(), part.version.clone(), part.arch.clone(), bytes]);
    }
    let mut images = Table::new(["ARCH", "DIGEST", "IMAGE"]);
    for part in &index.images {
        let arches: Vec<&str> = part.platforms.iter().map(|platform| platform.arch.as_str()).collect();
        // As much of it as tells one from another.
        let digest = part.digest.chars().take(19).collect();
        images.row([arches.join(", "), digest, part.name.clone()]);
    }
    format!(
        "{}\n{}\n{} in {}\n",
        programs.render(WIDEST),
        images.render(WIDEST),
        text::bytes(index.size()),
        text::count(index.files.len(), "file")
    )
}
