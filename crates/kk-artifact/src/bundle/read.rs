//! Reads a bundle as a stream. Every file must be the next file of the index, a regular file, and have the expected size and
//! SHA-256. This excludes all attacks by crafted tar files.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::compare::Documents;
use super::index::{BundleIndex, DELTA_NAME, FilePart, NAME};
use super::unusable;
use crate::Error;
use crate::hashing::Hashing;

/// Far more than any index needs, and small enough to be kept in memory.
const LARGEST_INDEX: u64 = 16 << 20;
/// Largest window of a zstd stream (as a power of two) for which memory is allocated: 32 MiB. Bundles use less.
const LARGEST_WINDOW: u32 = 25;
const BUFFER: usize = 1 << 20;
/// The first bytes of a gzip (RFC 1952) and of a zstd stream (RFC 8878).
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The contents of a verified bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Its index.
    pub index: BundleIndex,
    /// Bytes of the bundle itself.
    pub size: u64,
}

/// Reads the index of a bundle. The rest of the bundle is not read.
pub fn index(path: &Path) -> Result<BundleIndex, Error> {
    index_of(path, file(path)?)
}

/// Reads the index of a bundle from these bytes. It consumes more than the index.
pub(super) fn index_of(path: &Path, bytes: impl Read) -> Result<BundleIndex, Error> {
    let mut archive = Archive::new(unpacked(path, bytes)?);
    let mut entries = archive.entries().map_err(|error| unreadable(path, &error))?.raw(true);
    read_index(path, entries.next())
}

/// Reads every byte of a bundle, and compares the images in its index with their documents.
pub fn verify(path: &Path) -> Result<Verified, Error> {
    let mut documents = Documents::default();
    let index = walk(path, |file, content| documents.read(file, content))?;
    documents.compare(&index).map_err(|reason| unusable(path, reason))?;
    let size = std::fs::metadata(path).map_err(Error::file("look at", path))?.len();
    Ok(Verified { index, size })
}

/// Passes each file to `take`, which reads the whole file or none of it. An error of `take` is reported as an error of a write.
///
/// The data that `take` has read is verified only when this function returns, or when `take` is called for the next file.
pub(super) fn walk(
    path: &Path,
    take: impl FnMut(&FilePart, &mut dyn Read) -> io::Result<()>,
) -> Result<BundleIndex, Error> {
    let parse = |text: &[u8]| {
        let index = BundleIndex::parse(text)?;
        let files = index.files.to_vec();
        Ok((index, files))
    };
    walk_after(path, NAME, parse, take)
}

/// The same for a file that begins with `first`. `parse` parses that first file and returns which files must follow.
pub(super) fn walk_after<T>(
    path: &Path,
    first: &str,
    parse: impl FnOnce(&[u8]) -> Result<(T, Vec<FilePart>), String>,
    mut take: impl FnMut(&FilePart, &mut dyn Read) -> io::Result<()>,
) -> Result<T, Error> {
    let mut archive = Archive::new(unpacked(path, file(path)?)?);
    let mut entries = archive.entries().map_err(|error| unreadable(path, &error))?.raw(true);
    let text = read_first(path, first, entries.next())?;
    let (parsed, files) = parse(&text).map_err(|reason| unusable(path, reason))?;
    for file in &files {
        let Some(entry) = entries.next() else {
            return Err(unusable(path, format!("{} is missing", file.path)));
        };
        let mut entry = entry.map_err(|error| unreadable(path, &error))?;
        check(path, &entry, file)?;
        read(path, file, &mut entry, &mut take)?;
    }
    if let Some(entry) = entries.next() {
        let entry = entry.map_err(|error| unreadable(path, &error))?;
        return Err(unusable(path, format!("the index does not name {}", name_of(&entry))));
    }
    let mut rest = archive.into_inner();
    let mut end = Vec::new();
    rest.by_ref().take(1 << 16).read_to_end(&mut end).map_err(|error| unreadable(path, &error))?;
    let more = rest.read(&mut [0; 1]).map_err(|error| unreadable(path, &error))?;
    if more > 0 || end.iter().any(|byte| *byte != 0) {
        return Err(unusable(path, "something follows its last file"));
    }
    Ok(parsed)
}

fn read_index<R: Read>(path: &Path, entry: Option<io::Result<Entry<'_, R>>>) -> Result<BundleIndex, Error> {
    let text = read_first(path, NAME, entry)?;
    BundleIndex::parse(&text).map_err(|reason| unusable(path, reason))
}

/// Reads the text of the first file, which must have this name.
fn read_first<R: Read>(
    path: &Path,
    name: &str,
    entry: Option<io::Result<Entry<'_, R>>>,
) -> Result<Vec<u8>, Error> {
    let Some(entry) = entry else { return Err(unusable(path, "it is empty")) };
    let mut entry = entry.map_err(|error| unreadable(path, &error))?;
    if entry.header().entry_type() != EntryType::Regular || &*entry.path_bytes() != name.as_bytes() {
        let what = match &*entry.path_bytes() {
            found if found == DELTA_NAME.as_bytes() && name != DELTA_NAME => {
                "it is a delta: kk artifact merge makes a bundle from it and its base".to_owned()
            }
            found if found == NAME.as_bytes() && name != NAME => "it is a complete bundle, not a \
            delta"
                .to_owned(),
            _ => format!("it does not begin with {name}: it is not a bundle of kk"),
        };
        return Err(unusable(path, what));
    }
    if entry.size() > LARGEST_INDEX {
        return Err(unusable(path, format!("its index is larger than {} MiB", LARGEST_INDEX >> 20)));
    }
    let mut text = Vec::new();
    entry.read_to_end(&mut text).map_err(|error| unreadable(path, &error))?;
    if text.len() as u64 != entry.size() {
        return Err(unusable(path, "it is truncated"));
    }
    Ok(text)
}

fn check<R: Read>(path: &Path, entry: &Entry<'_, R>, file: &FilePart) -> Result<(), Error> {
    if &*entry.path_bytes() != file.path.as_bytes() {
        let message = format!("it contains {} where the index has {}", name_of(entry), file.path);
        return Err(unusable(path, message));
    }
    if entry.header().entry_type() != EntryType::Regular {
        return Err(unusable(path, format!("{} is not a plain file", file.path)));
    }
    if entry.size() != file.size {
        return Err(unusable(path, format!("{} has {} bytes, not {}", file.path, entry.size(), file.size)));
    }
    Ok(())
}

fn read<R: Read>(
    path: &Path,
    file: &FilePart,
    entry: &mut Entry<'_, R>,
    take: &mut impl FnMut(&FilePart, &mut dyn Read) -> io::Result<()>,
) -> Result<(), Error> {
    let mut content = Tee { from: entry, seen: Hashing::new(io::sink()), failed: None };
    let taken = take(file, &mut content);
    // If `take` fails, the rest is not read: a small bundle can contain very large files.
    let rest = if taken.is_ok() { io::copy(&mut content, &mut io::sink()).map(drop) } else { Ok(()) };
    if let Some(error) = content.failed {
        return Err(unusable(path, format!("it cannot be read: {error}")));
    }
    rest.map_err(|error| unreadable(path, &error))?;
    taken.map_err(Error::file("unpack", path))?;
    let (sum, size, _) = content.seen.finish();
    if size < file.size {
        return Err(unusable(path, "it is truncated"));
    }
    if sum.as_str() != file.sha256 {
        return Err(unusable(path, format!("{} is damaged: its SHA-256 is {sum}", file.path)));
    }
    Ok(())
}

/// Records the bytes that another reader reads.
struct Tee<R> {
    from: R,
    seen: Hashing<io::Sink>,
    /// Why the bundle could not be read, as opposed to an error in the processing of its bytes.
    failed: Option<String>,
}

impl<R: Read> Read for Tee<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer).inspect_err(|error| self.failed = Some(error.to_string()))?;
        io::Write::write_all(&mut self.seen, &buffer[..read])?;
        Ok(read)
    }
}

fn name_of<R: Read>(entry: &Entry<'_, R>) -> String {
    format!("`{}`", String::from_utf8_lossy(&entry.path_bytes()).escape_debug())
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let cut = error.kind() == io::ErrorKind::UnexpectedEof;
    unusable(path, if cut { "it is truncated".to_owned() } else { format!("it cannot be read: {error}") })
}

fn file(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(Error::file("open", path))
}

/// The tar in a bundle. Its first bytes show how it is compressed.
fn unpacked<'a>(path: &Path, mut bytes: impl Read + 'a) -> Result<Box<dyn Read + 'a>, Error> {
    let mut first = Vec::new();
    let begin = bytes.by_ref().take(ZSTD.len() as u64).read_to_end(&mut first);
    begin.map_err(Error::file("read", path))?;
    let (is_gzip, is_zstd) = (first.starts_with(&GZIP), first == ZSTD);
    let bytes = BufReader::with_capacity(BUFFER, io::Cursor::new(first).chain(bytes));
    if is_gzip {
        return Ok(Box::new(MultiGzDecoder::new(bytes)));
    }
    if !is_zstd {
        return Err(unusable(path, "it is neither packed by zstd nor by gzip: it is not a bundle of kk"));
    }
    let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(Error::file("read", path))?;
    decoder.window_log_max(LARGEST_WINDOW).map_err(Error::file("read", path))?;
    Ok(Box::new(decoder))
}
