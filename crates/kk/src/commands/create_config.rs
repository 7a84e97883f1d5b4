//! `kk create config`: writes a commented file to start from. The file is written completely or not at all, and readable only by
//! its owner, because users add passwords to it.

use std::path::PathBuf;

use kk_config::{ConfigErrors, SampleStyle};
use kk_connector::quote;

use crate::args::{CreateConfig, Style};
use crate::error::Error;
use crate::printer::Printer;

use super::new_file;

pub(super) fn run(args: &CreateConfig, printer: &Printer) -> Result<(), Error> {
    let version = args.with_kubernetes.unwrap_or_default();
    let path = args.filename.clone().unwrap_or_else(|| PathBuf::from(format!("config-{}.yaml", args.name)));
    let mut text = kk_config::sample(&args.name, version, style(args.style), &quote(&path.to_string_lossy()))
        .map_err(|errors| Error::Config(without_places(errors)))?;
    if let Some(version) = &args.with_kubesphere {
        text += &kk_config::kubesphere_sample(version);
    }
    if path.as_os_str() == "-" {
        return printer.print_stdout(&text);
    }
    new_file::write(&path, &text, args.overwrite)?;
    let file = path.display();
    printer.message(&format!(
        "wrote {file}\nfill in your hosts, then run: kk create cluster -f {file} --dry-run"
    ));
    Ok(())
}

/// The sample is not a file of the user, so the errors concern the command line.
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
