//! `kk status` and `kk certs check-expiration`: what the hosts say, as a table or as one JSON document. Nothing is changed, and
//! no record of it is kept.

use kk_cluster::{Options, Probed, Session, Settings};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::{LookOptions, OutputFormat};
use crate::error::{self, Error};
use crate::exit::ExitStatus;
use crate::printer::{Printer, status};

use super::{
    load,
    run::{any_answered, name_left},
};

pub(super) async fn status(options: &LookOptions, printer: &Printer) -> Result<ExitStatus, Error> {
    let (session, probed) = look(options, printer).await?;
    let status = session.status(&probed).await?;
    show(options, printer, &json!(status), &status::render(&status))?;
    // The table names the hosts that did not answer.
    Ok(if status.is_well() { ExitStatus::Ok } else { ExitStatus::Failed })
}

pub(super) async fn check_expiration(options: &LookOptions, printer: &Printer) -> Result<ExitStatus, Error> {
    let (session, probed) = look(options, printer).await?;
    let all = session.certificates(&probed).await?;
    show(options, printer, &json!(all), &status::certificates(&all))?;
    name_left(&probed)?;
    Ok(ExitStatus::Ok)
}

async fn look(options: &LookOptions, printer: &Printer) -> Result<(Session, Probed), Error> {
    let input = load::input(Some(&options.filename), None)?;
    for warning in &input.warnings {
        printer.warning(error::warning(warning));
    }
    let settings = Settings {
        workdir: options.workdir.clone(),
        templates: None,
        host_keys: options.host_key_checking.into(),
        options: Options::default(),
    };
    let session = Session::open(input.spec, settings)?;
    // Nothing is changed, so a Ctrl-C ends the program at once.
    let probed = any_answered(session.probe_for_create(&CancellationToken::new(), |_| {}).await?)?;
    Ok((session, probed))
}

fn show(options: &LookOptions, printer: &Printer, value: &Value, text: &str) -> Result<(), Error> {
    match options.output {
        OutputFormat::Text => printer.print_stdout(text),
        OutputFormat::Json => printer.print_stdout(&format!("{value:#}\n")),
    }
}
