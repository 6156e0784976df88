//! What a crash may leave in a partition's directory in the middle of something: deletions that were not finished are finished, files that compaction
//! was writing are removed, and files that it was putting in place are put there. What remains is listed.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::error::LogError;
use super::index::{OFFSET_ENTRY, TIME_ENTRY};
use super::retention::DELETED;
use super::segment::parse_name;
use super::storage::{File, Storage};
use super::walk;
use crate::core::types::Offset;

/// A segment's files: bytes of each; None if it is not there.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Bytes of `.log`.
    pub size: u64,
    index: Option<u64>,
    times: Option<u64>,
}

impl Found {
    /// Whether the index files may be what they should.
    pub fn indexed(&self) -> bool {
        self.index.is_some_and(|n| n.is_multiple_of(OFFSET_ENTRY as u64)) && self.times.is_some_and(|n| n.is_multiple_of(TIME_ENTRY as u64))
    }
}

/// Tidies up, and lists the segments.
pub(super) fn tidy<S: Storage>(storage: &S, dir: &Path) -> Result<BTreeMap<Offset, Found>, LogError> {
    let remove = |path: &Path| storage.remove(path).map_err(|e| LogError::io("remove", path, e));
    let mut swaps = false;
    for entry in list(storage, dir)? {
        match parse_name(&entry.0) {
            Some((_, suffix)) if suffix.ends_with(DELETED) || suffix.ends_with(".tmp") => remove(&dir.join(&entry.0))?,
            Some((_, suffix)) => swaps |= suffix.ends_with(".swap") || suffix.ends_with(".cleaned"),
            None => {}
        }
    }
    if swaps {
        finish_swap(storage, dir)?;
    }
    let mut found: BTreeMap<Offset, Found> = BTreeMap::new();
    let entries = list(storage, dir)?;
    for (name, len) in &entries {
        if let Some((base, "log")) = parse_name(name) {
            found.insert(base, Found { size: *len, index: None, times: None });
        }
    }
    for (name, len) in &entries {
        match parse_name(name).map(|(base, suffix)| (found.get_mut(&base), suffix)) {
            Some((Some(found), "index")) => found.index = Some(*len),
            Some((Some(found), "timeindex")) => found.times = Some(*len),
            Some((None, "index" | "timeindex" | "txnindex")) => remove(&dir.join(name))?,
            _ => {}
        }
    }
    Ok(found)
}

fn list<S: Storage>(storage: &S, dir: &Path) -> Result<Vec<(String, u64)>, LogError> {
    let entries = storage.list(dir).map_err(|e| LogError::io("list", dir, e))?;
    Ok(entries.into_iter().filter(|e| !e.is_dir).map(|e| (e.name, e.len)).collect())
}

/// Compaction writes `.cleaned` files, renames them to `.swap` when they are complete, deletes what they replace, and renames them again. `.cleaned`
/// files are of no use, nor are `.swap` files at or after one (their compaction was not complete); other `.swap` files take their place.
fn finish_swap<S: Storage>(storage: &S, dir: &Path) -> Result<(), LogError> {
    let entries = list(storage, dir)?;
    let named = |suffix: &'static str| {
        entries.iter().filter_map(move |(name, _)| Some((name, parse_name(name)?.0)).filter(|(n, _)| n.ends_with(suffix)))
    };
    let first_cleaned = named(".cleaned").map(|(_, base)| base).min().unwrap_or(Offset(i64::MAX));
    let useless = named(".cleaned").chain(named(".swap").filter(|(_, base)| *base >= first_cleaned));
    for (name, _) in useless {
        let path = dir.join(name);
        storage.remove(&path).map_err(|e| LogError::io("remove", &path, e))?;
    }
    let swaps: Vec<_> = named(".swap").filter(|(_, base)| *base < first_cleaned).collect();
    let (mut from, mut to) = (Offset(i64::MAX), Offset(0));
    for (name, base) in swaps.iter().filter(|(name, _)| name.ends_with(".log.swap")) {
        let path = dir.join(name);
        from = from.min(*base);
        to = to.max(end_of(storage, &path).map_err(|e| LogError::io("read", &path, e))?);
    }
    for (name, _) in entries.iter().filter(|(name, _)| !name.ends_with(".swap") && !name.ends_with(".cleaned")) {
        if parse_name(name).is_some_and(|(offset, _)| offset >= from && offset < to) {
            let path = dir.join(name);
            storage.remove(&path).map_err(|e| LogError::io("remove", &path, e))?;
        }
    }
    for (name, _) in swaps {
        let path = dir.join(name);
        storage.rename(&path, &dir.join(name.trim_end_matches(".swap"))).map_err(|e| LogError::io("rename", &path, e))?;
    }
    Ok(())
}

/// The offset after the last batch of a segment file.
fn end_of<S: Storage>(storage: &S, path: &Path) -> io::Result<Offset> {
    let file = storage.open(path)?;
    let mut end = Offset(0);
    walk::find(&file, 0, file.len()?, |header| {
        end = header.next_offset();
        false
    })?;
    Ok(end)
}
