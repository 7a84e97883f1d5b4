//! Writes a bundle: next to its target path, and renamed when it is complete.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

use super::index::{BundleIndex, FilePart, NAME};
use crate::hashing::Hashing;
use crate::{Error, Sha256Sum};

/// zstd's default: layers are compressed already, so a higher level would only take time.
const ZSTD_LEVEL: i32 = 3;
const BUFFER: usize = 1 << 20;

/// The source of a file's bytes in the bundle.
pub(super) enum Source {
    File(PathBuf),
    Text(Vec<u8>),
}

/// Writes a bundle: `index` and its files; `sources` has the same order. `wrote` receives the number of bytes.
pub(super) fn write(
    path: &Path,
    index: &BundleIndex,
    sources: &[Source],
    wrote: &dyn Fn(u64),
) -> Result<(), Error> {
    let files: Vec<_> = index.files.iter().zip(sources).collect();
    write_after(path, (NAME, &index.text()), &files, wrote)
}

/// Writes a first file, given by name and text, and the following files.
pub(super) fn write_after(
    path: &Path,
    first: (&str, &[u8]),
    files: &[(&FilePart, &Source)],
    wrote: &dyn Fn(u64),
) -> Result<(), Error> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let cannot = |error| Error::file("write", path)(error);
    let result = create(&part).map_err(cannot).and_then(|file| {
        let mut packer = Packer::new(path, file).map_err(cannot)?;
        pack(&mut packer, path, first, files, wrote)?;
        packer
            .finish()
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&part, path))
            .map_err(cannot)
    });
    if result.is_err() {
        // The error is reported; a partial file that cannot be removed either is overwritten next time.
        let _ = fs::remove_file(&part);
    }
    result
}

fn create(part: &Path) -> io::Result<File> {
    if let Some(dir) = part.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        fs::create_dir_all(dir)?;
    }
    File::create(part)
}

fn pack(
    out: &mut Packer,
    path: &Path,
    (name, text): (&str, &[u8]),
    files: &[(&FilePart, &Source)],
    wrote: &dyn Fn(u64),
) -> Result<(), Error> {
    let cannot = |error| Error::file("write", path)(error);
    begin(out, name, text.len() as u64).and_then(|()| out.write_all(text)).map_err(cannot)?;
    end(out, text.len() as u64).map_err(cannot)?;
    for (file, source) in files {
        begin(out, &file.path, file.size).map_err(cannot)?;
        let mut hashing = Hashing::new(&mut *out);
        let from = match source {
            Source::Text(text) => {
                hashing.write_all(text).map_err(cannot)?;
                Path::new(&file.path)
            }
            Source::File(from) => {
                let opened = File::open(from).map_err(Error::file("open", from))?;
                let mut opened = BufReader::with_capacity(BUFFER, opened.take(file.size));
                io::copy(&mut opened, &mut hashing).map_err(cannot)?;
                from
            }
        };
        let (sum, size, _) = hashing.finish();
        if size != file.size || sum.as_str() != file.sha256 {
            return Err(damaged(from, &sum));
        }
        end(out, file.size).map_err(cannot)?;
        wrote(file.size);
    }
    // Two empty blocks end a tar.
    out.write_all(&[0; 1024]).map_err(cannot)
}

/// The file on the disk differs from the content that was verified when it was fetched. It is removed, so that the next run
/// fetches it again.
fn damaged(file: &Path, sum: &Sha256Sum) -> Error {
    let _ = fs::remove_file(file);
    Error::Damaged { path: file.to_owned(), actual: sum.clone() }
}

/// Begins a file with a header that contains no data about the machine or the time.
fn begin(out: &mut Packer, path: &str, size: u64) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_path(path)?;
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(size);
    header.set_cksum();
    out.write_all(header.as_bytes())
}

/// Pads the last block of a file to 512 bytes.
fn end(out: &mut Packer, size: u64) -> io::Result<()> {
    let rest = usize::try_from(size % 512).expect("below 512");
    if rest == 0 { Ok(()) } else { out.write_all(&[0; 512][rest..]) }
}

/// Compresses by the extension of the bundle's name.
enum Packer {
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
    Gzip(GzEncoder<BufWriter<File>>),
}

impl Packer {
    fn new(path: &Path, file: File) -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER, file);
        if path.extension().is_some_and(|extension| extension == "gz" || extension == "tgz") {
            return Ok(Self::Gzip(GzEncoder::new(file, Compression::fast())));
        }
        let mut encoder = zstd::stream::write::Encoder::new(file, ZSTD_LEVEL)?;
        encoder.include_checksum(true)?;
        // The bytes do not depend on the number of threads, as long as there is at least one.
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(8);
        encoder.multithread(u32::try_from(threads).unwrap_or(1))?;
        Ok(Self::Zstd(encoder))
    }

    fn finish(self) -> io::Result<File> {
        let file = match self {
            Self::Zstd(encoder) => encoder.finish()?,
            Self::Gzip(encoder) => encoder.finish()?,
        };
        file.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

impl Write for Packer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Zstd(encoder) => encoder.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Zstd(encoder) => encoder.flush(),
            Self::Gzip(encoder) => encoder.flush(),
        }
    }
}
