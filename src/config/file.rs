//! Where settings come from: a properties file, the environment, `--override`; each wins over the one before. This file reads
//! texts into keys and texts; what a key allows is `load`'s matter.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a setting was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In the properties file.
    File {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
    },
    /// By an environment variable of that name.
    Environment(String),
    /// By `--override`.
    Override,
    /// By another key that means the same (`broker.id` and `node.id`).
    Synonym(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File { path, line } => write!(f, "{} line {line}", path.display()),
            Origin::Environment(variable) => write!(f, "environment {variable}"),
            Origin::Override => f.write_str("--override"),
            Origin::Synonym(key) => write!(f, "set by {key}"),
        }
    }
}

/// A text given to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The text.
    pub value: String,
    /// Where it was given.
    pub origin: Origin,
}

/// Settings by key.
pub type Given = BTreeMap<String, Setting>;

/// Sources that cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file cannot be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no properties file.
    #[error("{} line {line}: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// An `--override` without key or `=`.
    #[error("--override {0:?} is not key=value")]
    Override(String),
}

/// Everything that is given: the file if any, then `environment`, then `overrides`.
pub fn gather(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (String, String)>,
    overrides: &[String],
) -> Result<Given, SourceError> {
    let mut given = Given::new();
    if let Some(path) = file {
        let text = std::fs::read(path).map_err(|source| SourceError::File { path: path.into(), source })?;
        given = from_properties(&text, path)?;
    }
    given.extend(from_environment(environment));
    given.extend(from_overrides(overrides)?);
    Ok(given)
}

/// Reads a file in the format of `java.util.Properties`; of a repeated key the last one counts.
pub fn from_properties(text: &[u8], path: &Path) -> Result<Given, SourceError> {
    let mut given = Given::new();
    let mut seen = 1;
    for line in java_properties::PropertiesIter::new(text) {
        let line =
            line.map_err(|e| SourceError::Syntax { path: path.into(), line: e.line_number().unwrap_or(seen), reason: e.to_string() })?;
        seen = line.line_number();
        if let java_properties::LineContent::KVPair(key, value) = line.consume_content() {
            given.insert(key, Setting { value, origin: Origin::File { path: path.into(), line: seen } });
        }
    }
    Ok(given)
}

/// Variables of the Apache image's start script, of Java and of Kafka's shell scripts, which are no settings.
const NOT_SETTINGS: &[&str] = &[
    "KAFKA_VERSION",
    "KAFKA_HOME",
    "KAFKA_HEAP",
    "KAFKA_HEAP_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_PORT",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
];

/// The key that an environment variable sets, as the Apache image maps it: `KAFKA_` off, lower case, `_` is `.`, `__` is `_`,
/// `___` is `-`. `KAFKA_CFG_` is taken off as well (other images write it). `CLUSTER_ID` is the image's way to name the cluster.
pub fn key_of_variable(variable: &str) -> Option<String> {
    if variable == "CLUSTER_ID" {
        return Some("understudy.cluster.id".into());
    }
    let name = variable.strip_prefix("KAFKA_").filter(|name| !name.is_empty() && !NOT_SETTINGS.contains(&variable))?;
    let name = name.strip_prefix("CFG_").unwrap_or(name);
    Some(name.to_ascii_lowercase().replace('_', ".").replace("...", "-").replace("..", "_"))
}

/// The settings among environment variables.
pub fn from_environment(environment: impl IntoIterator<Item = (String, String)>) -> Given {
    let mut variables: Vec<(String, String)> = environment.into_iter().collect();
    // `KAFKA_CFG_X` before `KAFKA_X`: the plain name wins.
    variables.sort_by_key(|(variable, _)| (!variable.starts_with("KAFKA_CFG_"), variable.clone()));
    let setting =
        |(variable, value): (String, String)| Some((key_of_variable(&variable)?, Setting { value, origin: Origin::Environment(variable) }));
    variables.into_iter().filter_map(setting).collect()
}

/// The settings of `--override key=value` arguments.
pub fn from_overrides(overrides: &[String]) -> Result<Given, SourceError> {
    let setting = |text: &String| match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), Setting { value: value.into(), origin: Origin::Override }))
        }
        _ => Err(SourceError::Override(text.clone())),
    };
    overrides.iter().map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(given: Given) -> Vec<(String, String)> {
        given.into_iter().map(|(key, setting)| (key, setting.value)).collect()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.into(), value.into())
    }

    #[test]
    fn properties_files_read_as_java_reads_them() {
        let text = b"# comment\n! comment\n\na=1\nb: 2\nc 3\n  d  =  4 5  \ne=one,\\\n   two\nf\\:g=x\\ty\\u0041\na=last\nempty=\nbare\nl\xe4nd=1\nwin=C:\\\\x\r\n";
        let expected = [
            ("a", "last"),
            ("b", "2"),
            ("bare", ""),
            ("c", "3"),
            ("d", "4 5  "),
            ("e", "one,two"),
            ("empty", ""),
            ("f:g", "x\tyA"),
            ("l\u{e4}nd", "1"),
            ("win", "C:\\x"),
        ];
        let given = from_properties(text, Path::new("f")).unwrap();
        assert_eq!(given["a"].origin, Origin::File { path: "f".into(), line: 11 });
        assert_eq!(values(given), expected.map(|(k, v)| pair(k, v)));
    }

    #[test]
    fn a_broken_escape_names_its_line() {
        let error = from_properties(b"a=1\nb=\\u00zz\n", Path::new("server.properties")).unwrap_err();
        assert!(error.to_string().starts_with("server.properties line 2: "), "{error}");
    }

    #[test]
    fn variables_map_as_in_the_apache_image() {
        for (variable, key) in [
            ("KAFKA_NUM_PARTITIONS", Some("num.partitions")),
            ("KAFKA_CFG_NUM_PARTITIONS", Some("num.partitions")),
            ("KAFKA_LISTENER_NAME_TC___0_SASL__X", Some("listener.name.tc-0.sasl_x")),
            ("KAFKA_LOG_DIRS", Some("log.dirs")),
            ("CLUSTER_ID", Some("understudy.cluster.id")),
            ("KAFKA_HEAP_OPTS", None),
            ("KAFKA_", None),
            ("KAFKA", None),
            ("PATH", None),
        ] {
            assert_eq!(key_of_variable(variable).as_deref(), key, "{variable}");
        }
    }

    #[test]
    fn later_sources_win() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.properties");
        std::fs::write(&path, "a=file\nb=file\nc=file\n").unwrap();
        let environment = [pair("KAFKA_B", "env"), pair("KAFKA_C", "env"), pair("KAFKA_CFG_C", "cfg")];
        let given = gather(Some(&path), environment, &["c = x=y".into()]).unwrap();
        assert_eq!(values(given), [pair("a", "file"), pair("b", "env"), pair("c", " x=y")]);
        assert!(gather(Some(&dir.path().join("none")), [], &[]).unwrap_err().to_string().contains("none"));
        for text in ["nothing", "=1", ""] {
            assert!(from_overrides(&[text.into()]).is_err(), "{text:?}");
        }
    }
}
