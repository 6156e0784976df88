//! Whether what was written survived: if neither the machine nor the file system's mount has gone down since the last run, every byte that
//! a write call returned for is there, synced or not. A process that died then needs no checksums read again, only its torn tail cut.

use super::error::LogError;
use super::storage::replace_file;
use super::storage::{Fs, read_file};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::path::Path;

/// The file that names the machine's boot and the mount in which the directory was last used.
pub const MOUNT_FILE: &str = ".understudy-mount";

/// Bytes of it at most.
const LIMIT: u64 = 4096;

/// Mount ids that are never used again (Linux 6.8).
const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// Notes under which boot and mount the directory is used from now on. Returns whether the last run used it under the same ones.
/// False where the system cannot tell.
pub fn same_mount_as_before(dir: &Path) -> Result<bool, LogError> {
    let path = dir.join(MOUNT_FILE);
    let before = read_file(&Fs, &path, LIMIT).ok();
    let now = identity(dir);
    let same = now.is_some() && before.as_deref() == now.as_ref().map(String::as_bytes);
    if !same {
        let text = now.unwrap_or_default();
        replace_file(&Fs, &path, text.as_bytes(), true).map_err(|e| LogError::io("write", &path, e))?;
    }
    Ok(same)
}

/// This boot and this mount, as no other will be named.
fn identity(dir: &Path) -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let seen = statx(CWD, dir, AtFlags::empty(), MNT_ID_UNIQUE).ok()?;
    let told = StatxFlags::from_bits_retain(seen.stx_mask).contains(MNT_ID_UNIQUE);
    told.then(|| format!("boot={}\nmount={}\n", boot.trim(), seen.stx_mnt_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_boot_and_mount_count() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(!same_mount_as_before(dir.path()).expect("a new directory"), "never used before");
        let told = identity(dir.path()).is_some();
        assert_eq!(same_mount_as_before(dir.path()).expect("again"), told, "used a moment ago");
        std::fs::write(dir.path().join(MOUNT_FILE), "boot=other\nmount=1\n").expect("to write");
        assert!(!same_mount_as_before(dir.path()).expect("after a reboot"));
    }
}
