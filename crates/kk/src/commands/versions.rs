//! `kk versions`: lists installable versions, shows the defaults for a Kubernetes version, and adds versions that the release
//! does not know.

use std::{io, path::Path};

use kk_artifact::{Catalogue, Component, Versions};
use kk_config::{Arch, Components};
use serde_json::{Value, json};

use crate::args::{
    AddVersions, CatalogueOptions, ListVersions, OutputFormat, ShowVersions, Versions as Command,
};
use crate::error::Error;
use crate::printer::{Printer, Table, text};

use super::{artifact, new_file};

const WIDEST: usize = 110;

pub(super) fn run(command: &Command, printer: &Printer) -> Result<(), Error> {
    match command {
        Command::List(args) => list(args, printer),
        Command::Show(args) => show(args, printer),
        Command::Add(args) => add(args, printer),
    }
}

fn list(args: &ListVersions, printer: &Printer) -> Result<(), Error> {
    let catalogue = catalogue(&args.from)?;
    let versions = |component: Component, arch| -> Vec<String> {
        catalogue.versions(component, arch).map(ToString::to_string).collect()
    };
    let document = |component: Component| {
        let of = |arch: Arch| (arch.as_str().to_owned(), json!(versions(component, arch)));
        json!({"program": component.name(), "versions": Arch::ALL.map(of).into_iter().collect::<serde_json::Map<_, _>>()})
    };
    let chosen: Vec<Component> = match &args.program {
        None => Component::published().collect(),
        Some(name) => {
            vec![Component::published().find(|component| component.name() == name).ok_or_else(|| {
                let known = Component::published().map(Component::name).collect::<Vec<_>>().join(", ");
                Error::Usage {
                    message: format!("there is no component {name}"),
                    hint: format!(
                        "one of: \
                                             {known}"
                    ),
                }
            })?]
        }
    };
    let json = args.from.output == OutputFormat::Json;
    if json {
        let all: Vec<Value> = chosen.into_iter().map(document).collect();
        return printer.print_stdout(&format!("{:#}\n", json!(all)));
    }
    if args.program.is_some() {
        let mut table = Table::new(["VERSION", "ARCHITECTURES"]);
        for (version, arches) in by_version(&catalogue, chosen[0]) {
            table.row([version, arches]);
        }
        return printer.print_stdout(&table.render(WIDEST));
    }
    let mut table =
        Table::new(["PROGRAM", "OLDEST", "NEWEST", "VERSIONS WITH KNOWN CHECKSUMS (amd64, arm64)"]);
    for component in chosen {
        let all = Arch::ALL.map(|arch| versions(component, arch));
        let end = |version: Option<&String>| version.cloned().unwrap_or_else(|| "-".into());
        let count = all.each_ref().map(|versions| versions.len().to_string()).join(", ");
        table.row([component.name().into(), end(all[0].first()), end(all[0].last()), count]);
    }
    printer.print_stdout(&table.render(WIDEST))
}

/// The versions of a component in order, each with the architectures for which its checksum is known.
fn by_version(catalogue: &Catalogue, component: Component) -> Vec<(String, String)> {
    let mut all: Vec<_> =
        Arch::ALL.into_iter().flat_map(|arch| catalogue.versions(component, arch)).collect();
    all.sort();
    all.dedup();
    let arches = |version: &_| {
        let known = Arch::ALL.into_iter().filter(|arch| catalogue.knows(component, version, *arch));
        known.map(Arch::as_str).collect::<Vec<_>>().join(", ")
    };
    all.into_iter().map(|version| (version.to_string(), arches(version))).collect()
}

fn show(args: &ShowVersions, printer: &Printer) -> Result<(), Error> {
    let catalogue = catalogue(&args.from)?;
    let kubernetes = args.kubernetes.unwrap_or_default();
    let versions = Versions::for_kubernetes(kubernetes, &Components::default())
        .expect("clap accepts only supported versions");
    let known = |component| {
        let version = versions.of(component);
        let arches = by_version(&catalogue, component).into_iter().find(|(known, _)| *known == version);
        arches.map(|(_, arches)| arches).unwrap_or_default()
    };
    let images = Component::all().filter_map(|component| versions.image(component));
    if args.from.output == OutputFormat::Json {
        let program = |component: Component| {
            let known = known(component);
            let arches: Vec<_> = known.split(", ").filter(|arch| !arch.is_empty()).collect();
            json!({"program": component.name(), "version": versions.of(component), "known": arches})
        };
        let programs: Vec<Value> = Component::published().map(program).collect();
        let images: Vec<String> = images.map(|image| image.to_string()).collect();
        let document = json!({"kubernetes": kubernetes.to_string(), "programs": programs, "images": images});
        return printer.print_stdout(&format!("{document:#}\n"));
    }
    let mut table = Table::new(["PROGRAM", "VERSION", "CHECKSUM KNOWN FOR"]);
    for component in Component::published() {
        let arches = known(component);
        let arches = match arches {
            none if none.is_empty() && catalogue.has_published(component) => {
                "none: the checksum published next to the file is used".to_owned()
            }
            none if none.is_empty() => "none".to_owned(),
            arches => arches,
        };
        table.row([component.name().into(), versions.of(component), arches]);
    }
    let images: String = images.map(|image| format!("  {image}\n")).collect();
    printer.print_stdout(&format!("Kubernetes {kubernetes}\n\n{}\nImages:\n{images}", table.render(WIDEST)))
}

fn add(args: &AddVersions, printer: &Printer) -> Result<(), Error> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| (error.kind(), cannot_read(path, &error)))
    };
    let new = read(&args.file).map_err(|(_, error)| error)?;
    let old = match read(&args.catalogue) {
        Ok(text) => text,
        Err((io::ErrorKind::NotFound, _)) => "{}".to_owned(),
        Err((_, error)) => return Err(error),
    };
    let [new_name, old_name] = [&args.file, &args.catalogue].map(|path| path.display().to_string());
    let merged = kk_artifact::merge_catalogues((&old_name, &old), (&new_name, &new));
    let (text, added) = merged.map_err(Error::Config)?;
    if added > 0 {
        new_file::write(&args.catalogue, &text, true)?;
    }
    let known = text::count(added, "version");
    printer.print_stdout(&format!("{old_name}: {known} added\n"))
}

fn cannot_read(path: &Path, error: &io::Error) -> Error {
    Error::config(format!("cannot read {}: {error}", path.display()), None)
}

fn catalogue(options: &CatalogueOptions) -> Result<Catalogue, Error> {
    let own = options.catalogue.as_ref().map(|path| path.display().to_string());
    artifact::catalogue(own.as_deref(), None)
}
