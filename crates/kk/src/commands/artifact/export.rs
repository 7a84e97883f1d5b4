//! `kk artifact export`: exports a bundle with the contents of a manifest.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kk_artifact::bundle::{self, BundleIndex, ExportNews, Exported};
use kk_artifact::{Store, StoreSettings};
use kk_config::Manifest;
use kk_engine::{Output, Summary};

use crate::args::ArtifactExport;
use crate::error::{self, Error};
use crate::exit::ExitStatus;
use crate::printer::{Printer, text};

use super::super::load;
use super::local_run::{LocalRun, Step};
use super::{catalogue, failed, refuse_same};

pub(super) async fn run(args: &ArtifactExport, printer: &Printer) -> Result<ExitStatus, Error> {
    let mut manifest = load::manifest(&args.manifest, |warning| printer.warning(error::warning(warning)))?;
    for system in &mut manifest.operating_systems {
        system.packages = kk_cluster::host_packages(system);
    }
    let mut secrets = kk_cluster::secrets_of_registry(&manifest.registry);
    secrets.extend(kk_artifact::stored_logins());
    let run = LocalRun::start("artifact export", "bundle", printer, &secrets);
    let result = export(args, &manifest, &run).await;
    let changed = usize::from(result.is_ok());
    run.finish(result.map(|exported| summary(args, &exported)), changed)
}

async fn export(args: &ArtifactExport, manifest: &Manifest, run: &LocalRun<'_>) -> Result<Exported, Error> {
    let download = &manifest.download;
    let catalogue = catalogue(download.catalogue.as_deref(), download.mirror.as_deref())?;
    let mut settings = StoreSettings::new(&args.workdir);
    settings.ca_file = download.ca_file.as_ref().map(PathBuf::from);
    let store = Arc::new(Store::new(settings).map_err(|error| failed(&[error]))?);
    let base = args.base.as_deref().map(|base| {
        refuse_same(&args.output, base)?;
        bundle::index(base).map_err(|error| failed(&[error]))
    });
    let base = base.transpose()?;
    let shown = Shown::new(run);
    let news = |news| shown.show(news);
    let exported = bundle::export(manifest, &catalogue, &store, &args.output, base.as_ref(), &news).await;
    let exported = exported.map_err(|errors| failed(&errors))?;
    shown.packed(format!("write {}", args.output.display()));
    Ok(exported)
}

/// The displayed steps of an export.
struct Shown<'a> {
    run: &'a LocalRun<'a>,
    step: Mutex<Step>,
    done: AtomicU64,
    total: AtomicU64,
}

impl<'a> Shown<'a> {
    fn new(run: &'a LocalRun<'a>) -> Self {
        let step = Mutex::new(run.begin("look", "Find missing files"));
        Self { run, step, done: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    fn show(&self, news: ExportNews) {
        match news {
            ExportNews::Missing { bytes } => {
                let what = format!("{} to fetch", text::bytes(bytes));
                self.next(what, "fetch", "Fetch missing files", bytes);
            }
            ExportNews::Packing { bytes } => {
                let fetched = text::bytes(self.done.load(Ordering::Relaxed));
                self.next(format!("fetch {fetched}"), "pack", "Pack the bundle", bytes);
            }
            ExportNews::Came { bytes } | ExportNews::Packed { bytes } => {
                let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
                self.run.progress(self.step(), done, self.total.load(Ordering::Relaxed));
            }
            ExportNews::Note { message } => self.run.note(message),
        }
    }

    /// Ends a step and begins the next one, which transfers `bytes` bytes.
    fn next(&self, change: String, name: &'static str, title: &'static str, bytes: u64) {
        self.run.end(self.step(), change);
        self.done.store(0, Ordering::Relaxed);
        self.total.store(bytes, Ordering::Relaxed);
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = self.run.begin(name, title);
    }

    fn packed(&self, change: String) {
        self.run.end(self.step(), change);
    }

    fn step(&self) -> Step {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn summary(args: &ArtifactExport, exported: &Exported) -> Summary {
    let file = args.output.display();
    let next = args
        .base
        .as_ref()
        .map(|base| format!("kk artifact merge --base {} --delta {file} -o bundle.tar.zst", base.display()));
    let output = |name: &str, value: String| Output { name: name.into(), value };
    Summary {
        message: format!("{file} is complete"),
        nodes: Vec::new(),
        outputs: vec![
            output("holds", held(&exported.index)),
            output("size", text::bytes(exported.size)),
            output("fetched", text::bytes(exported.fetched)),
        ],
        next,
    }
}

/// The contents of a bundle, as text.
pub(super) fn held(index: &BundleIndex) -> String {
    let BundleIndex { programs, images, packages, charts, manifests, .. } = index;
    let mut parts =
        format!("{}, {}", text::count(programs.len(), "program"), text::count(images.len(), "image"));
    let more = [(packages.len(), "package"), (charts.len(), "chart"), (manifests.len(), "manifest")];
    for (number, kind) in more.into_iter().filter(|(number, _)| *number > 0) {
        parts = format!("{parts}, {}", text::count(number, kind));
    }
    parts
}
