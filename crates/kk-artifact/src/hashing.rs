//! [`Hashing`]: a writer that computes the SHA-256 of the bytes that pass through it.

use std::io::{self, BufReader, Read, Write};

use sha2::{Digest as _, Sha256};

use crate::Sha256Sum;

/// Large enough that the number of system calls does not matter.
const BUFFER: usize = 256 * 1024;

pub(crate) struct Hashing<W> {
    inner: W,
    hasher: Sha256,
    size: u64,
}

impl<W: Write> Hashing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new(), size: 0 }
    }

    /// Copies all bytes from `source`.
    pub(crate) fn copy_from(&mut self, source: impl Read) -> io::Result<()> {
        io::copy(&mut BufReader::with_capacity(BUFFER, source), self).map(drop)
    }

    /// Checksum and number of the bytes, and the inner writer.
    pub(crate) fn finish(self) -> (Sha256Sum, u64, W) {
        (Sha256Sum::of(self.hasher), self.size, self.inner)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
