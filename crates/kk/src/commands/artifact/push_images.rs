//! `kk artifact images push`: pushes images into the private registry of a cluster's file.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use kk_artifact::{Layout, LayoutImage, PushImage, PushNews, Pushed, Store, StoreSettings};
use kk_config::{Registry, Spec};
use kk_connector::quote;
use kk_engine::{Output, Summary};

use crate::args::ArtifactImagesPush;
use crate::error::{self, Error, Part};
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
    let run = LocalRun::start("artifact images push", "images", printer, &kk_cluster::secrets_of(&spec));
    let result = push(args, &spec, &run).await;
    let changed = result.as_ref().map_or(0, |pushed| pushed.images);
    run.finish(result.map(|pushed| summary(&registry, &pushed)), changed)
}

async fn push(args: &ArtifactImagesPush, spec: &Spec, run: &LocalRun<'_>) -> Result<Pushed, Error> {
    let step = run.begin("read", "Read the images");
    let (layout, images) = match (&args.artifact, &args.images_dir) {
        (Some(bundle), _) => unpacked(bundle, args, spec, run).await?,
        (None, dir) => {
            let layout = Layout::open(dir.as_deref().unwrap_or(Path::new(".")));
            let images = layout.images().map_err(|error| failed(&[error]))?;
            (layout, images)
        }
    };
    run.end_unchanged(step);
    let cluster = args.workdir.join(&spec.name);
    let settings = kk_cluster::registry_for_pushes(spec, &cluster)?;
    run.hide(&kk_cluster::secrets_of_registry(&settings));
    let images: Vec<PushImage> =
        images.into_iter().filter_map(|image| with_target(image, &settings)).collect();
    let shown = Shown::new(run);
    let news = |news| shown.show(news);
    let pushed = kk_artifact::push(&layout, &images, &settings, &news).await;
    let pushed = pushed.map_err(|errors| match &errors[..] {
        [error] if is_port_closed(error, spec) => {
            let file = load::name(&args.filename);
            Error::Parts(vec![Part { message: error.to_string(), hint: Some(hint_to_set_up(&file)) }])
        }
        errors => failed(errors),
    })?;
    shown.end(&pushed);
    Ok(pushed)
}

/// Whether the registry that kk has set up does not listen on its port for pushes.
fn is_port_closed(error: &kk_artifact::Error, spec: &Spec) -> bool {
    let port = spec.own_registry().map(|own| own.pushed_at());
    matches!(error, kk_artifact::Error::Registry { host, reason } if port.as_ref() == Some(host) && reason.contains("refused"))
}

fn hint_to_set_up(file: &str) -> String {
    format!(
        "run `kk init registry -f {}` again: it starts the process for pushes, which registries of an earlier version of kk lack",
        quote(file)
    )
}

/// The images of a bundle, in the directory for downloads.
async fn unpacked(
    bundle: &Path,
    args: &ArtifactImagesPush,
    spec: &Spec,
    run: &LocalRun<'_>,
) -> Result<(Layout, Vec<LayoutImage>), Error> {
    let known = catalogue(spec.download.catalogue.as_deref(), None)?;
    let settings = StoreSettings { offline: true, ..StoreSettings::new(&args.workdir) };
    let unpack = async {
        let key = spec.download.public_key.as_deref();
        let bundle = bundle::open_verified(bundle, &args.signature, key, |message| run.note(message)).await?;
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

#[cfg(test)]
mod tests {
    use kk_config::Overrides;

    use super::*;

    #[test]
    fn only_a_registry_of_kk_without_its_port_for_pushes_is_to_be_set_up_again() {
        let file = "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: t}\nspec:\n  \
            hosts: [{name: a, address: 192.0.2.1, user: root, password: x}]\n  \
            roleGroups: {etcd: [a], control-plane: [a], worker: [a], registry: [a]}\n  network: {plugin: flannel}\n  \
            registry: {privateRegistry: hub.local}\n";
        let spec = kk_config::load("f", file, &Overrides::default()).unwrap().spec;
        let refused = "Connection refused (os error 111)";
        for (host, reason, expected) in [
            ("192.0.2.1:5443", refused, true),
            ("192.0.2.1:5443", "no answer in time", false),
            ("192.0.2.1:443", refused, false),
            ("hub.example", refused, false),
        ] {
            let error = kk_artifact::Error::Registry { host: host.into(), reason: reason.into() };
            assert_eq!(is_port_closed(&error, &spec), expected, "{error}");
        }
        assert!(hint_to_set_up("my cluster.yaml").contains("`kk init registry -f 'my cluster.yaml'` again"));
    }
}
