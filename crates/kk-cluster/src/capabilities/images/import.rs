//! Sends images of a bundle to the runtime of a host, which then needs no registry for them.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use kk_artifact::{
    Store,
    bundle::{Bundle, ContentFile, ImagePart, PlatformPart},
};
use kk_config::{Arch, Host, ImageName};
use kk_connector::{UploadFile, quote};
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, Run, Script, actions::Upload};

use crate::{
    base::{
        requirements::{IMAGES, ListedImage},
        shell,
    },
    model::{cluster::Runtime, inputs::Inputs, offline},
};

/// The directory on a host for content until the runtime has it.
const DIRECTORY: &str = "/var/lib/kubekey/images";

/// The images of one host.
pub(super) struct Import {
    sending: Arc<Sending>,
}

/// The sources of the images.
struct Sending {
    bundle: Arc<Bundle>,
    store: Arc<Store>,
    arch: Arch,
    runtime: Runtime,
    /// The names that the host uses, each with the name in the bundle.
    images: Vec<(String, Option<ImageName>)>,
}

impl Import {
    /// Imports these images, which are specified by the names that the host uses.
    pub(super) fn new(inputs: &Inputs, host: &Host, bundle: &Arc<Bundle>, images: Vec<String>) -> Self {
        let named = |name: String| {
            let upstream = offline::upstream(inputs, bundle, &name);
            (name, upstream)
        };
        let images = images.into_iter().map(named).collect();
        let (bundle, store, arch) = (bundle.clone(), inputs.store.clone(), inputs.arch(host));
        Self { sending: Arc::new(Sending { bundle, store, arch, runtime: inputs.runtime, images }) }
    }

    /// Images that the runtime of the host does not have as they are in the bundle. The image that a tag refers to may change.
    fn missing(&self, facts: &Facts) -> Vec<&str> {
        let listed = facts.answer(&IMAGES).answered().unwrap_or_default();
        let names = self.sending.images.iter().map(|(name, _)| name.as_str());
        names.filter(|name| !self.sending.is_among(name, &listed)).collect()
    }
}

impl Sending {
    /// The image in the bundle for the platform of this host.
    fn find(&self, name: &str) -> Option<(&ImagePart, &PlatformPart)> {
        let (_, upstream) = self.images.iter().find(|(known, _)| known == name)?;
        self.bundle.image(upstream.as_ref()?, self.arch)
    }

    /// Whether the runtime has the image. A runtime that has pulled it lists the digest of its index, which may contain more
    /// platforms than the index in the bundle. Its configuration is the same then, and runtimes use the digest of the
    /// configuration as the ID of the image.
    fn is_among(&self, name: &str, listed: &[ListedImage]) -> bool {
        let Some((image, platform)) = self.find(name) else { return false };
        let digest = listed.iter().find(|one| one.name == name).and_then(|one| one.digest.as_ref());
        let Some(digest) = digest else { return false };
        let has_id =
            |id: &String| listed.iter().any(|one| one.name == *id && one.digest.as_ref() == Some(digest));
        *digest == platform.digest || *digest == image.digest || platform.blobs.first().is_some_and(has_id)
    }
}

impl Action for Import {
    fn check(&self, facts: &Facts) -> Change {
        let missing = self.missing(facts);
        if missing.is_empty() {
            return Change::None;
        }
        Change::Needed(missing.iter().map(|image| format!("import {image}")).collect())
    }

    fn apply(&self, facts: &Facts) -> Apply {
        let images = self.missing(facts).into_iter().map(str::to_owned).collect();
        Apply::Run(Arc::new(Send { images, sending: self.sending.clone() }))
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        let full = stderr.contains("No space left") || stderr.contains("no space left");
        full.then(|| format!("free space on the host: {DIRECTORY} and the runtime need it, and run again"))
    }
}

/// The images that the host lacks.
struct Send {
    images: Vec<String>,
    sending: Arc<Sending>,
}

#[async_trait]
impl Run for Send {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        match self.upload()?.apply(&Facts::default()) {
            Apply::Run(run) => run.run(context).await,
            _ => Ok(()),
        }
    }

    fn transfers(&self) -> bool {
        true
    }
}

impl Send {
    fn upload(&self) -> Result<Upload, Failure> {
        let Sending { bundle, store, .. } = &*self.sending;
        let (mut entries, mut content, mut words) = (Vec::new(), BTreeSet::new(), Vec::new());
        for image in &self.images {
            let (_, platform) = self
                .sending
                .find(image)
                .ok_or_else(|| Failure::new(format!("{image} is not in the bundle")))?;
            let id = platform.blobs.first().ok_or_else(|| Failure::new(format!("{image} has no content")))?;
            entries.push((platform, image.as_str()));
            content.extend(bundle.blobs(platform));
            words.extend([quote(image), quote(id)]);
        }
        let operations = self.sending.runtime.operations;
        let import = format!("set -- {}\n{operations}{}", words.join(" "), include_str!("import.sh"));
        let script = Script::new(shell::script(&[("directory", DIRECTORY)], &import))
            .with_file("index.json", bundle.layout(&entries).into_bytes())
            .with_file("oci-layout", *br#"{"imageLayoutVersion":"1.0.0"}"#);
        let file = |file: ContentFile| UploadFile {
            source: store.blob(&file.digest),
            target: format!("{DIRECTORY}/{}", file.path),
            mode: 0o600,
            sha256: file.sha256,
        };
        Ok(Upload::new(content.into_iter().map(file).collect()).taken_by(script))
    }
}
