//! `kk artifact images push`: pushes images into the private registry of a cluster's file.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use kk_artifact::{Layout, LayoutImage, PushImage, PushNews, Pushed, Store, StoreSettings};
use kk_config::{Registry, Spec};
use kk_engine::{Output, Summary};

use crate::args::ArtifactImagesPush;
use crate::error::{self, Error};
use crate::exit::ExitStatus;
use crate::printer::{Printer, text};

use super::super::{bundle, load};
use super::local_run::{LocalRun, Step};
use super::{catalogue, failed};

pub(super) async fn run(args: &ArtifactImagesPush, printer: &Printer) -> Result<ExitStatus, Error> {
    let loaded = load::file(&args.filename, None)?;
    loaded.warnings.iter().for_each(|warning| printer.warning(error::warning(warning)));
    let mut spec = loaded.spec;
    let directory = args.workdir.join(&spec.name);
    kk_cluster::trust_own_registry(&mut spec, &directory);
    let registry = spec.registry.private_registry.clone().ok_or_else(|| {
        let hint = "set it to the registry, as host[:port][/path]".to_owned();
        Error::config("spec.registry.privateRegistry is not set", Some(hint))
    })?;
    let run = LocalRun::start("artifact images push", "images", printer);
    let result = push(args, &spec, &run).await;
    let changed = result.as_ref().map_or(0, |pushed| pushed.images);
    run.finish(result.map(|pushed| summary(&registry, &pushed)), changed)
}

async fn push(args: &ArtifactImagesPush, spec: &Spec, run: &LocalRun<'_>) -> Result<Pushed, Error> {
    let step = run.begin("read", "Read the images");
    let (layout, images) = match (&args.artifact, &args.images_dir) {
        (Some(bundle), _) => unpacked(bundle, args, spec).await?,
        (None, dir) => {
            let layout = Layout::open(dir.as_deref().unwrap_or(Path::new(".")));
            let images = layout.images().map_err(|error| failed(&[error]))?;
            (layout, images)
        }
    };
    run.end_unchanged(step);
    let cluster = args.workdir.join(&spec.name);
    let settings = kk_cluster::registry_for_pushes(spec, &cluster)?;
    let images: Vec<PushImage> =
        images.into_iter().filter_map(|image| with_target(image, &settings)).collect();
    let shown = Shown::new(run);
    let news = |news| shown.show(news);
    let pushed = kk_artifact::push(&layout, &images, &settings, &news).await;
    let pushed = pushed.map_err(|errors| failed(&errors))?;
    shown.end(&pushed);
    Ok(pushed)
}

/// The images of a bundle, in the directory for downloads.
async fn unpacked(
    bundle: &Path,
    args: &ArtifactImagesPush,
    spec: &Spec,
) -> Result<(Layout, Vec<LayoutImage>), Error> {
    let known = catalogue(spec.download.catalogue.as_deref(), None)?;
    let settings = StoreSettings { offline: true, ..StoreSettings::new(&args.workdir) };
    let unpack = async {
        let bundle = bundle::open_verified(bundle, &args.signature, spec.download.public_key.as_deref())?;
        let store = Store::new(settings)?;
        bundle.import(&bundle.catalogue(known)?, &store).await?;
        Ok((store.images(), bundle.images()))
    };
    unpack.await.map_err(|error: kk_artifact::Error| failed(&[error]))
}

fn with_target(image: LayoutImage, registry: &Registry) -> Option<PushImage> {
    let target = registry.private_name(&image.name)?;
    Some(PushImage { image, target })
}

/// The steps of a push, as they are shown.
struct Shown<'a> {
    run: &'a LocalRun<'a>,
    step: Mutex<Step>,
    total: AtomicU64,
}

impl<'a> Shown<'a> {
    fn new(run: &'a LocalRun<'a>) -> Self {
        let step = Mutex::new(run.begin("look", "Find images that the registry lacks"));
        Self { run, step, total: AtomicU64::new(0) }
    }

    fn show(&self, news: PushNews) {
        match news {
            PushNews::Missing { bytes, .. } => {
                self.total.store(bytes, Ordering::Relaxed);
                self.run.end_unchanged(self.step());
                let step = self.run.begin("push", "Push images");
                *self.step.lock().unwrap_or_else(PoisonError::into_inner) = step;
            }
            PushNews::Done { bytes } => {
                self.run.progress(self.step(), bytes, self.total.load(Ordering::Relaxed));
            }
            PushNews::Note { message } => self.run.note(message),
        }
    }

    fn end(&self, pushed: &Pushed) {
        match pushed.images {
            0 => self.run.end_unchanged(self.step()),
            images => self.run.end(self.step(), format!("push {}", text::count(images, "image"))),
        }
    }

    fn step(&self) -> Step {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn summary(registry: &str, pushed: &Pushed) -> Summary {
    let all = pushed.images + pushed.there;
    let output = |name: &str, value: String| Output { name: name.into(), value };
    Summary {
        message: format!("{registry} has all {}", text::count(all, "image")),
        nodes: Vec::new(),
        outputs: vec![
            output("pushed", text::count(pushed.images, "image")),
            output("there already", text::count(pushed.there, "image")),
            output("sent", text::bytes(pushed.sent)),
        ],
        next: None,
    }
}
