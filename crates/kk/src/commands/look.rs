//! `kk status`, `kk etcd status` and `kk certs check-expiration`: show the answers of the hosts as a table or as one JSON
//! document. They change nothing and write no journal or log.

use std::collections::BTreeSet;

use kk_cluster::{MemberDetail, Options, Probed, Session, Settings};
use kk_engine::{escape_controls, escape_json_controls};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::{LookOptions, OutputFormat};
use crate::error::{self, Error};
use crate::exit::ExitStatus;
use crate::printer::{Printer, status};

use super::{
    load,
    run::{any_answered, learnt, name_left, unchecked_keys},
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

pub(super) async fn etcd_status(options: &LookOptions, printer: &Printer) -> Result<ExitStatus, Error> {
    let session = open(options, printer)?;
    let probed = session.probe_etcd(&CancellationToken::new()).await;
    announce_keys(&session, printer);
    let members = session.members(&any_answered(probed)?);
    let value: Vec<_> =
        members.iter().map(|(host, member)| json!({"host": host, "member": member})).collect();
    show(options, printer, &json!(value), &status::members(&members))?;
    let is_well = |member: &Option<MemberDetail>| member.as_ref().is_some_and(|one| one.errors.is_empty());
    let clusters: BTreeSet<_> = members.iter().filter_map(|(_, one)| Some(&one.as_ref()?.cluster)).collect();
    let well = clusters.len() == 1 && members.iter().all(|(_, member)| is_well(member));
    Ok(if well { ExitStatus::Ok } else { ExitStatus::Failed })
}

async fn look(options: &LookOptions, printer: &Printer) -> Result<(Session, Probed), Error> {
    let session = open(options, printer)?;
    // Nothing is changed, so Ctrl-C ends the process at once.
    let probed = session.probe_for_create(&CancellationToken::new(), |_| {}).await;
    announce_keys(&session, printer);
    Ok((session, any_answered(probed?)?))
}

fn announce_keys(session: &Session, printer: &Printer) {
    for key in session.connections().values().flat_map(|connection| connection.learnt()) {
        printer.notice(learnt(key));
    }
}

fn open(options: &LookOptions, printer: &Printer) -> Result<Session, Error> {
    let input = load::input(Some(&options.filename), None)?;
    if let Some(warning) = unchecked_keys(options.host_key_checking) {
        printer.warning(warning);
    }
    for warning in &input.warnings {
        printer.warning(error::warning(warning));
    }
    let settings = Settings {
        workdir: options.workdir.clone(),
        templates: None,
        host_keys: options.host_key_checking.into(),
        options: Options { only_looks: true, ..Options::default() },
    };
    Ok(Session::open(input.spec, settings)?)
}

/// Prints answers of hosts. They are not in an event, so they are made safe for the terminal here.
fn show(options: &LookOptions, printer: &Printer, value: &Value, text: &str) -> Result<(), Error> {
    match options.output {
        OutputFormat::Text => printer.print_stdout(&escape_controls(text)),
        OutputFormat::Json => printer.print_stdout(&escape_json_controls(&format!("{value:#}\n"))),
    }
}
