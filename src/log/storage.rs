//! What the log needs of a disk, as two small traits, and the real one, [`Fs`]. [`super::mem::Mem`] is the other. Synchronous: a caller that
//! must not block runs it on its directory's I/O thread. No knowledge of what the files mean.

use std::fs::{self, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::core::types::Millis;

/// What a directory holds under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name within the directory. Names that are not UTF-8 are nobody's and left out.
    pub name: String,
    /// Bytes; 0 for a directory.
    pub len: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// A directory tree. Calls may come from several threads.
pub trait Storage: Send + Sync + 'static {
    /// An open file of it.
    type File: File;
    /// Opens a file that is there, to read and write.
    fn open(&self, path: &Path) -> io::Result<Self::File>;
    /// Makes an empty file, or empties the one that is there.
    fn create(&self, path: &Path) -> io::Result<Self::File>;
    /// Renames a file or directory; takes the place of a file that is there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Unlinks a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// What the directory holds, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;
    /// Makes one directory; fine if it is there.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes names made, changed and removed in the directory so far survive a power cut.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// An open file. Positions are bytes from its start.
pub trait File: Send + Sync + 'static {
    /// Reads up to `buf.len()` bytes; fewer only at the end of the file.
    fn pread(&self, at: u64, buf: &mut [u8]) -> io::Result<usize>;
    /// Writes some bytes of `bufs` in order, as one system call, and says how many.
    fn pwritev(&self, at: u64, bufs: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Makes the bytes written so far survive a power cut (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;
    /// Cuts the file, or lengthens it with zeros. Also gives back blocks reserved past the end.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Bytes of the file.
    fn len(&self) -> io::Result<u64>;
    /// Whether it has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Reserves blocks for that many bytes without changing the length; a hint.
    fn reserve(&self, len: u64) -> io::Result<()>;
    /// When it was last written to.
    fn modified(&self) -> io::Result<Millis>;
    /// Makes it look as if it had been written to last at that time.
    fn set_modified(&self, at: Millis) -> io::Result<()>;
}

/// Bytes that one write call takes at most: page-aligned writes of a megabyte and more cost twice as much per byte.
const WRITE_PIECE: usize = 512 * 1024;

/// Writes `head` and then `body` at `at`, in pieces of at most 512 KiB. On an error part of it may be there.
pub fn write_at<F: File>(file: &F, mut at: u64, mut head: &[u8], mut body: &[u8]) -> io::Result<()> {
    while !head.is_empty() || !body.is_empty() {
        let first = head.len().min(WRITE_PIECE);
        let second = body.len().min(WRITE_PIECE - first);
        let n = match file.pwritev(at, &[IoSlice::new(&head[..first]), IoSlice::new(&body[..second])]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        at += n as u64;
        let of_head = n.min(first);
        head = &head[of_head..];
        body = &body[n - of_head..];
    }
    Ok(())
}

/// Reads exactly `buf.len()` bytes; [`io::ErrorKind::UnexpectedEof`] if the file ends before.
pub fn read_exact_at<F: File>(file: &F, at: u64, buf: &mut [u8]) -> io::Result<()> {
    if file.pread(at, buf)? < buf.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// The whole file, of at most `limit` bytes.
pub fn read_file<S: Storage>(storage: &S, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = storage.open(path)?;
    let len = file.len()?;
    if len > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{len} bytes are more than the {limit} such a file may have")));
    }
    let mut bytes = vec![0; len as usize];
    let n = file.pread(0, &mut bytes)?;
    bytes.truncate(n);
    Ok(bytes)
}

/// Writes a small file so that readers find the old one or the new one: `<path>.tmp`, then rename. With `durable` also after a power cut.
pub fn replace_file<S: Storage>(storage: &S, path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let mut tmp = path.as_os_str().to_owned();
    tmp.push(".tmp");
    let file = storage.create(tmp.as_ref())?;
    write_at(&file, 0, &[], bytes)?;
    if durable {
        file.sync_data()?;
    }
    storage.rename(tmp.as_ref(), path)?;
    match path.parent() {
        Some(dir) if durable => storage.sync_dir(dir),
        _ => Ok(()),
    }
}

/// Whether the error says that there is no room: disk or quota.
pub fn is_full(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The file system of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fs;

/// A file of it. `AsFd` is for sendfile.
#[derive(Debug)]
pub struct FsFile(fs::File);

impl AsFd for FsFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Storage for Fs {
    type File = FsFile;

    fn open(&self, path: &Path) -> io::Result<FsFile> {
        Ok(FsFile(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn create(&self, path: &Path) -> io::Result<FsFile> {
        Ok(FsFile(OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let mut out = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            match entry.metadata() {
                Ok(meta) => out.push(Entry { name, len: if meta.is_dir() { 0 } else { meta.len() }, is_dir: meta.is_dir() }),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(out)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            other => other,
        }
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }
}

impl File for FsFile {
    fn pread(&self, mut at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.0.read_at(&mut buf[done..], at) {
                Ok(0) => break,
                Ok(n) => {
                    done += n;
                    at += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn pwritev(&self, at: u64, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::pwritev(&self.0, bufs, at)?)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::KEEP_SIZE, 0, len.max(1)) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            other => Ok(other?),
        }
    }

    fn modified(&self) -> io::Result<Millis> {
        let meta = self.0.metadata()?;
        Ok(Millis(meta.mtime() * 1000 + meta.mtime_nsec() / 1_000_000))
    }

    fn set_modified(&self, at: Millis) -> io::Result<()> {
        let at = rustix::fs::Timespec { tv_sec: at.0.div_euclid(1000), tv_nsec: (at.0.rem_euclid(1000) * 1_000_000) as _ };
        Ok(rustix::fs::futimens(&self.0, &rustix::fs::Timestamps { last_access: at, last_modification: at })?)
    }
}
