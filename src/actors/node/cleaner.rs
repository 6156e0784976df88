//! The cleaner as this process is configured.

use crate::actors::cleaner::{Cleaner, Settings};
use crate::actors::shard::Disk;
use crate::cli::random_id;
use crate::config::Config;

/// What the keys come to.
pub fn settings(config: &Config) -> Settings {
    Settings {
        enabled: config.log_cleaner_enable,
        threads: config.log_cleaner_threads as usize,
        dedupe_bytes: config.log_cleaner_dedupe_buffer_size.max(0) as u64,
        load: config.log_cleaner_io_buffer_load_factor,
        io_bytes: config.log_cleaner_io_buffer_size as usize,
        bytes_per_second: config.log_cleaner_io_max_bytes_per_second,
        backoff_ms: config.log_cleaner_backoff_ms,
    }
}

/// A cleaner for the directories that take partitions.
pub fn make(config: &Config, disk: &Disk) -> Cleaner {
    let dirs = disk.for_partitions().iter().map(|dir| dir.io.dir.clone()).collect();
    let secret = random_id().0;
    Cleaner::new(settings(config), dirs, [secret as u64, (secret >> 64) as u64])
}
