//! `kk create config`: a commented file to start from. The file appears whole or not at all, and only for its owner:
//! passwords will be written into it.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use kk_config::SampleStyle;

use crate::args::{CreateConfig, Style};
use crate::error::Error;
use crate::printer::Printer;

use super::load;

pub(super) fn run(args: &CreateConfig, printer: &Printer) -> Result<(), Error> {
    let version = load::version(args.with_kubernetes.as_deref())?;
    let text = kk_config::sample(&args.name, version, style(args.style)).map_err(Error::Config)?;
    let path = args.filename.clone().unwrap_or_else(|| PathBuf::from(format!("config-{}.yaml", args.name)));
    if path.as_os_str() == "-" {
        return printer.print_stdout(&text);
    }
    write(&path, &text, args.overwrite).map_err(|error| not_written(&path, &error))?;
    let file = path.display();
    printer.message(&format!(
        "wrote {file}\nfill in your hosts, then run: kk create cluster -f {file} --dry-run"
    ));
    Ok(())
}

fn style(style: Style) -> SampleStyle {
    match style {
        Style::AllInOne => SampleStyle::AllInOne,
        Style::ThreeNodes => SampleStyle::ThreeNodes,
        Style::Ha => SampleStyle::HighAvailability,
        Style::Offline => SampleStyle::Offline,
    }
}

/// Writes beside the target and moves it there, so that nobody sees half a file and an existing one is not lost.
fn write(path: &Path, text: &str, overwrite: bool) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    if overwrite {
        file.persist(path)?;
    } else {
        file.persist_noclobber(path)?;
    }
    Ok(())
}

fn not_written(path: &Path, error: &io::Error) -> Error {
    let (cause, hint) = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            ("the file exists".into(), Some("name another file with -f, or overwrite it with --yes"))
        }
        io::ErrorKind::NotFound => ("its directory does not exist".into(), None),
        // The crate tempfile adds the name of the temporary file; people know only the target.
        _ => (error.to_string().split(" at path ").take(1).collect(), None),
    };
    Error::Other { doing: format!("write {}", path.display()), cause, hint: hint.map(str::to_owned) }
}
