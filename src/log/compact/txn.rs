//! Transactions as far as compaction must know them: records of aborted ones go, a marker stays until no record of its transaction is
//! left, and then as long as tombstones do. What was aborted is said by the `.txnindex` files (reference section 5.2); entries of
//! transactions of which records remain go into the rewritten segment's own.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use crate::core::types::Offset;
use crate::log::batch::BatchHeader;
use crate::log::error::LogError;
use crate::log::segment::{parse_name, path_of};
use crate::log::storage::{Storage, read_file};

/// Bytes of an entry of a `.txnindex`.
const ENTRY: usize = 34;
/// Bytes that such a file has at most: a million aborted transactions.
const LIMIT: u64 = 64 << 20;
/// Control record types.
const ABORT: i16 = 0;
const COMMIT: i16 = 1;

/// A transaction that was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AbortedTxn {
    pub producer_id: i64,
    /// Its first record.
    pub first: Offset,
    /// Its marker.
    pub last: Offset,
    /// The last stable offset when it was aborted.
    pub stable: Offset,
}

/// The content of a `.txnindex` with these entries.
pub(super) fn encode(entries: &[AbortedTxn]) -> Vec<u8> {
    let mut out = Vec::with_capacity(entries.len() * ENTRY);
    for entry in entries {
        out.extend_from_slice(&0i16.to_be_bytes());
        for field in [entry.producer_id, entry.first.0, entry.last.0, entry.stable.0] {
            out.extend_from_slice(&field.to_be_bytes());
        }
    }
    out
}

fn decode(bytes: &[u8]) -> Option<Vec<AbortedTxn>> {
    let (entries, rest) = bytes.as_chunks::<ENTRY>();
    let field = |entry: &[u8; ENTRY], at: usize| entry[at..].first_chunk().map(|bytes| i64::from_be_bytes(*bytes));
    let entry = |entry: &[u8; ENTRY]| {
        let [producer_id, first, last, stable] = [field(entry, 2)?, field(entry, 10)?, field(entry, 18)?, field(entry, 26)?];
        let known = entry[..2] == [0, 0] && first <= last;
        known.then_some(AbortedTxn { producer_id, first: Offset(first), last: Offset(last), stable: Offset(stable) })
    };
    rest.is_empty().then(|| entries.iter().map(entry).collect()).flatten()
}

/// Everything that the `.txnindex` files of a log say, by first offset. An aborted transaction stands in the index of the segment that
/// has its marker, so all of them are read.
pub(super) fn read_indexes<S: Storage>(storage: &S, dir: &Path) -> Result<Vec<AbortedTxn>, LogError> {
    let entries = storage.list(dir).map_err(|e| LogError::io("list", dir, e))?;
    let mut out = Vec::new();
    for (base, _) in entries.iter().filter_map(|entry| parse_name(&entry.name)).filter(|(_, suffix)| *suffix == "txnindex") {
        let path = path_of(dir, base, "txnindex");
        match read_file(storage, &path, LIMIT) {
            Ok(bytes) => out.extend(decode(&bytes).ok_or_else(|| LogError::Corrupt {
                path,
                position: 0,
                why: "not an index of aborted transactions; restore it, or remove the partition's directory to fetch it from another replica"
                    .into(),
            })?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(LogError::io("read", &path, e)),
        }
    }
    out.sort_by_key(|entry| entry.first);
    Ok(out)
}

/// The transactions of the part of a log that is walked, in order.
pub(super) struct Transactions<'a> {
    /// Those that begin further on.
    ahead: &'a [AbortedTxn],
    /// Aborted ones that have begun, and whether a batch of theirs was seen.
    aborted: HashMap<i64, (AbortedTxn, bool)>,
    /// Producers of which a batch was seen that is not aborted, and its marker was not.
    committed: HashSet<i64>,
    /// Aborted ones of which something remains, whose marker was passed.
    kept: Vec<AbortedTxn>,
}

impl<'a> Transactions<'a> {
    /// Before the first batch.
    pub fn new(aborted: &'a [AbortedTxn]) -> Transactions<'a> {
        Transactions { ahead: aborted, aborted: HashMap::new(), committed: HashSet::new(), kept: Vec::new() }
    }

    /// What is to go into the index of the segment that was rewritten since the last call.
    pub fn take_kept(&mut self) -> Vec<AbortedTxn> {
        std::mem::take(&mut self.kept)
    }

    fn pass(&mut self, upto: Offset) {
        while let Some((next, rest)) = self.ahead.split_first().filter(|(next, _)| next.first <= upto) {
            self.aborted.entry(next.producer_id).or_insert((*next, false));
            self.ahead = rest;
        }
    }

    /// Passes a batch of records: whether its transaction was aborted, and nobody is to read it.
    pub fn records(&mut self, header: &BatchHeader) -> bool {
        self.pass(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        match self.aborted.get_mut(&header.producer_id) {
            Some((_, seen)) => {
                *seen = true;
                true
            }
            None => {
                self.committed.insert(header.producer_id);
                false
            }
        }
    }

    /// Passes a control batch whose first record has that key, None if it has no records: whether nothing needs it any more.
    pub fn marker(&mut self, header: &BatchHeader, key: Option<&[u8]>) -> bool {
        self.pass(header.last_offset());
        let Some(key) = key else { return true };
        let kind = key.get(2..4).and_then(|bytes| bytes.first_chunk()).map(|bytes| i16::from_be_bytes(*bytes));
        match kind {
            Some(ABORT) => match self.aborted.remove(&header.producer_id) {
                Some((entry, true)) => {
                    self.kept.push(entry);
                    false
                }
                _ => true,
            },
            Some(COMMIT) => !self.committed.remove(&header.producer_id),
            // Markers of Kafka's own quorum, and kinds that came later.
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::mem::Mem;
    use crate::log::storage::replace_file;

    #[test]
    fn indexes_read_back_and_damaged_ones_are_named() {
        let mem = Mem::new();
        mem.create_dir(Path::new("/t-0")).expect("a directory");
        let entry = |first: i64| AbortedTxn { producer_id: 7, first: Offset(first), last: Offset(first + 5), stable: Offset(first + 6) };
        let dir = Path::new("/t-0");
        assert_eq!(read_indexes(&mem, dir).expect("none"), []);
        replace_file(&mem, &path_of(dir, Offset(90), "txnindex"), &encode(&[entry(40), entry(100)]), false).expect("written");
        replace_file(&mem, &path_of(dir, Offset(0), "txnindex"), &encode(&[entry(50)]), false).expect("written");
        assert_eq!(read_indexes(&mem, dir).expect("both"), [entry(40), entry(50), entry(100)]);
        replace_file(&mem, &path_of(dir, Offset(0), "txnindex"), &[0; 35], false).expect("written");
        assert!(read_indexes(&mem, dir).expect_err("damaged").to_string().contains("00000000000000000000.txnindex"));
    }
}
