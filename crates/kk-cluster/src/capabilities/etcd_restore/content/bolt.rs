//! Reads the file of a bbolt database page by page (go.etcd.io/bbolt, `internal/common/page.go`, `meta.go`, `bucket.go`). Numbers
//! have the byte order of the machine that wrote the file; all machines that etcd supports are little-endian.

use std::{cell::Cell, fs::File, io, os::unix::fs::FileExt as _};

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
const PAGE_HEADER: usize = 16;
const ELEMENT_SIZE: usize = 16;
/// The number of bytes of a meta page that its checksum covers.
const META: usize = 56;
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const IS_BUCKET: u32 = 1;
/// The maximum depth of a tree of pages; real trees are far lower. A malicious file may contain a cycle.
const DEEPEST: usize = 32;
/// The maximum size of a page with values, in bytes. bbolt splits a page with more than four keys, and a value of etcd has far less
/// than a quarter of this.
const LARGEST_PAGE: u64 = 128 << 20;
/// Page sizes at which the second meta page is searched.
const PAGE_SIZES: [u64; 5] = [4096, 8192, 16_384, 32_768, 65_536];

/// A database in a file, whose pages end at `size`.
pub(super) struct Bolt<'a> {
    file: &'a File,
    size: u64,
    page_size: u64,
    root: u64,
    /// The number of pages that may still be read. A tree contains each page once, whereas a malicious file may contain the same
    /// long or wide page very often.
    left: Cell<u64>,
}

/// Receives a key and its value.
type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> io::Result<()> + 'a;

/// Receives a key, its value, and whether the value is a bucket.
type Element<'a> = dyn FnMut(&[u8], &[u8], bool) -> io::Result<()> + 'a;

impl<'a> Bolt<'a> {
    /// Opens a database by the newer one of its two meta pages.
    pub(super) fn open(file: &'a File, size: u64) -> io::Result<Self> {
        let first = meta(file, 0);
        // The second meta page is the second page. At other positions is the content of the cluster, in which any user of the
        // cluster may have stored the image of a meta page.
        let sizes = first.as_ref().map_or(PAGE_SIZES.to_vec(), |first| vec![first.page_size]);
        let second = sizes.into_iter().find_map(|at| meta(file, at).filter(|meta| meta.page_size == at));
        let newest = first.into_iter().chain(second).max_by_key(|meta| meta.transaction);
        let Meta { page_size, root, .. } = newest.ok_or_else(|| damaged("it is not a database of etcd"))?;
        Ok(Self { file, size, page_size, root, left: Cell::new(size / page_size) })
    }

    /// Visits all keys of a bucket with their values, in order. The list of buckets and the bucket share no page.
    pub(super) fn each(&self, bucket: &[u8], visit: &mut Visit<'_>) -> io::Result<()> {
        let mut root = None;
        self.walk(self.root, 0, &mut |key, value, is_bucket| {
            if is_bucket && key == bucket {
                root = Some((number(value, 0)?, value.to_vec()));
            }
            Ok(())
        })?;
        let mut plain = |key: &[u8], value: &[u8], is_bucket: bool| {
            if is_bucket { Ok(()) } else { visit(key, value) }
        };
        match root {
            None => Ok(()),
            // The value of a small bucket contains its page.
            Some((0, value)) => self.page(value.get(ELEMENT_SIZE..).unwrap_or_default(), 0, &mut plain),
            Some((page, _)) => self.walk(page, 0, &mut plain),
        }
    }

    fn walk(&self, page: u64, depth: usize, visit: &mut Element<'_>) -> io::Result<()> {
        let at = page.checked_mul(self.page_size).ok_or_else(|| damaged("a page lies outside"))?;
        let mut header = [0; PAGE_HEADER];
        self.file.read_exact_at(&mut header, at)?;
        let pages = u64::from(number32(&header, 12)?) + 1;
        let mut length = pages.saturating_mul(self.page_size);
        if at.saturating_add(length) > self.size {
            return Err(damaged("a page lies outside"));
        }
        let left = self.left.get().checked_sub(pages);
        self.left.set(left.ok_or_else(|| damaged("a page is in its tree more than once"))?);
        if number16(&header, 8)? == BRANCH {
            // The keys after the table of children are not needed. The pages above stay in memory.
            let table = PAGE_HEADER + usize::from(number16(&header, 10)?) * ELEMENT_SIZE;
            length = length.min(table as u64);
        } else if length > LARGEST_PAGE {
            return Err(damaged("a page is too large"));
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| damaged("a page is too large"))?];
        self.file.read_exact_at(&mut bytes, at)?;
        self.page(&bytes, depth, visit)
    }

    fn page(&self, page: &[u8], depth: usize, visit: &mut Element<'_>) -> io::Result<()> {
        let (flags, count) = (number16(page, 8)?, usize::from(number16(page, 10)?));
        let mut elements = (0..count).map(|index| PAGE_HEADER + index * ELEMENT_SIZE);
        match flags {
            BRANCH if depth < DEEPEST => {
                elements.try_for_each(|at| self.walk(number(page, at + 8)?, depth + 1, visit))
            }
            LEAF => {
                // Each byte of a page belongs to one key or value.
                let mut unused = page.len();
                elements.try_for_each(|at| {
                    let [flags, position, key, value] = [
                        number32(page, at)?,
                        number32(page, at + 4)?,
                        number32(page, at + 8)?,
                        number32(page, at + 12)?,
                    ];
                    let start = at + position as usize;
                    let (key, value) = (key as usize, value as usize);
                    let bytes = |from: usize, length: usize| {
                        page.get(from..from.saturating_add(length))
                            .ok_or_else(|| damaged("a value lies outside"))
                    };
                    let (key, value) = (bytes(start, key)?, bytes(start + key, value)?);
                    let left = unused.checked_sub(key.len() + value.len());
                    unused = left.ok_or_else(|| damaged("values overlap"))?;
                    visit(key, value, flags & IS_BUCKET != 0)
                })
            }
            _ => Err(damaged("a page has an unknown type")),
        }
    }
}

/// The content of a meta page.
struct Meta {
    page_size: u64,
    root: u64,
    transaction: u64,
}

/// The meta page at this position, if it is valid.
fn meta(file: &File, at: u64) -> Option<Meta> {
    let mut page = [0; PAGE_HEADER + META + 8];
    file.read_exact_at(&mut page, at).ok()?;
    let meta = &page[PAGE_HEADER..];
    let known = number32(meta, 0).ok()? == MAGIC && number32(meta, 4).ok()? == VERSION;
    let whole = number(meta, META).ok()? == fnv(&meta[..META]);
    let page_size = u64::from(number32(meta, 8).ok()?);
    let (root, transaction) = (number(meta, 16).ok()?, number(meta, 48).ok()?);
    (known && whole && PAGE_SIZES.contains(&page_size)).then_some(Meta { page_size, root, transaction })
}

/// FNV-1a with 64 bits, the checksum of bbolt's meta pages.
pub(super) fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> io::Result<[u8; N]> {
    let part = bytes.get(at..at.saturating_add(N)).and_then(|part| part.try_into().ok());
    part.ok_or_else(|| damaged("a page is cut off"))
}

fn number(bytes: &[u8], at: usize) -> io::Result<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

fn number32(bytes: &[u8], at: usize) -> io::Result<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn number16(bytes: &[u8], at: usize) -> io::Result<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn damaged(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    /// A database of pages, whose root is page 2. Pages 0 and 1 are for metadata.
    struct Crafted(Vec<u8>);

    impl Crafted {
        fn new(pages: usize) -> Self {
            let mut crafted = Self(vec![0; pages * PAGE]);
            let meta = PAGE_HEADER;
            crafted.put(meta, &MAGIC.to_le_bytes());
            crafted.put(meta + 4, &VERSION.to_le_bytes());
            crafted.put(meta + 8, &4096_u32.to_le_bytes());
            crafted.put(meta + 16, &2_u64.to_le_bytes());
            let sum = fnv(&crafted.0[meta..meta + META]);
            crafted.put(meta + META, &sum.to_le_bytes());
            crafted
        }

        fn put(&mut self, at: usize, value: &[u8]) {
            self.0[at..at + value.len()].copy_from_slice(value);
        }

        fn header(&mut self, page: usize, flags: u16, count: u16, overflow: u32) {
            self.put(page * PAGE + 8, &flags.to_le_bytes());
            self.put(page * PAGE + 10, &count.to_le_bytes());
            self.put(page * PAGE + 12, &overflow.to_le_bytes());
        }

        /// A page with these children.
        fn branch(mut self, page: usize, overflow: u32, children: &[u64]) -> Self {
            self.header(page, BRANCH, u16::try_from(children.len()).unwrap(), overflow);
            for (index, child) in children.iter().enumerate() {
                self.put(page * PAGE + PAGE_HEADER + index * ELEMENT_SIZE + 8, &child.to_le_bytes());
            }
            self
        }

        /// A page with values of this size, which all begin after the table of elements.
        fn leaf(mut self, page: usize, overflow: u32, count: u16, value: u32) -> Self {
            self.header(page, LEAF, count, overflow);
            let table = usize::from(count) * ELEMENT_SIZE;
            for index in (0..table).step_by(ELEMENT_SIZE) {
                let at = page * PAGE + PAGE_HEADER + index;
                self.put(at + 4, &u32::try_from(table - index).unwrap().to_le_bytes());
                self.put(at + 12, &value.to_le_bytes());
            }
            self
        }

        /// The number of visited values, and the error. The file is as long as `pages`.
        fn walk(&self, pages: u64) -> (usize, String) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("crafted.db");
            std::fs::write(&path, &self.0).unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            file.set_len(pages * PAGE as u64).unwrap();
            let bolt = Bolt::open(&file, pages * PAGE as u64).unwrap();
            let mut visited = 0;
            let visit = &mut |_: &[u8], _: &[u8], _| {
                visited += 1;
                Ok(())
            };
            let result = bolt.walk(bolt.root, 0, visit);
            (visited, result.map_or_else(|error| error.to_string(), |()| String::new()))
        }
    }

    #[test]
    fn no_page_is_read_twice_or_too_large() {
        const TWICE: &str = "a page is in its tree more than once";
        let gibibyte = 1 << 18;
        let many = [3; 200];
        for (name, crafted, pages, visited, error) in [
            ("a tree", Crafted::new(6).branch(2, 0, &[3, 5]).leaf(3, 1, 2, 2000).leaf(5, 0, 1, 9), 6, 3, ""),
            ("a cycle", Crafted::new(3).branch(2, 0, &[2; 200]), 3, 0, TWICE),
            ("a leaf of most of the file", Crafted::new(9).branch(2, 0, &many).leaf(3, 5, 1, 9), 9, 1, TWICE),
            (
                "a branch of most of the file",
                Crafted::new(9).branch(2, 0, &many).branch(3, 5, &many),
                9,
                0,
                TWICE,
            ),
            ("one value many times", Crafted::new(3).leaf(2, 0, 200, 700), 3, 5, "values overlap"),
            ("a huge leaf", Crafted::new(3).leaf(2, (1 << 18) - 3, 1, 9), gibibyte, 0, "a page is too large"),
            ("beyond the end", Crafted::new(3).leaf(2, 1, 1, 9), 3, 0, "a page lies outside"),
        ] {
            assert_eq!(crafted.walk(pages), (visited, error.to_owned()), "{name}");
        }
    }
}
