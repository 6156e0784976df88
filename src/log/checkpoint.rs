//! Text checkpoints: a version, a count, a line per entry (reference section 5.3). The ones of a log directory hold an offset for each partition;
//! `leader-epoch-checkpoint` in a partition's directory holds the first offset of each epoch.

use std::io;
use std::path::Path;

use super::error::LogError;
use super::storage::{Storage, read_file, replace_file};
use crate::core::types::{Epoch, Offset};

/// High watermarks of a log directory.
pub const HIGH_WATERMARK: &str = "replication-offset-checkpoint";
/// Recovery points of a log directory.
pub const RECOVERY_POINT: &str = "recovery-point-offset-checkpoint";
/// Log start offsets of a log directory, of logs that start inside a segment.
pub const LOG_START: &str = "log-start-offset-checkpoint";
/// Leader epochs of one partition.
pub const LEADER_EPOCHS: &str = "leader-epoch-checkpoint";
/// Bytes that a checkpoint has at most: a million partitions with the longest names.
const LIMIT: u64 = 300 << 20;

/// One line of an offset checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionOffset {
    /// Topic name.
    pub topic: String,
    /// Index of the partition.
    pub partition: i32,
    /// Its offset.
    pub offset: Offset,
}

/// Reads a checkpoint of `<topic> <partition> <offset>` lines; empty if there is no such file or it is empty.
///
/// Errors: [`LogError::BadFile`], which says which line is wrong and that the file may be removed at a price.
pub fn read_offsets<S: Storage>(storage: &S, path: &Path) -> Result<Vec<PartitionOffset>, LogError> {
    read(storage, path, "removing it makes the broker recover or truncate more than it had to", |line| {
        let mut words = line.rsplitn(3, ' ');
        let offset = words.next()?.parse().ok()?;
        let partition = words.next()?.parse().ok().filter(|p: &i32| *p >= 0)?;
        let topic = words.next().filter(|t| !t.is_empty())?.to_owned();
        Some(PartitionOffset { topic, partition, offset: Offset(offset) })
    })
}

/// Writes such a checkpoint, safe against a power cut.
pub fn write_offsets<S: Storage>(storage: &S, path: &Path, entries: &[PartitionOffset]) -> Result<(), LogError> {
    write(storage, path, true, entries.len(), entries.iter().map(|e| format!("{} {} {}", e.topic, e.partition, e.offset.0)))
}

/// Reads `leader-epoch-checkpoint` of a partition's directory; empty if there is none.
///
/// Errors: [`LogError::BadFile`], also if epochs or offsets do not rise.
pub fn read_epochs<S: Storage>(storage: &S, dir: &Path) -> Result<Vec<(Epoch, Offset)>, LogError> {
    let path = dir.join(LEADER_EPOCHS);
    let epochs = read(storage, &path, "removing it makes a follower truncate to its high watermark", |line| {
        let (epoch, offset) = line.split_once(' ')?;
        Some((Epoch(epoch.parse().ok().filter(|e| *e >= 0)?), Offset(offset.parse().ok().filter(|o| *o >= 0)?)))
    })?;
    if epochs.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1) {
        Ok(epochs)
    } else {
        Err(LogError::BadFile { path, why: "epochs and offsets have to rise".into() })
    }
}

/// Writes `leader-epoch-checkpoint`. `durable` when an entry was added; after a truncation the old file may come back, which does no harm.
pub fn write_epochs<S: Storage>(storage: &S, dir: &Path, epochs: &[(Epoch, Offset)], durable: bool) -> Result<(), LogError> {
    write(storage, &dir.join(LEADER_EPOCHS), durable, epochs.len(), epochs.iter().map(|(e, o)| format!("{} {}", e.0, o.0)))
}

fn write<S: Storage>(storage: &S, path: &Path, durable: bool, count: usize, lines: impl Iterator<Item = String>) -> Result<(), LogError> {
    let mut text = format!("0\n{count}\n");
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    replace_file(storage, path, text.as_bytes(), durable).map_err(|e| LogError::io("write", path, e))
}

fn read<S: Storage, T>(storage: &S, path: &Path, price: &str, entry: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, LogError> {
    let bad = |why: String| LogError::BadFile { path: path.to_owned(), why: format!("{why}; {price}") };
    let bytes = match read_file(storage, path, LIMIT) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) if e.kind() == io::ErrorKind::InvalidData => return Err(bad(e.to_string())),
        Err(e) => return Err(LogError::io("read", path, e)),
    };
    let text = String::from_utf8(bytes).map_err(|_| bad("not UTF-8 text".into()))?;
    let mut lines = text.lines();
    match lines.next().map(str::trim) {
        None => return Ok(Vec::new()),
        Some("0") => {}
        Some(other) => return Err(bad(format!("version {other:?}, this broker reads version 0"))),
    }
    let Some(count) = lines.next() else { return Ok(Vec::new()) };
    let count: usize = count.trim().parse().map_err(|_| bad(format!("line 2: {count:?} is not a number of entries")))?;
    let mut entries = Vec::new();
    for (i, line) in lines.enumerate() {
        entries.push(entry(line.trim_end()).ok_or_else(|| bad(format!("line {}: {line:?} is no entry", i + 3)))?);
    }
    if entries.len() == count { Ok(entries) } else { Err(bad(format!("{} entries instead of {count}", entries.len()))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::mem::{Crash, Fault, Mem};

    fn entries(n: i32) -> Vec<PartitionOffset> {
        (0..n).map(|i| PartitionOffset { topic: format!("t{i}"), partition: i, offset: Offset(i64::from(i) * 7) }).collect()
    }

    #[test]
    fn offsets_and_epochs_read_back() {
        let mem = Mem::new();
        let path = Path::new("/c");
        assert_eq!(read_offsets(&mem, path).unwrap(), []);
        for n in [3, 0, 1] {
            write_offsets(&mem, path, &entries(n)).unwrap();
            assert_eq!(read_offsets(&mem, path).unwrap(), entries(n));
        }
        let epochs = [(Epoch(0), Offset(0)), (Epoch(4), Offset(10))];
        write_epochs(&mem, Path::new("/"), &epochs, true).unwrap();
        assert_eq!(read_epochs(&mem, Path::new("/")).unwrap(), epochs);
        assert_eq!(read_file(&mem, Path::new("/leader-epoch-checkpoint"), 100).unwrap(), b"0\n2\n0 0\n4 10\n");
    }

    #[test]
    fn what_is_wrong_is_said_and_where() {
        let mem = Mem::new();
        let cases: [(&str, Option<&str>); 10] = [
            ("", None),
            ("0", None),
            ("0\n1\nt 0 5\n", None),
            ("0\r\n1\r\nt 0 5\r\n", None),
            ("1\n0\n", Some("version \"1\"")),
            ("0\nx\n", Some("line 2")),
            ("0\n1\n", Some("0 entries instead of 1")),
            ("0\n1\nt 0 5\nt 1 6\n", Some("2 entries instead of 1")),
            ("0\n2\nt 0 5\nt 6\n", Some("line 4")),
            ("0\n1\nt -1 5\n", Some("line 3")),
        ];
        for (text, wrong) in cases {
            replace_file(&mem, Path::new("/c"), text.as_bytes(), false).unwrap();
            match (read_offsets(&mem, Path::new("/c")), wrong) {
                (Ok(_), None) => {}
                (Err(e), Some(wrong)) => assert!(e.to_string().contains(wrong) && e.to_string().starts_with("/c: "), "{text:?}: {e}"),
                (got, _) => panic!("{text:?}: {got:?}"),
            }
        }
        replace_file(&mem, Path::new("/leader-epoch-checkpoint"), b"0\n2\n1 5\n1 6\n", false).unwrap();
        assert!(read_epochs(&mem, Path::new("/")).unwrap_err().to_string().contains("have to rise"));
    }

    #[test]
    fn a_crash_leaves_the_old_checkpoint_or_the_new_one() {
        for crash in [Crash::Process, Crash::Power, Crash::Torn(1), Crash::Torn(2), Crash::Torn(3)] {
            for n in 1.. {
                let mem = Mem::new();
                let path = Path::new("/c");
                write_offsets(&mem, path, &entries(3)).unwrap();
                mem.fail(Fault::CrashAt(mem.changes() + n));
                let done = write_offsets(&mem, path, &entries(200)).is_ok();
                mem.restart(crash);
                let found = read_offsets(&mem, path).unwrap().len();
                assert!(if done { found == 200 } else { found == 3 || found == 200 }, "{crash:?} at change {n}: {found}");
                if done {
                    break;
                }
            }
        }
    }
}
