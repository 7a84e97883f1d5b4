//! `kk create config`: writes a commented file to start from, or the file of a running cluster. The file is written completely or not at all, and readable only by
//! its owner, because users add passwords to it.

mod from_cluster;

use std::path::{Path, PathBuf};

use kk_config::{ConfigErrors, SampleStyle};
use kk_connector::quote;

use crate::args::{CreateConfig, Style};
use crate::error::Error;
use crate::printer::Printer;

use super::new_file;

pub(super) async fn run(args: &CreateConfig, printer: &Printer) -> Result<(), Error> {
    let path = args.filename.clone().unwrap_or_else(|| PathBuf::from(format!("config-{}.yaml", args.name)));
    let text = if args.from_cluster {
        from_cluster::text(&args.name, args.kubeconfig.as_deref(), printer).await?
    } else {
        sample(args, &path)?
    };
    if path.as_os_str() == "-" {
        return printer.print_stdout(&text);
    }
    new_file::write(&path, &text, args.overwrite)?;
    let file = path.display();
    let what = if args.from_cluster { "the SSH data of your hosts" } else { "your hosts" };
    printer
        .message(&format!("wrote {file}\nfill in {what}, then run: kk create cluster -f {file} --dry-run"));
    Ok(())
}

fn sample(args: &CreateConfig, path: &Path) -> Result<String, Error> {
    let version = args.with_kubernetes.unwrap_or_default();
    let mut text = kk_config::sample(&args.name, version, style(args.style), &quote(&path.to_string_lossy()))
        .map_err(|errors| Error::Config(without_places(errors)))?;
    if let Some(version) = &args.with_kubesphere {
        text += &kk_config::kubesphere_sample(version);
    }
    Ok(text)
}

/// The text is not a file of the user, so the errors concern the command line.
fn without_places(mut errors: ConfigErrors) -> ConfigErrors {
    errors.errors.iter_mut().chain(&mut errors.warnings).for_each(|found| found.place = None);
    errors
}

fn style(style: Style) -> SampleStyle {
    match style {
        Style::AllInOne => SampleStyle::AllInOne,
        Style::ThreeNodes => SampleStyle::ThreeNodes,
        Style::Ha => SampleStyle::HighAvailability,
        Style::Offline => SampleStyle::Offline,
    }
}
