//! Fetches images: first all documents, so that the missing content is known, then the content.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use futures::StreamExt as _;
use kk_config::{Arch, ImageName};
use reqwest::StatusCode;
use tokio::fs::{self, File, OpenOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufWriter};

use super::document::{self, Blob, Image, Platform, Root, unusable};
use super::protocol::Reference;
use super::registries::{FIRST_WAIT, Refusal, RefusalKind, Source, judge, retry, wait};
use super::{Blobs, Registries};
use crate::{Error, Sha256Sum, client};

/// Concurrent requests; they are small.
const PARALLEL_QUESTIONS: usize = 8;
/// Concurrent blobs.
const PARALLEL: usize = 4;
const STEP: usize = 512 * 1024;

/// The resources for fetching.
pub(crate) struct Fetch<'a> {
    pub(crate) registries: &'a Registries,
    pub(crate) blobs: &'a Blobs,
    /// Receives the number of bytes that were fetched.
    pub(crate) came: &'a (dyn Fn(u64) + Sync),
    /// Receives messages about retries.
    pub(crate) note: &'a (dyn Fn(String) + Sync),
    /// Held while a configuration is fetched: several images may have the same configuration.
    pub(crate) configuration: tokio::sync::Mutex<()>,
}

/// An image and the source of its content.
pub(crate) struct Found {
    pub(crate) image: Image,
    source: Source,
}

/// Fetches the documents of all images, and returns all errors at once.
pub(crate) async fn resolve(
    fetch: &Fetch<'_>,
    images: &BTreeSet<ImageName>,
    arches: &BTreeSet<Arch>,
) -> Result<Vec<Found>, Vec<Error>> {
    let answers: Vec<_> = futures::stream::iter(images)
        .map(|image| fetch.resolve(image, arches))
        .buffered(PARALLEL_QUESTIONS)
        .collect()
        .await;
    let (found, errors): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    let errors: Vec<Error> = errors.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(found.into_iter().filter_map(Result::ok).collect()) } else { Err(errors) }
}

/// Content that is not in the store, each blob once.
pub(crate) fn missing<'a>(blobs: &Blobs, found: &'a [Found]) -> Vec<(&'a Found, &'a Blob)> {
    let mut seen = BTreeSet::new();
    let all = found.iter().flat_map(|found| found.image.blobs().map(move |blob| (found, blob)));
    all.filter(|(_, blob)| seen.insert(&blob.sum) && !blobs.has(&blob.sum, blob.size)).collect()
}

/// Fetches all content that is not in the store.
pub(crate) async fn fetch_blobs(fetch: &Fetch<'_>, found: &[Found]) -> Result<(), Error> {
    let first = Mutex::new(None);
    futures::stream::iter(missing(fetch.blobs, found))
        .for_each_concurrent(PARALLEL, |(found, blob)| {
            let first = &first;
            async move {
                let failed = || first.lock().is_ok_and(|first| first.is_some());
                if failed() {
                    return;
                }
                if let Err(error) = fetch.blob(&found.image.name, &found.source, blob).await
                    && let Ok(mut first) = first.lock()
                {
                    first.get_or_insert(error);
                }
            }
        })
        .await;
    first.into_inner().unwrap_or_default().map_or(Ok(()), Err)
}

impl Fetch<'_> {
    async fn resolve(&self, name: &ImageName, arches: &BTreeSet<Arch>) -> Result<Found, Error> {
        let (source, bytes) = self.find(name).await?;
        let (root, media_type) = document::root(&bytes).map_err(|reason| unusable(name, reason))?;
        let image = match root {
            Root::Index(index) => {
                let (platforms, more, bytes) = self.index(name, &source, &index, &bytes, arches).await?;
                let root = Blob { sum: self.blobs.put(&bytes)?, size: bytes.len() as u64 };
                Image { name: name.clone(), media_type, root, platforms, more }
            }
            Root::Manifest(manifest) => {
                let blobs = document::content(&manifest).map_err(|reason| unusable(name, reason))?;
                let arch = self.arch_of(name, &source, &blobs[0]).await?;
                complete(name, arches, &arch.into_iter().collect())?;
                let manifest = Blob { sum: self.blobs.put(&bytes)?, size: bytes.len() as u64 };
                let platform = arch.map(|arch| Platform {
                    arch,
                    media_type: media_type.clone(),
                    manifest: manifest.clone(),
                    blobs,
                });
                let platforms = platform.into_iter().collect();
                Image { name: name.clone(), media_type, root: manifest, platforms, more: Vec::new() }
            }
        };
        Ok(Found { image, source })
    }

    /// The platforms of an index that hosts need, and an index of only these. If the image is named by its digest, its index
    /// stays unchanged, with everything that it names.
    async fn index(
        &self,
        name: &ImageName,
        source: &Source,
        index: &oci_spec::image::ImageIndex,
        bytes: &[u8],
        arches: &BTreeSet<Arch>,
    ) -> Result<(Vec<Platform>, Vec<Blob>, Vec<u8>), Error> {
        let mut platforms: Vec<Platform> = Vec::new();
        let (mut keep, mut more) = (Vec::new(), Vec::new());
        for entry in index.manifests() {
            let arch = document::arch(entry)
                .filter(|arch| arches.contains(arch) && platforms.iter().all(|known| known.arch != *arch));
            if arch.is_none() && name.digest.is_none() {
                continue;
            }
            let manifest = document::blob(entry).map_err(|reason| unusable(name, reason))?;
            let text = self.child(name, source, &manifest).await?;
            let parsed = document::manifest(&text).map_err(|reason| unusable(name, reason))?;
            let blobs = document::content(&parsed).map_err(|reason| unusable(name, reason))?;
            keep.push(entry);
            match arch {
                Some(arch) => platforms.push(Platform {
                    arch,
                    media_type: entry.media_type().to_string(),
                    manifest,
                    blobs,
                }),
                None => more.extend(std::iter::once(manifest).chain(blobs)),
            }
        }
        complete(name, arches, &platforms.iter().map(|platform| platform.arch).collect())?;
        let bytes = if keep.len() == index.manifests().len() {
            bytes.to_vec()
        } else {
            document::reduced(bytes, &keep).map_err(|reason| unusable(name, reason))?
        };
        Ok((platforms, more, bytes))
    }

    /// The first source that has the image, and its document for the name.
    async fn find(&self, name: &ImageName) -> Result<(Source, Vec<u8>), Error> {
        let mut reasons = Vec::new();
        for source in self.registries.sources(name)? {
            match self.document(name, &source, &source.reference).await {
                Ok(bytes) => {
                    let wanted = name.digest.as_deref().and_then(|digest| digest.strip_prefix("sha256:"));
                    if wanted.is_some_and(|wanted| Sha256Sum::of_bytes(&bytes).as_str() != wanted) {
                        reasons.push(format!("{}: it returns another image for this digest", source.host));
                        continue;
                    }
                    return Ok((source, bytes));
                }
                Err(refusal) => reasons.push(format!("{}: {}", source.host, refusal.reason)),
            }
        }
        Err(unusable(name, reasons.join("; ")))
    }

    /// A manifest that an index names.
    async fn child(&self, name: &ImageName, source: &Source, manifest: &Blob) -> Result<Vec<u8>, Error> {
        if let Some(bytes) = self.blobs.document(&manifest.sum) {
            return Ok(bytes);
        }
        let reference = source.reference.with_digest(&format!("sha256:{}", manifest.sum));
        let bytes = self.document(name, source, &reference).await;
        let bytes =
            bytes.map_err(|refusal| unusable(name, format!("{}: {}", source.host, refusal.reason)))?;
        if self.blobs.put(&bytes)? == manifest.sum {
            Ok(bytes)
        } else {
            Err(unusable(name, format!("{} returns another manifest for {}", source.host, manifest.sum)))
        }
    }

    /// The architecture of an image that has no index.
    async fn arch_of(&self, name: &ImageName, source: &Source, blob: &Blob) -> Result<Option<Arch>, Error> {
        let _alone = self.configuration.lock().await;
        if self.blobs.document(&blob.sum).is_none() {
            self.blob(name, source, blob).await?;
        }
        let bytes = self.blobs.document(&blob.sum);
        let bytes = bytes.ok_or_else(|| unusable(name, "its configuration is too large"))?;
        document::arch_of_configuration(&bytes).map_err(|reason| unusable(name, reason))
    }

    pub(super) async fn document(
        &self,
        name: &ImageName,
        source: &Source,
        reference: &Reference,
    ) -> Result<Vec<u8>, Refusal> {
        let note = |message| (self.note)(format!("{name} from {}: {message}", source.host));
        retry(source, &note, async || source.client.manifest(reference).await).await
    }

    /// Fetches a blob: resumed, retried, verified. The retries are counted from the start again after each progress.
    pub(super) async fn blob(&self, name: &ImageName, source: &Source, blob: &Blob) -> Result<(), Error> {
        let part = self.blobs.part(&blob.sum);
        let (mut failed, mut largest, mut refused) = (0, 0, false);
        loop {
            let refusal = match self.attempt(source, blob, &mut refused).await? {
                Ok(()) => return self.blobs.keep(&part, &blob.sum),
                Err(refusal) => refusal,
            };
            let size = fs::metadata(&part).await.map_or(0, |data| data.len());
            failed = if size > largest { 1 } else { failed + 1 };
            largest = largest.max(size);
            let Some(time) = wait(refusal.kind, failed, FIRST_WAIT) else {
                return Err(unusable(name, format!("{}: {}", source.host, refusal.reason)));
            };
            self.again(name, source, &refusal, time).await;
        }
    }

    /// One transfer into the partial blob. The inner error is the registry's.
    async fn attempt(
        &self,
        source: &Source,
        blob: &Blob,
        refused: &mut bool,
    ) -> Result<Result<(), Refusal>, Error> {
        let part = self.blobs.part(&blob.sum);
        let wrong = |error| Error::file("write", &part)(error);
        let (mut sum, mut size) = read_part(&part).await.map_err(Error::file("read", &part))?;
        if size > blob.size {
            (sum, size) = (Hasher::default(), 0);
        }
        if size < blob.size {
            let digest = format!("sha256:{}", blob.sum);
            let response = match source.client.blob(&source.reference, &digest, size).await {
                Ok(response) => response,
                Err(failure) => return Ok(Err(judge(source, &failure, refused))),
            };
            if response.status() != StatusCode::PARTIAL_CONTENT {
                (sum, size) = (Hasher::default(), 0);
            }
            let mut stream = response.bytes_stream();
            let mut file = open(&part, size).await.map_err(wrong)?;
            let mut cut = None;
            while let Some(bytes) = stream.next().await {
                match bytes {
                    Ok(bytes) => {
                        file.write_all(&bytes).await.map_err(wrong)?;
                        sum.update(&bytes);
                        size += bytes.len() as u64;
                        (self.came)(bytes.len() as u64);
                    }
                    Err(error) => {
                        cut = Some(transient(&client::reason(&error)));
                        break;
                    }
                }
                if size > blob.size {
                    break;
                }
            }
            // The bytes before an interruption are kept for the next attempt.
            file.flush().await.map_err(wrong)?;
            file.get_ref().sync_all().await.map_err(wrong)?;
            if size < blob.size {
                return Ok(Err(cut.unwrap_or_else(|| transient("the connection ended early"))));
            }
        }
        if size == blob.size && sum.sum() == blob.sum {
            return Ok(Ok(()));
        }
        fs::remove_file(&part).await.map_err(Error::file("remove", &part))?;
        Ok(Err(transient("what it sent has another digest")))
    }

    async fn again(&self, name: &ImageName, source: &Source, refusal: &Refusal, time: Duration) {
        (self.note)(format!(
            "{name} from {}: {}; again in {} s",
            source.host,
            refusal.reason,
            time.as_secs()
        ));
        tokio::time::sleep(time).await;
    }
}

/// Checks that an image has every architecture.
fn complete(name: &ImageName, arches: &BTreeSet<Arch>, there: &BTreeSet<Arch>) -> Result<(), Error> {
    let missing: Vec<_> = arches.difference(there).map(|arch| arch.as_str()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(unusable(name, format!("it is not there for {}", missing.join(" and "))))
}

fn transient(reason: &str) -> Refusal {
    Refusal { reason: reason.to_owned(), kind: RefusalKind::Transient }
}

/// Computes a SHA-256 incrementally.
#[derive(Default)]
struct Hasher(sha2::Sha256);

impl Hasher {
    fn update(&mut self, bytes: &[u8]) {
        use sha2::Digest as _;
        self.0.update(bytes);
    }

    fn sum(self) -> Sha256Sum {
        Sha256Sum::of(self.0)
    }
}

/// Checksum and size of a partial blob.
async fn read_part(path: &std::path::Path) -> std::io::Result<(Hasher, u64)> {
    let (mut sum, mut size) = (Hasher::default(), 0);
    let mut file = match File::open(path).await {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((sum, 0)),
        Err(error) => return Err(error),
    };
    let mut buffer = vec![0; STEP];
    loop {
        let read = file.read(&mut buffer).await?;
        if read == 0 {
            return Ok((sum, size));
        }
        sum.update(&buffer[..read]);
        size += read as u64;
    }
}

/// Opens the partial blob to append to it; `size` 0 truncates it.
async fn open(path: &std::path::Path, size: u64) -> std::io::Result<BufWriter<File>> {
    let mut options = OpenOptions::new();
    let options = options.create(true);
    let options = if size == 0 { options.write(true).truncate(true) } else { options.append(true) };
    Ok(BufWriter::with_capacity(STEP, options.open(path).await?))
}
