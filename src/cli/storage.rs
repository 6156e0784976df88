//! `storage format`, `storage info`, `storage random-uuid`: who the log directories belong to. Texts and exit codes are those of
//! Kafka's storage tool where scripts look for them.

use crate::config::Config;
use crate::core::types::{BrokerId, DirectoryId, Id};
use crate::log::dirs::{META_PROPERTIES_FILE, MetaProperties};
use crate::log::{Fs, LogError};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Directories cannot be formatted, or belong to somebody else.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// A directory is formatted already.
    #[error("Log directory {} is already formatted. Use --ignore-formatted to ignore this directory and format the others.", .0.display())]
    Formatted(PathBuf),
    /// A directory belongs to another cluster or node.
    #[error("Invalid {property} in: {}. Expected {expected}, but read {found}", .dir.join(META_PROPERTIES_FILE).display())]
    Foreign {
        /// The log directory.
        dir: PathBuf,
        /// `cluster.id` or `node.id`.
        property: &'static str,
        /// What the configuration says.
        expected: String,
        /// What the directory says.
        found: String,
    },
    /// The cluster id is none.
    #[error("cluster id {0:?}: an id is 22 characters of URL-safe base64; `understudy storage random-uuid` makes one")]
    ClusterId(String),
    /// The directory cannot be made.
    #[error("cannot make {}: {source}", dir.display())]
    Make {
        /// The log directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The disk, or a file on it that cannot be understood.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The answer cannot be written.
    #[error("cannot write the answer: {0}")]
    Output(#[from] io::Error),
}

/// A directory that was given its ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formatted {
    /// The log directory.
    pub dir: PathBuf,
    /// Its new id.
    pub id: DirectoryId,
}

/// A random id that is none of the reserved ones and can stand as an argument of a command (no leading `-`).
pub fn random_id() -> Id {
    loop {
        let id = Id(uuid::Uuid::new_v4().as_u128());
        if id != Id::ZERO && id != Id::ONE && !id.to_string().starts_with('-') {
            return id;
        }
    }
}

/// Gives `cluster_id`, `node` and a random id to those directories that have no `meta.properties`, and makes those that are not there.
/// Every directory that has one must belong to the same cluster and node; nothing is written otherwise.
pub fn format_directories(dirs: &[PathBuf], cluster_id: &str, node: BrokerId) -> Result<Vec<Formatted>, StorageError> {
    let mut empty = Vec::new();
    for dir in dirs {
        match MetaProperties::read(&Fs, dir)? {
            Some(found) => check_owner(dir, &found, cluster_id, node)?,
            None => empty.push(dir),
        }
    }
    let mut formatted = Vec::new();
    for dir in empty {
        std::fs::create_dir_all(dir).map_err(|source| StorageError::Make { dir: dir.clone(), source })?;
        let id = random_id();
        MetaProperties { cluster_id: cluster_id.into(), node_id: node, directory_id: Some(id) }.write(&Fs, dir)?;
        formatted.push(Formatted { dir: dir.clone(), id });
    }
    Ok(formatted)
}

fn check_owner(dir: &Path, found: &MetaProperties, cluster_id: &str, node: BrokerId) -> Result<(), StorageError> {
    let foreign =
        |property: &'static str, expected: String, found: String| StorageError::Foreign { dir: dir.into(), property, expected, found };
    if found.cluster_id != cluster_id {
        return Err(foreign("cluster.id", cluster_id.into(), found.cluster_id.clone()));
    }
    if found.node_id != node {
        return Err(foreign("node.id", node.0.to_string(), found.node_id.0.to_string()));
    }
    Ok(())
}

/// The log directories and that of the metadata log, by name, each once.
fn directories(config: &Config) -> Vec<PathBuf> {
    let mut dirs: BTreeSet<PathBuf> = config.log_directories().into_iter().collect();
    dirs.insert(config.metadata_directory());
    dirs.into_iter().collect()
}

/// `storage format`.
pub fn format(config: &Config, cluster_id: &str, ignore_formatted: bool, out: &mut dyn Write) -> Result<(), StorageError> {
    cluster_id.parse::<Id>().map_err(|_| StorageError::ClusterId(cluster_id.into()))?;
    let dirs = directories(config);
    if !ignore_formatted {
        for dir in &dirs {
            if let Some(found) = MetaProperties::read(&Fs, dir)? {
                check_owner(dir, &found, cluster_id, BrokerId(config.node_id))?;
                return Err(StorageError::Formatted(dir.clone()));
            }
        }
    }
    let formatted = format_directories(&dirs, cluster_id, BrokerId(config.node_id))?;
    if formatted.is_empty() {
        writeln!(out, "All of the log directories are already formatted.")?;
    }
    for Formatted { dir, .. } in formatted {
        let what = if dir == config.metadata_directory() { "metadata" } else { "data" };
        writeln!(out, "Formatting {what} directory {} with node id {}.", dir.display(), config.node_id)?;
    }
    Ok(())
}

/// `storage info`. Whether nothing is wrong.
pub fn info(config: &Config, out: &mut dyn Write) -> Result<bool, StorageError> {
    let mut problems = Vec::new();
    let mut found_dirs = Vec::new();
    let mut first: Option<MetaProperties> = None;
    for dir in directories(config) {
        if !dir.is_dir() {
            problems.push(format!("{} {}", dir.display(), if dir.exists() { "is not a directory" } else { "does not exist" }));
            continue;
        }
        match MetaProperties::read(&Fs, &dir) {
            Ok(None) => problems.push(format!("{} is not formatted.", dir.display())),
            Ok(Some(found)) => match &first {
                None => first = Some(found),
                Some(first) if first.cluster_id != found.cluster_id => {
                    problems.push("Mismatched cluster IDs between storage directories.".into())
                }
                Some(first) if first.node_id != found.node_id => problems.push("Mismatched node IDs between storage directories.".into()),
                Some(_) => {}
            },
            Err(e) => problems.push(format!("Error loading {}: {e}", dir.join(META_PROPERTIES_FILE).display())),
        }
        found_dirs.push(dir);
    }
    if !found_dirs.is_empty() {
        writeln!(out, "Found log {}:", if found_dirs.len() == 1 { "directory" } else { "directories" })?;
        for dir in &found_dirs {
            writeln!(out, "  {}", dir.display())?;
        }
        writeln!(out)?;
    }
    if let Some(MetaProperties { cluster_id, node_id, directory_id }) = first {
        let directory = directory_id.map(|id| format!("directory.id={id}, ")).unwrap_or_default();
        writeln!(out, "Found metadata: {{cluster.id={cluster_id}, {directory}node.id={}, version=1}}\n", node_id.0)?;
    }
    if !problems.is_empty() {
        writeln!(out, "Found problem{}:", if problems.len() == 1 { "" } else { "s" })?;
        for problem in &problems {
            writeln!(out, "  {problem}")?;
        }
        writeln!(out)?;
    }
    Ok(problems.is_empty())
}
