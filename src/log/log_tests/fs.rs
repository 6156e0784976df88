//! On a real file system: files, locks between processes, the small files of a directory.

use std::os::fd::AsFd;
use std::path::Path;

use super::*;
use crate::core::types::BrokerId;
use crate::log::dirs::{self, CleanShutdown, DirLock, DirName, MetaProperties};
use crate::log::error::LogError;
use crate::log::retention::{remove_files, remove_partition_dir};
use crate::log::storage::Fs;

#[test]
fn a_log_lives_on_a_file_system() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("t-0");
    let files = Files::new(Fs, 2);
    let mut log = Log::create(&files, dir.clone(), Id(9), Offset(0), Arc::new(LogConfig { preallocate: true, ..config() }));
    let batches: Vec<_> = (0..20).map(|i| append(&mut log, &[i], 300, 0)).collect();
    assert_eq!(read_all(&log, Offset(0), log.end()), batches.concat());
    let target = log.sync_target().unwrap();
    target.sync().unwrap();
    log.mark_synced(&target);
    let dropped = log.advance_start(Offset(7)).unwrap();
    // A range keeps its file, whatever becomes of the name.
    let range = log.read(Offset(7), 1, log.end()).unwrap().unwrap();
    remove_files(&Fs, &dropped).unwrap();
    log.truncate_to(Offset(17), Millis(0)).unwrap();
    log.close().unwrap();
    for (clean, recovery_point) in [(true, 0), (false, 17), (false, 0)] {
        let hints = hints(clean, Offset(recovery_point), Offset(7));
        let opened = Log::open(&files, dir.clone(), hints, Arc::new(config()), Millis(0), &mut |_| {}).unwrap();
        assert_eq!((opened.cut, opened.log.start(), opened.log.end(), opened.log.topic_id()), (None, Offset(7), Offset(17), Id(9)));
        assert_eq!(read_all(&opened.log, Offset(7), Offset(17)), batches[7..17].concat());
        assert!(files.open_count() <= 2);
    }
    remove_partition_dir(&Fs, &dir).unwrap();
    assert!(!dir.exists());
    let mut bytes = vec![0; range.first_batch_len as usize];
    range.file.pread(range.position, &mut bytes).unwrap();
    assert_eq!(bytes, batches[7]);
    assert!(rustix::fs::fstat(range.file.as_fd()).is_ok());
}

#[test]
fn a_deleted_partition_moves_out_of_the_way_at_once() {
    let tmp = tempfile::tempdir().unwrap();
    let files = Files::new(Fs, 10);
    let mut log = Log::create(&files, dirs::partition_dir(tmp.path(), "t", 0), Id(9), Offset(0), Arc::new(config()));
    append(&mut log, &[1], 10, 0);
    let name = dirs::marked_dir_name("t", 0, Id(0xabc), "delete");
    let moved = log.set_aside_as(&name).unwrap().unwrap();
    assert_eq!(DirName::parse(moved.file_name().unwrap().to_str().unwrap()), DirName::Delete);
    assert!(moved.exists() && !dirs::partition_dir(tmp.path(), "t", 0).exists());
    remove_partition_dir(&Fs, &moved).unwrap();
    remove_partition_dir(&Fs, &moved).unwrap();
    assert!(!moved.exists());
    let never = Log::create(&files, tmp.path().join("u-0"), Id(9), Offset(0), Arc::new(config()));
    assert_eq!(never.set_aside_as(&name).unwrap(), None);
}

/// Tries the lock as another process would, with nothing but system calls; whether it was refused.
fn refused_to_a_child(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the child only makes system calls that are safe after fork and leaves with _exit; the parent waits for it.
    unsafe {
        match libc::fork() {
            0 => {
                let fd = libc::open(path.as_ptr(), libc::O_RDWR);
                let mut lock: libc::flock = std::mem::zeroed();
                lock.l_type = libc::F_WRLCK as _;
                // Java locks [0, 2^63 - 1).
                lock.l_len = i64::MAX;
                libc::_exit(if libc::fcntl(fd, libc::F_SETLK, &lock) == 0 { 0 } else { 1 });
            }
            child => {
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
                libc::WEXITSTATUS(status) == 1
            }
        }
    }
}

#[test]
fn a_log_directory_has_one_user() {
    let tmp = tempfile::tempdir().unwrap();
    let lock = DirLock::take(tmp.path()).unwrap();
    assert!(refused_to_a_child(&tmp.path().join(".lock")));
    let second = DirLock::take(tmp.path());
    assert!(matches!(&second, Err(LogError::Locked { dir }) if dir == tmp.path()), "{second:?}");
    assert!(refused_to_a_child(&tmp.path().join(".lock")), "the second try did not give up the first lock");
    drop(lock);
    assert!(!refused_to_a_child(&tmp.path().join(".lock")));
    DirLock::take(tmp.path()).unwrap();
}

#[test]
fn the_small_files_of_a_directory_read_back() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    assert_eq!(MetaProperties::read(&Fs, dir).unwrap(), None);
    for directory_id in [Some(Id(12345)), None] {
        let meta = MetaProperties { cluster_id: "MkU3OEVBNTcwNTJENDM2Qg".into(), node_id: BrokerId(3), directory_id };
        meta.write(&Fs, dir).unwrap();
        assert_eq!(MetaProperties::read(&Fs, dir).unwrap(), Some(meta));
    }
    assert_eq!(CleanShutdown::take(&Fs, dir).unwrap(), None);
    CleanShutdown::new(42).write(&Fs, dir).unwrap();
    assert_eq!(std::fs::read_to_string(dir.join(".kafka_cleanshutdown")).unwrap(), r#"{"version":0,"brokerEpoch":42}"#);
    assert_eq!(CleanShutdown::take(&Fs, dir).unwrap(), Some(CleanShutdown::new(42)));
    assert_eq!(CleanShutdown::take(&Fs, dir).unwrap(), None, "it counts once");
    std::fs::write(dir.join(".kafka_cleanshutdown"), "").unwrap();
    assert_eq!(CleanShutdown::take(&Fs, dir).unwrap(), Some(CleanShutdown::new(-1)));
    assert_eq!(dirs::read_partition_metadata(&Fs, dir).unwrap(), None);
    dirs::write_partition_metadata(&Fs, dir, Id(77)).unwrap();
    assert_eq!(dirs::read_partition_metadata(&Fs, dir).unwrap(), Some(Id(77)));
}

#[test]
fn what_java_writes_is_read_and_what_is_wrong_is_said() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("meta.properties");
    std::fs::write(
        &path,
        "#\n#Mon Nov 30 21:50:12 UTC 2026\ncluster.id=a\\:b\nversion=1\nnode.id=4\ndirectory.id=MkU3OEVBNTcwNTJENDM2Qg\n",
    )
    .unwrap();
    let meta = MetaProperties::read(&Fs, tmp.path()).unwrap().unwrap();
    assert_eq!((meta.cluster_id.as_str(), meta.node_id), ("a:b", BrokerId(4)));
    for (text, wrong) in [
        ("version=2\n", "version 2"),
        ("version=1\nnode.id=4\n", "no cluster.id"),
        ("version=1\ncluster.id=a\nnode.id=x\n", "node.id=x is not a number"),
        ("version=1\ncluster.id=a\nnode.id=1\ndirectory.id=short\n", "22 characters"),
        ("nonsense\n", "not of the form"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = MetaProperties::read(&Fs, tmp.path()).unwrap_err().to_string();
        assert!(error.contains(wrong) && error.contains("meta.properties"), "{text:?}: {error}");
    }
    std::fs::write(tmp.path().join("partition.metadata"), "version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n").unwrap();
    assert!(dirs::read_partition_metadata(&Fs, tmp.path()).unwrap_err().to_string().contains("version 1"));
}

#[test]
fn directories_are_known_by_their_names() {
    let hex = "0123456789abcdef0123456789abcdef";
    let cases = [
        ("t-0", DirName::Log("t".into(), 0)),
        ("a-b.c_d-12", DirName::Log("a-b.c_d".into(), 12)),
        ("__cluster_metadata-0", DirName::Log("__cluster_metadata".into(), 0)),
        (&format!("t-0.{hex}-delete"), DirName::Delete),
        (&format!("t-0.{hex}-stray"), DirName::Stray),
        (&format!("t-3.{hex}-future"), DirName::Future("t".into(), 3)),
        ("t-x", DirName::Other),
        ("t", DirName::Other),
        ("-1", DirName::Other),
        ("lost+found", DirName::Other),
        ("t-0.12-delete", DirName::Other),
        ("t--1", DirName::Log("t-".into(), 1)),
    ];
    for (name, expected) in cases {
        assert_eq!(DirName::parse(name), expected, "{name}");
    }
    let long = dirs::marked_dir_name(&"x".repeat(249), 7, Id(1), "delete");
    assert_eq!((long.len(), DirName::parse(&long)), (255, DirName::Delete));
}
