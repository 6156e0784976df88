//! A storage in memory, deterministic, that fails on request: a crash after the n-th change (keeping all, or only what was synced, or a torn
//! mixture), short writes, a full disk, errors on read, write and sync, flipped bits. For tests and the simulator.
//!
//! Its power cut is as unkind as POSIX allows: bytes count from `sync_data`, names from `sync_dir` of their directory.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::storage::{Entry, File, Storage};
pub use super::tear::Crash;
use super::tear::{next, tear};
use crate::core::types::Millis;

/// The storage; clones are the same one.
#[derive(Clone, Default)]
pub struct Mem(Arc<Mutex<World>>);

/// An open file.
pub struct MemFile {
    world: Mem,
    inode: usize,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The change with that number (from 1, see [`Mem::changes`]) is not made, or if it is a write only its first half is; from then on
    /// everything fails until [`Mem::restart`].
    CrashAt(u64),
    /// The write that is that change takes only so many bytes.
    ShortWriteAt(u64, usize),
    /// So many bytes are free; a write that needs more writes what fits, and then fails.
    Free(u64),
    /// Reads of this file fail.
    Read(PathBuf),
    /// Syncs fail.
    Sync,
    /// Cutting and lengthening files fails.
    SetLen,
}

#[derive(Default)]
struct World {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    dirs: BTreeSet<PathBuf>,
    durable_dirs: BTreeSet<PathBuf>,
    changes: u64,
    crashed: bool,
    faults: Vec<Fault>,
    now: Millis,
}

#[derive(Default, Clone)]
struct Inode {
    data: Vec<u8>,
    durable: Vec<u8>,
    modified: Millis,
}

fn crashed() -> io::Error {
    io::Error::other("the machine has crashed")
}

impl World {
    /// Counts a change that is about to be made; whether the machine dies during it.
    fn change(&mut self) -> io::Result<bool> {
        if self.crashed {
            return Err(crashed());
        }
        self.changes += 1;
        self.crashed = self.faults.contains(&Fault::CrashAt(self.changes));
        Ok(self.crashed)
    }

    fn whole_change(&mut self) -> io::Result<()> {
        if self.change()? { Err(crashed()) } else { Ok(()) }
    }

    fn alive(&self) -> io::Result<()> {
        if self.crashed { Err(crashed()) } else { Ok(()) }
    }

    fn parent_is_there(&self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(dir) if self.dirs.contains(dir) || dir == Path::new("/") => Ok(()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn inode(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Mem {
    /// An empty storage with a root directory `/`.
    pub fn new() -> Mem {
        Mem::default()
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many changes (writes, syncs, names made, renamed and removed, lengths set) were made or tried so far.
    pub fn changes(&self) -> u64 {
        self.world().changes
    }

    /// Adds a fault.
    pub fn fail(&self, fault: Fault) {
        self.world().faults.push(fault);
    }

    /// Takes all faults away.
    pub fn heal(&self) {
        self.world().faults.clear();
    }

    /// Whether [`Fault::CrashAt`] has struck.
    pub fn has_crashed(&self) -> bool {
        self.world().crashed
    }

    /// Comes back after a crash (or after pulling the plug now) with what it leaves; faults are gone. Files open before are stale.
    pub fn restart(&self, crash: Crash) {
        let mut world = self.world();
        let world = &mut *world;
        world.faults.clear();
        world.crashed = false;
        let mut seed = match crash {
            Crash::Process => return,
            Crash::Power => 0,
            Crash::Torn(seed) => seed,
        };
        if crash == Crash::Power || next(&mut seed).is_multiple_of(2) {
            world.names = world.durable_names.clone();
            world.dirs = world.durable_dirs.clone();
        }
        let dirs = &world.dirs;
        world.names.retain(|path, _| path.parent().is_some_and(|dir| dirs.contains(dir) || dir == Path::new("/")));
        for inode in &mut world.inodes {
            match crash {
                Crash::Torn(_) => inode.data = tear(&inode.durable, &inode.data, &mut seed),
                _ => inode.data = inode.durable.clone(),
            }
            // What is on the disk now is on the disk.
            inode.durable = inode.data.clone();
        }
        world.durable_names = world.names.clone();
        world.durable_dirs = world.dirs.clone();
    }

    /// Inverts one bit of a file, on the disk too.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        let mut world = self.world();
        let inode = world.inode(path)?;
        let inode = &mut world.inodes[inode];
        for bytes in [&mut inode.data, &mut inode.durable] {
            if let Some(byte) = bytes.get_mut((bit / 8) as usize) {
                *byte ^= 1 << (bit % 8);
            }
        }
        Ok(())
    }

    /// The clock that [`File::modified`] is stamped from.
    pub fn set_now(&self, now: Millis) {
        self.world().now = now;
    }
}

impl Storage for Mem {
    type File = MemFile;

    fn open(&self, path: &Path) -> io::Result<MemFile> {
        let world = self.world();
        world.alive()?;
        Ok(MemFile { world: self.clone(), inode: world.inode(path)? })
    }

    fn create(&self, path: &Path) -> io::Result<MemFile> {
        let mut world = self.world();
        world.whole_change()?;
        world.parent_is_there(path)?;
        let inode = match world.names.get(path) {
            Some(inode) => *inode,
            None => {
                world.inodes.push(Inode::default());
                let inode = world.inodes.len() - 1;
                world.names.insert(path.to_owned(), inode);
                inode
            }
        };
        let now = world.now;
        world.inodes[inode].data.clear();
        world.inodes[inode].modified = now;
        Ok(MemFile { world: self.clone(), inode })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.whole_change()?;
        world.parent_is_there(to)?;
        if world.dirs.remove(from) {
            world.dirs.insert(to.to_owned());
            let moved: Vec<_> = world.names.keys().filter(|p| p.parent() == Some(from)).cloned().collect();
            for path in moved {
                let inode = world.inode(&path)?;
                world.names.remove(&path);
                world.names.insert(to.join(path.file_name().unwrap_or_default()), inode);
            }
            return Ok(());
        }
        let inode = world.inode(from)?;
        world.names.remove(from);
        world.names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.whole_change()?;
        world.names.remove(path).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.whole_change()?;
        if world.names.keys().any(|p| p.parent() == Some(path)) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        if world.dirs.remove(path) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let world = self.world();
        world.alive()?;
        if dir != Path::new("/") && !world.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let name = |path: &Path| path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        let files = world.names.iter().filter(|(path, _)| path.parent() == Some(dir));
        let mut out: Vec<_> =
            files.map(|(path, inode)| Entry { name: name(path), len: world.inodes[*inode].data.len() as u64, is_dir: false }).collect();
        out.extend(world.dirs.iter().filter(|path| path.parent() == Some(dir)).map(|path| Entry {
            name: name(path),
            len: 0,
            is_dir: true,
        }));
        Ok(out)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.whole_change()?;
        world.parent_is_there(path)?;
        world.dirs.insert(path.to_owned());
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.whole_change()?;
        if world.faults.contains(&Fault::Sync) {
            return Err(io::Error::other("sync failed"));
        }
        let world = &mut *world;
        world.durable_names.retain(|p, _| p.parent() != Some(path));
        world.durable_names.extend(world.names.iter().filter(|(p, _)| p.parent() == Some(path)).map(|(p, i)| (p.clone(), *i)));
        world.durable_dirs.retain(|p| p.parent() != Some(path));
        world.durable_dirs.extend(world.dirs.iter().filter(|p| p.parent() == Some(path)).cloned());
        Ok(())
    }
}

impl File for MemFile {
    fn pread(&self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let world = self.world.world();
        world.alive()?;
        let failing = |fault: &Fault| matches!(fault, Fault::Read(path) if world.names.get(path) == Some(&self.inode));
        if world.faults.iter().any(failing) {
            return Err(io::Error::other("read failed"));
        }
        let data = &world.inodes[self.inode].data;
        let rest = data.get(at as usize..).unwrap_or_default();
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn pwritev(&self, at: u64, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut world = self.world.world();
        let dies = world.change()?;
        let bytes: Vec<u8> = bufs.iter().flat_map(|b| b.iter().copied()).collect();
        let mut take = if dies { bytes.len() / 2 } else { bytes.len() };
        let changes = world.changes;
        let end = world.inodes[self.inode].data.len() as u64;
        let mut full = false;
        for fault in &mut world.faults {
            match fault {
                Fault::ShortWriteAt(n, most) if *n == changes => take = take.min(*most),
                Fault::Free(free) => {
                    let room = (end.saturating_sub(at) + *free) as usize;
                    full = take > room && room == 0;
                    take = take.min(room);
                    *free -= (at + take as u64).saturating_sub(end).min(*free);
                }
                _ => {}
            }
        }
        let now = world.now;
        let inode = &mut world.inodes[self.inode];
        inode.modified = now;
        let at = at as usize;
        if inode.data.len() < at + take {
            inode.data.resize(at + take, 0);
        }
        inode.data[at..at + take].copy_from_slice(&bytes[..take]);
        match (dies, full) {
            (true, _) => Err(crashed()),
            (_, true) => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(take),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut world = self.world.world();
        world.whole_change()?;
        if world.faults.contains(&Fault::Sync) {
            return Err(io::Error::other("sync failed"));
        }
        let inode = &mut world.inodes[self.inode];
        inode.durable = inode.data.clone();
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut world = self.world.world();
        world.whole_change()?;
        if world.faults.contains(&Fault::SetLen) {
            return Err(io::Error::other("set_len failed"));
        }
        world.inodes[self.inode].data.resize(len as usize, 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let world = self.world.world();
        world.alive()?;
        Ok(world.inodes[self.inode].data.len() as u64)
    }

    fn reserve(&self, _len: u64) -> io::Result<()> {
        self.world.world().alive()
    }

    fn modified(&self) -> io::Result<Millis> {
        let world = self.world.world();
        world.alive()?;
        Ok(world.inodes[self.inode].modified)
    }

    fn set_modified(&self, at: Millis) -> io::Result<()> {
        let mut world = self.world.world();
        world.alive()?;
        world.inodes[self.inode].modified = at;
        Ok(())
    }
}
