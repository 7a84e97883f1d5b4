//! Pushes images into a registry: what is there already is left alone, what another repository has is mounted, and the
//! documents go last, so that a name is never there without its content. A push that was killed goes on in the same way.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use kk_config::{ImageName, Registry};
use reqwest::Body;
use tokio::fs::File;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::io::ReaderStream;

use super::Registries;
use super::document::Blob;
use super::harbor;
use super::layout::{Document, Layout, LayoutImage, Tree};
use super::protocol::{Failure, Reference};
use super::registries::{Refusal, RefusalKind, Source, retry};
use crate::Error;

/// Questions at once; they are small.
const PARALLEL_QUESTIONS: usize = 8;
/// Blobs at once.
const PARALLEL: usize = 4;
const STEP: usize = 512 * 1024;
/// Longest wait for an answer to a small request.
const ANSWER: Duration = Duration::from_secs(30);
/// Longest pause in an upload: a registry reads a large blob once more before it answers.
const PAUSE: Duration = Duration::from_mins(5);

/// An image and the name that it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushImage {
    /// What is pushed.
    pub image: LayoutImage,
    /// Its name in the registry.
    pub target: ImageName,
}

/// What a push tells while it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushNews {
    /// So many images are not there yet; their content has so many bytes.
    Missing {
        /// Images.
        images: usize,
        /// Bytes.
        bytes: u64,
    },
    /// So many bytes were sent, or found there, since the push began.
    Done {
        /// Bytes.
        bytes: u64,
    },
    /// Something is tried again.
    Note {
        /// In words.
        message: String,
    },
}

/// How a push went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Images that were pushed.
    pub images: usize,
    /// Images that were there.
    pub there: usize,
    /// Bytes that were sent.
    pub sent: u64,
    /// Blobs that another repository of the registry had.
    pub mounted: usize,
}

/// Pushes images of a layout. Errors: everything that is wrong, as far as it is known at once.
pub async fn push(
    layout: &Layout,
    images: &[PushImage],
    registry: &Registry,
    news: &(dyn Fn(PushNews) + Sync),
) -> Result<Pushed, Vec<Error>> {
    refuse_collisions(images)?;
    let registries = Registries::for_push(registry.clone());
    if registries.is_harbor() {
        for project in harbor::make_projects(&registries, images).await? {
            news(PushNews::Note { message: format!("made project {project}") });
        }
    }
    let push =
        Push { layout, news, done: AtomicU64::new(0), sent: AtomicU64::new(0), mounted: AtomicUsize::new(0) };
    let Some((first, others)) = images.split_first() else { return Ok(Pushed::default()) };
    // Alone: what is wrong with the registry is then told once.
    let first = push.look(&registries, first, of_the_registry).await.map_err(|error| vec![error])?;
    let looked = futures::stream::iter(others).map(|image| push.look(&registries, image, failed));
    let others = all(looked.buffered(PARALLEL_QUESTIONS).collect().await)?;
    let looked = std::iter::once(first).chain(others);
    let (there, missing): (Vec<_>, Vec<_>) = looked.partition(|looked| looked.is_there);
    let work = work(&missing);
    let bytes = work.iter().map(|(blob, images)| blob.size * images.len() as u64).sum();
    news(PushNews::Missing { images: missing.len(), bytes });
    push.blobs(&there, work).await?;
    let pushed = futures::stream::iter(&missing).map(|image| push.documents(image));
    all(pushed.buffered(PARALLEL_QUESTIONS).collect().await)?;
    Ok(Pushed {
        images: missing.len(),
        there: there.len(),
        sent: push.sent.into_inner(),
        mounted: push.mounted.into_inner(),
    })
}

/// Two images with one name: the second would replace the first.
fn refuse_collisions(images: &[PushImage]) -> Result<(), Vec<Error>> {
    let mut names: BTreeMap<String, &LayoutImage> = BTreeMap::new();
    let mut errors = Vec::new();
    for PushImage { image, target } in images {
        let first = *names.entry(target.to_string()).or_insert(image);
        if first.digest != image.digest {
            let reason = format!("{} gets the same name, {target}", first.name);
            errors.push(Error::Push { image: image.name.to_string(), reason });
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn all<T>(results: Vec<Result<T, Error>>) -> Result<Vec<T>, Vec<Error>> {
    let (good, bad): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    let errors: Vec<Error> = bad.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(good.into_iter().filter_map(Result::ok).collect()) } else { Err(errors) }
}

/// The content of images, each blob with the images whose repositories need it: one for each repository.
type Work<'a> = BTreeMap<&'a Blob, Vec<&'a Looked<'a>>>;

fn work<'a>(missing: &'a [Looked<'a>]) -> Work<'a> {
    let mut work = Work::new();
    for image in missing {
        let repository = |image: &Looked<'_>| image.source.reference.repository.clone();
        for blob in &image.tree.blobs {
            let images = work.entry(blob).or_default();
            if images.iter().all(|known| repository(known) != repository(image)) {
                images.push(image);
            }
        }
    }
    work
}

/// An image of which it is known whether it is there.
struct Looked<'a> {
    wanted: &'a PushImage,
    source: Source,
    tree: Tree,
    is_there: bool,
}

struct Push<'a> {
    layout: &'a Layout,
    news: &'a (dyn Fn(PushNews) + Sync),
    done: AtomicU64,
    sent: AtomicU64,
    mounted: AtomicUsize,
}

impl Push<'_> {
    async fn look<'i>(
        &self,
        registries: &Registries,
        wanted: &'i PushImage,
        failed: fn(&PushImage, &Refusal) -> Error,
    ) -> Result<Looked<'i>, Error> {
        let tree = self.layout.tree(&wanted.image)?;
        let source = registries.target(&wanted.target)?;
        let digest = self.digest(&source, wanted).await.map_err(|refusal| failed(wanted, &refusal))?;
        let is_there = digest.as_ref() == Some(&tree.root.digest);
        Ok(Looked { wanted, source, tree, is_there })
    }

    /// What the name stands for in the registry. `None`: there is no such name.
    async fn digest(&self, source: &Source, wanted: &PushImage) -> Result<Option<String>, Refusal> {
        let ask = async || answer(source.client.digest(&source.reference)).await;
        match self.retry(source, wanted, ask).await {
            Ok(digest) => Ok(Some(digest)),
            Err(refusal) if refusal.kind == RefusalKind::NotFound => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// Brings content there: each blob once, and from there into the other repositories.
    async fn blobs(&self, there: &[Looked<'_>], work: Work<'_>) -> Result<(), Vec<Error>> {
        let holders = there.iter().flat_map(|image| image.tree.blobs.iter().map(move |blob| (blob, image)));
        let holders: BTreeMap<&Blob, &Looked<'_>> = holders.collect();
        let first = Mutex::new(None);
        futures::stream::iter(work)
            .for_each_concurrent(PARALLEL, |(blob, images)| {
                let (first, holder) = (&first, holders.get(blob).copied());
                async move {
                    // What has begun is let end: the next run finds it.
                    if first.lock().is_ok_and(|first| first.is_some()) {
                        return;
                    }
                    if let Err(error) = self.blob(blob, images, holder).await
                        && let Ok(mut first) = first.lock()
                    {
                        first.get_or_insert(error);
                    }
                }
            })
            .await;
        first.into_inner().unwrap_or_default().map_or(Ok(()), |error| Err(vec![error]))
    }

    async fn blob(
        &self,
        blob: &Blob,
        images: Vec<&Looked<'_>>,
        holder: Option<&Looked<'_>>,
    ) -> Result<(), Error> {
        let mut holder = holder.map(|image| image.source.reference.repository.clone());
        for image in images {
            let Looked { wanted, source, .. } = image;
            let bring = self.bring(blob, image, holder.as_deref()).await;
            bring.map_err(|refusal| failed(wanted, &refusal))?;
            holder = Some(source.reference.repository.clone());
        }
        Ok(())
    }

    /// Brings a blob into the repository of an image.
    async fn bring(&self, blob: &Blob, image: &Looked<'_>, holder: Option<&str>) -> Result<(), Refusal> {
        let Looked { wanted, source, .. } = image;
        let Source { client, reference, .. } = source;
        let digest = format!("sha256:{}", blob.sum);
        let exists = async || answer(client.has_blob(reference, &digest)).await;
        if self.retry(source, wanted, exists).await? {
            self.count(blob.size);
            return Ok(());
        }
        // A registry that does not mount says so, and gets the blob.
        if let Some(holder) = holder
            && answer(client.mount(reference, holder, &digest)).await.is_ok()
        {
            self.mounted.fetch_add(1, Ordering::Relaxed);
            self.count(blob.size);
            return Ok(());
        }
        let upload = async || self.upload(source, blob, &digest).await;
        self.retry(source, wanted, upload).await?;
        self.sent.fetch_add(blob.size, Ordering::Relaxed);
        Ok(())
    }

    /// One upload. The registry verifies the digest.
    async fn upload(&self, source: &Source, blob: &Blob, digest: &str) -> Result<(), Failure> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let file = File::open(self.layout.path(blob)).await?;
        let stream = ReaderStream::with_capacity(file, STEP);
        // Nobody listens any more when the upload has failed.
        let stream = stream.inspect_ok(move |bytes| sender.send(bytes.len() as u64).unwrap_or_default());
        let upload = source.client.upload(&source.reference, digest, blob.size, Body::wrap_stream(stream));
        let mut upload = std::pin::pin!(upload);
        let mut counted = 0;
        let result = loop {
            tokio::select! {
                biased;
                Some(bytes) = receiver.recv() => {
                    counted += bytes;
                    self.count(bytes);
                }
                answer = &mut upload => break answer,
                () = sleep(PAUSE) => break Err(too_slow()),
            }
        };
        if result.is_ok() {
            self.count(blob.size.saturating_sub(counted));
        } else {
            self.done.fetch_sub(counted, Ordering::Relaxed);
        }
        result
    }

    /// The documents of an image whose content is there, and then a look whether its name stands for it.
    async fn documents(&self, image: &Looked<'_>) -> Result<(), Error> {
        let Looked { wanted, source, tree, .. } = image;
        let failed = |refusal: Refusal| failed(wanted, &refusal);
        for child in &tree.children {
            let reference = source.reference.with_digest(&child.digest);
            self.document(image, &reference, child).await.map_err(failed)?;
        }
        let root = match wanted.target.digest {
            Some(_) => source.reference.with_digest(&tree.root.digest),
            None => source.reference.clone(),
        };
        self.document(image, &root, &tree.root).await.map_err(failed)?;
        let digest = self.digest(source, wanted).await.map_err(failed)?;
        if digest.as_ref() == Some(&tree.root.digest) {
            return Ok(());
        }
        let reason = "after the push its name refers to another image";
        Err(failed(Refusal { reason: reason.to_owned(), kind: RefusalKind::Lasting }))
    }

    async fn document(&self, image: &Looked<'_>, to: &Reference, document: &Document) -> Result<(), Refusal> {
        let Looked { wanted, source, .. } = image;
        let put = async || {
            answer(source.client.put_manifest(to, &document.media_type, document.bytes.clone())).await
        };
        self.retry(source, wanted, put).await
    }

    async fn retry<T>(
        &self,
        source: &Source,
        wanted: &PushImage,
        request: impl AsyncFn() -> Result<T, Failure>,
    ) -> Result<T, Refusal> {
        let note = |message| (self.news)(PushNews::Note { message: format!("{}: {message}", wanted.target) });
        retry(source, &note, request).await
    }

    fn count(&self, bytes: u64) {
        let bytes = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (self.news)(PushNews::Done { bytes });
    }
}

/// A small request, which is answered soon or not at all.
async fn answer<T>(request: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    timeout(ANSWER, request).await.unwrap_or_else(|_| Err(too_slow()))
}

fn too_slow() -> Failure {
    io::Error::new(io::ErrorKind::TimedOut, "no answer in time").into()
}

fn of_the_registry(wanted: &PushImage, refusal: &Refusal) -> Error {
    Error::Registry { host: wanted.target.registry.clone(), reason: refusal.reason.clone() }
}

fn failed(wanted: &PushImage, refusal: &Refusal) -> Error {
    Error::Push { image: wanted.target.to_string(), reason: refusal.reason.clone() }
}
