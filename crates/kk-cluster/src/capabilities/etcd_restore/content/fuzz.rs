//! Random databases: the content that was written is found again, and kk reads no more of a damaged file than its size permits.

use std::{cell::Cell, fs::File, os::unix::fs::FileExt as _};

use kk_test_common::fuzz::{Result, Unstructured, fuzz};

use super::{
    bolt::{Bolt, fnv},
    *,
};

const PAGE: usize = 4096;

/// An element of a page with the number of its page, or with its value.
struct Element {
    key: Vec<u8>,
    value: Vec<u8>,
    page: u64,
}

/// A file of bbolt in which the bucket `key` has this history.
struct Database {
    bytes: Vec<u8>,
    page_size: usize,
}

impl Database {
    fn new(page_size: usize) -> Self {
        Self { bytes: vec![0; 2 * page_size], page_size }
    }

    /// Adds a page that contains this text, and as many pages after it as the text needs. Returns the number of the page.
    fn add(&mut self, text: &[u8]) -> u64 {
        let number = self.bytes.len() / self.page_size;
        let pages = text.len().div_ceil(self.page_size);
        self.bytes.extend_from_slice(text);
        self.bytes.resize((number + pages) * self.page_size, 0);
        put(&mut self.bytes, number * self.page_size, &(number as u64).to_le_bytes());
        let overflow = u32::try_from(pages - 1).unwrap();
        put(&mut self.bytes, number * self.page_size + 12, &overflow.to_le_bytes());
        number as u64
    }

    /// Adds a tree of pages and returns its root.
    fn tree(&mut self, mut elements: Vec<Element>, u: &mut Unstructured<'_>) -> Result<u64> {
        let mut flags = 2;
        loop {
            let mut parents = Vec::new();
            while !elements.is_empty() {
                let most = if flags == 1 { 2 } else { 1 };
                let count = u.int_in_range(most..=20)?.min(elements.len());
                let rest = elements.split_off(count);
                let key = elements[0].key.clone();
                let page = self.add(&page(flags, 0, &elements));
                parents.push(Element { key, value: Vec::new(), page });
                elements = rest;
            }
            if parents.len() < 2 {
                return Ok(parents.pop().map_or_else(|| self.add(&page(2, 0, &[])), |root| root.page));
            }
            (elements, flags) = (parents, 1);
        }
    }

    /// Writes a meta page.
    fn meta(&mut self, at: usize, root: u64, transaction: u64) {
        let numbers = [0xED0C_DAED, 2, u32::try_from(self.page_size).unwrap(), 0];
        let mut meta: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        for number in [root, 0, 2, 100, transaction] {
            meta.extend(number.to_le_bytes());
        }
        let sum = fnv(&meta);
        meta.extend(sum.to_le_bytes());
        put(&mut self.bytes, at + 16, &meta);
    }

    fn any(history: Vec<Element>, u: &mut Unstructured<'_>) -> Result<Self> {
        let mut database = Self::new(*u.choose(&[PAGE, PAGE, 2 * PAGE])?);
        let is_small = history.len() < 30 && u.arbitrary()?;
        let bucket = if is_small {
            let header = [0; 16].to_vec();
            [header, page(2, 0, &history)].concat()
        } else {
            let root = database.tree(history, u)?;
            [root.to_le_bytes(), 7_u64.to_le_bytes()].concat()
        };
        let element = |key: &[u8], value| Element { key: key.to_vec(), value, page: 0 };
        let buckets =
            [element(b"alarm", vec![0; 32]), element(HISTORY, bucket), element(b"lease", vec![0; 32])];
        let root = database.add(&page(2, 1, &buckets));
        let newest = *u.choose(&[0, database.page_size])?;
        database.meta(newest, root, 10);
        if u.arbitrary()? {
            // The state before the last transaction, whose pages may be in use again.
            database.meta(database.page_size - newest, u.int_in_range(0..=9)?, 9);
        }
        Ok(database)
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// The text of a page: type 1 with the numbers of other pages, type 2 with values.
fn page(kind: u16, flags: u32, elements: &[Element]) -> Vec<u8> {
    let mut text = [0; 16].to_vec();
    put(&mut text, 8, &kind.to_le_bytes());
    put(&mut text, 10, &u16::try_from(elements.len()).unwrap().to_le_bytes());
    let mut data = Vec::new();
    for (index, Element { key, value, page }) in elements.iter().enumerate() {
        let position = (elements.len() - index) * 16 + data.len();
        let [position, key_size, value_size] =
            [position, key.len(), value.len()].map(|size| u32::try_from(size).unwrap().to_le_bytes());
        text.extend(match kind {
            1 => [position, key_size].concat().into_iter().chain(page.to_le_bytes()).collect::<Vec<_>>(),
            _ => [flags.to_le_bytes(), position, key_size, value_size].concat(),
        });
        data.extend_from_slice(key);
        data.extend_from_slice(value);
    }
    text.extend(data);
    text
}

/// A field of protobuf that contains bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut text = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        text.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    text.push(u8::try_from(length).unwrap());
    text.extend_from_slice(bytes);
    text
}

/// A history of objects, and the content that it describes.
fn history(u: &mut Unstructured<'_>) -> Result<(Vec<Element>, Content)> {
    let mut elements = Vec::new();
    let mut content = Content::default();
    let mut revision = 0_u64;
    for _ in 0..u.int_in_range(0..=40)? {
        revision += u.int_in_range(1..=3)?;
        let mut key = [&revision.to_be_bytes()[..], b"_", &[0; 8]].concat();
        let name = *u.choose(&[NAMESPACE, CA, b"/registry/pods/a", b"", b"/registry/secrets/b"])?;
        let (uid, ca) = (format!("uid-{revision}"), "x".repeat(u.int_in_range(0..=300)?));
        let is_deleted = u.ratio(1, 5)?;
        let is_encrypted = u.ratio(1, 10)?;
        let object = match name {
            _ if is_deleted => Vec::new(),
            _ if is_encrypted => b"k8s:enc:aescbc:v1:key:".to_vec(),
            NAMESPACE => {
                let metadata = [field(1, b"kube-system"), field(5, uid.as_bytes())].concat();
                [OBJECT.to_vec(), field(2, &field(1, &metadata))].concat()
            }
            CA => {
                let entry = |key: &[u8], value: &[u8]| field(2, &[field(1, key), field(2, value)].concat());
                let object = [entry(b"other", b"y"), entry(b"ca.crt", ca.as_bytes())].concat();
                [OBJECT.to_vec(), field(2, &object)].concat()
            }
            _ => vec![7; *u.choose(&[0, 10, 5000, 20_000])?],
        };
        let is_readable = !is_deleted && !is_encrypted;
        if name == NAMESPACE {
            content.is_kubernetes = !is_deleted;
            content.uid = is_readable.then_some(uid);
        } else if name == CA {
            content.ca = is_readable.then(|| kk_util::sha256(&ca));
        }
        if is_deleted {
            key.push(b't');
        }
        let value = [field(1, name), vec![0x10, 5], field(5, &object)].concat();
        elements.push(Element { key, value, page: 0 });
    }
    content.revision = revision;
    Ok((elements, content))
}

/// Changes numbers of the structure, or truncates the file.
fn damage(database: &mut Database, u: &mut Unstructured<'_>) -> Result<()> {
    let pages = database.bytes.len() / database.page_size;
    for _ in 0..u.int_in_range(1..=3)? {
        let page = u.choose_index(pages)? * database.page_size;
        let number: u32 = *u.choose(&[0, 1, 2, 3, 5, 16, 200, 4096, 65_535, u32::MAX])?;
        let element = page + 16 + u.int_in_range(0..=20)? * 16;
        match u.int_in_range(0..=7)? {
            0 => put(&mut database.bytes, page + 8, &number.to_le_bytes()[..2]),
            1 => put(&mut database.bytes, page + 10, &number.to_le_bytes()[..2]),
            2 => put(&mut database.bytes, page + 12, &number.to_le_bytes()),
            3 => put(&mut database.bytes, element + u.int_in_range(0..=3)? * 4, &number.to_le_bytes()),
            // All elements name the same page or value.
            4 => {
                let first = database.bytes.get(page + 16..page + 32).unwrap_or_default().to_vec();
                put(&mut database.bytes, page + 10, &20_u16.to_le_bytes());
                (1..20).for_each(|index| put(&mut database.bytes, page + 16 + index * 16, &first));
            }
            5 => database.meta(0, u64::from(number), 11),
            6 => database.bytes.truncate(u.choose_index(database.bytes.len() + 1)?),
            _ => {
                let at = u.choose_index(database.bytes.len().max(1))?;
                let bit = 1 << u.int_in_range(0..=7)?;
                database.bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bit);
            }
        }
    }
    Ok(())
}

#[test]
fn fuzz_databases_of_etcd() {
    let file = tempfile::tempfile().unwrap();
    let write = |bytes: &[u8]| {
        file.set_len(0).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        bytes.len() as u64
    };
    fuzz("databases of etcd", |u| {
        let (elements, content) = history(u)?;
        let mut database = Database::any(elements, u)?;
        // The checksum of a snapshot is not part of the database.
        let size = write(&[&database.bytes[..], &[0; 32]].concat());
        assert_eq!(read(&file, size).unwrap(), content);

        damage(&mut database, u)?;
        let size = write(&database.bytes);
        let seen = Cell::new(0);
        let visited = visit_all(&file, size, &seen);
        // The pages of the list of buckets, and the pages of a bucket.
        assert!(seen.get() <= 2 * size, "{} of {size}", seen.get());
        Ok(visited.is_ok())
    });
}

/// Visits all keys of the history and counts the bytes.
fn visit_all(file: &File, size: u64, seen: &Cell<u64>) -> io::Result<()> {
    Bolt::open(file, size)?.each(HISTORY, &mut |key, value| {
        seen.set(seen.get() + (key.len() + value.len()) as u64);
        Ok(())
    })
}

/// A file whose history is in this page.
fn with_history(text: &[u8]) -> Database {
    let mut database = Database::new(PAGE);
    let history = database.add(text);
    let bucket = [history.to_le_bytes(), 0_u64.to_le_bytes()].concat();
    let root = database.add(&page(2, 1, &[Element { key: HISTORY.to_vec(), value: bucket, page: 0 }]));
    database.meta(0, root, 1);
    database
}

fn refusal(database: &Database) -> (String, u64) {
    let (file, seen) = (tempfile::tempfile().unwrap(), Cell::new(0));
    file.write_all_at(&database.bytes, 0).unwrap();
    let error = visit_all(&file, database.bytes.len() as u64, &seen).unwrap_err();
    (error.to_string(), seen.get())
}

#[test]
fn long_pages_that_are_named_often_are_not_read_often() {
    let value = || Element { key: Vec::new(), value: vec![0; 50 * PAGE], page: 0 };
    let child = |page| Element { key: Vec::new(), value: Vec::new(), page };
    let mut database = Database::new(PAGE);
    let long = database.add(&page(2, 0, &[value()]));
    let history = database.add(&page(1, 0, &(0..100).map(|_| child(long)).collect::<Vec<_>>()));
    let bucket = [history.to_le_bytes(), 0_u64.to_le_bytes()].concat();
    let root = database.add(&page(2, 1, &[Element { key: HISTORY.to_vec(), value: bucket, page: 0 }]));
    database.meta(0, root, 1);
    let (error, seen) = refusal(&database);
    assert_eq!(error, "a page is in its tree more than once");
    assert!(seen <= 2 * database.bytes.len() as u64, "{seen}");
}

#[test]
fn values_that_overlap_are_refused() {
    let elements: Vec<_> =
        (0..100).map(|_| Element { key: Vec::new(), value: vec![0; PAGE], page: 0 }).collect();
    let mut text = page(2, 0, &elements);
    // All elements name the value of the first.
    let start = 16 + 100 * 16;
    for index in 0..100 {
        let at = 16 + index * 16;
        put(&mut text, at + 4, &u32::try_from(start - at).unwrap().to_le_bytes());
    }
    text.truncate(start + PAGE);
    let (error, seen) = refusal(&with_history(&text));
    assert_eq!(error, "values overlap");
    assert!(seen <= 2 * PAGE as u64, "{seen}");
}

#[test]
fn the_image_of_a_meta_page_in_a_value_is_not_a_meta_page() {
    let value = vec![0; 8 * PAGE];
    let mut database = with_history(&page(2, 0, &[Element { key: b"1".to_vec(), value, page: 0 }]));
    let (file, seen) = (tempfile::tempfile().unwrap(), Cell::new(0));
    for at in [4 * PAGE, 8 * PAGE] {
        // Its root is a page that contains no list of buckets.
        database.meta(at, 3, 99);
    }
    file.write_all_at(&database.bytes, 0).unwrap();
    visit_all(&file, database.bytes.len() as u64, &seen).unwrap();
    assert_eq!(seen.get(), 8 * PAGE as u64 + 1);
}
