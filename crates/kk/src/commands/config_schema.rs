//! `kk config schema`: prints the JSON Schema of the configuration, for editors.

use crate::error::Error;
use crate::printer::Printer;

pub(super) fn run(printer: &Printer) -> Result<(), Error> {
    printer.print_stdout(&format!("{:#}\n", kk_config::schema()))
}
