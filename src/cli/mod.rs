//! The command line: which command, from which configuration, with which exit code. `serve` is handed in: this layer starts nothing.
//!
//! Exit codes: 0 done, 1 failed, 2 not understood. What a command is asked for goes to standard output, everything else to
//! standard error.

mod config;
mod election;
pub mod logging;
#[cfg(feature = "sim")]
mod sim;
mod storage;

use crate::config::{Config, ConfigErrors, Given, Origin, SourceError, Standing, file};
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use election::ElectionError;
pub use storage::{Formatted, StorageError, format_directories, random_id};

/// The arguments.
#[derive(Debug, Parser)]
#[command(name = "understudy", version, about = "A Kafka-compatible broker.", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    settings: Settings,
}

/// Where settings come from.
#[derive(Debug, Default, Clone, Args)]
struct Settings {
    /// Properties file with Kafka's keys. KAFKA_* variables of the environment win over it.
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    file: Option<PathBuf>,
    /// One more setting; wins over file and environment.
    #[arg(long = "override", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the broker (the default).
    Serve {
        #[command(flatten)]
        settings: Settings,
    },
    /// Look at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look at log directories, or format them.
    #[command(subcommand)]
    Storage(StorageCommand),
    /// Look at elections.
    #[command(subcommand)]
    Election(ElectionCommand),
    /// Run the metadata quorum in a simulator, under faults, from seeds.
    #[cfg(feature = "sim")]
    Sim(sim::Simulate),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print every key with the value in force and where it comes from.
    Print {
        #[command(flatten)]
        settings: Settings,
    },
    /// Print a table of all keys, in Markdown.
    Docs,
    /// Say what is wrong, what is unknown, and what nothing acts on yet.
    Check {
        #[command(flatten)]
        settings: Settings,
    },
}

#[derive(Debug, Subcommand)]
enum StorageCommand {
    /// Give the log directories the id of a cluster.
    Format {
        /// Id of the cluster, as `random-uuid` makes one.
        #[arg(short = 't', long, value_name = "ID")]
        cluster_id: String,
        /// Skip directories that are formatted already instead of failing.
        #[arg(short = 'g', long)]
        ignore_formatted: bool,
        #[command(flatten)]
        settings: Settings,
    },
    /// Say whose the log directories are.
    Info {
        #[command(flatten)]
        settings: Settings,
    },
    /// Print a new random id.
    RandomUuid,
}

#[derive(Debug, Subcommand)]
enum ElectionCommand {
    /// Print the latest elections that the node at `http.listen` decided, as JSON, the latest first.
    History {
        /// Of this topic only.
        #[arg(long)]
        topic: Option<String>,
        /// At most so many.
        #[arg(long, default_value_t = 100)]
        limit: usize,
        #[command(flatten)]
        settings: Settings,
    },
}

/// A command that failed, in one or more lines for people.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Election(#[from] ElectionError),
    #[error("cannot write the answer: {0}")]
    Output(#[from] io::Error),
}

/// Runs the command that `arguments` (the program's name first) ask for. `serve` runs the broker until it stops.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    serve: impl FnOnce(Config) -> ExitCode,
) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(e) => {
            // Help and version are no errors. Nobody is left to tell if the output is closed.
            let _ = e.print();
            return if e.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    // Names and values that are not UTF-8 are nobody's settings.
    let environment = environment.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let environment: Vec<(String, String)> = environment.collect();
    let settings = match &arguments.command {
        None => Some(&arguments.settings),
        Some(Command::Serve { settings }) => Some(settings),
        Some(_) => None,
    };
    if let Some(settings) = settings {
        return match gather(settings, &environment).and_then(|given| Ok(Config::load(given)?)) {
            Ok(config) => {
                logging::start(config.log_format);
                warn_of_idle_settings(&config);
                serve(config)
            }
            Err(failure) => fail(&failure),
        };
    }
    match answer(arguments.command, &environment, &mut io::stdout().lock()) {
        Ok(code) => ExitCode::from(code),
        // Who closed the pipe has read enough.
        Err(Failure::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    for line in failure.to_string().lines() {
        // Standard error is the last resort: if it is closed, the exit code has to do.
        let _ = writeln!(io::stderr(), "understudy: {line}");
    }
    ExitCode::FAILURE
}

fn gather(settings: &Settings, environment: &[(String, String)]) -> Result<Given, Failure> {
    Ok(file::gather(settings.file.as_deref(), environment.iter().cloned(), &settings.overrides)?)
}

/// The commands that answer and end.
fn answer(command: Option<Command>, environment: &[(String, String)], out: &mut dyn Write) -> Result<u8, Failure> {
    let given = |settings: &Settings| gather(settings, environment);
    match command {
        None | Some(Command::Serve { .. }) => Ok(0),
        Some(Command::Config(ConfigCommand::Print { settings })) => {
            config::print(&Config::load(given(&settings)?)?, out)?;
            Ok(0)
        }
        Some(Command::Config(ConfigCommand::Docs)) => {
            config::docs(out)?;
            Ok(0)
        }
        Some(Command::Config(ConfigCommand::Check { settings })) => {
            let fine = config::check(given(&settings)?, out)?;
            Ok(if fine { 0 } else { 1 })
        }
        Some(Command::Storage(StorageCommand::Format { cluster_id, ignore_formatted, settings })) => {
            storage::format(&Config::load(given(&settings)?)?, &cluster_id, ignore_formatted, out)?;
            Ok(0)
        }
        Some(Command::Storage(StorageCommand::Info { settings })) => {
            let fine = storage::info(&Config::load(given(&settings)?)?, out)?;
            Ok(if fine { 0 } else { 1 })
        }
        Some(Command::Election(ElectionCommand::History { topic, limit, settings })) => {
            election::history(Config::load(given(&settings)?)?.http_address(), limit, topic.as_deref(), out)?;
            Ok(0)
        }
        #[cfg(feature = "sim")]
        Some(Command::Sim(what)) => Ok(if sim::simulate(&what, out)? { 0 } else { 1 }),
        Some(Command::Storage(StorageCommand::RandomUuid)) => {
            writeln!(out, "{}", random_id())?;
            Ok(0)
        }
    }
}

/// A person who sets a key expects something of it: says which do nothing.
fn warn_of_idle_settings(config: &Config) {
    for (key, setting, standing) in config.not_acted_on() {
        let origin = &setting.origin;
        match standing {
            Standing::Unknown { nearest: Some(nearest) } => tracing::warn!("unknown key {key} ({origin}); did you mean {nearest}?"),
            // Variables of that kind are set by many an orchestrator for its own ends.
            Standing::Unknown { nearest: None } if matches!(origin, Origin::Environment(_)) => {
                tracing::info!("unknown key {key} ({origin})")
            }
            Standing::Unknown { nearest: None } => tracing::warn!("unknown key {key} ({origin})"),
            Standing::NotYet | Standing::Foreign | Standing::ActedOn => tracing::debug!("nothing acts on {key} yet ({origin})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split_whitespace())
    }

    /// Output and exit code of a command that answers.
    fn output(line: &str, environment: &[(&str, &str)]) -> Result<(String, u8), String> {
        let environment: Vec<_> = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let mut out = Vec::new();
        let code = answer(parse(line).unwrap().command, &environment, &mut out).map_err(|failure| failure.to_string())?;
        Ok((String::from_utf8(out).unwrap(), code))
    }

    #[test]
    fn the_command_line_is_sound() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
        assert!(parse("understudy").unwrap().command.is_none());
        assert_eq!(parse("understudy -c f").unwrap().settings.file, Some("f".into()));
        let serve = parse("understudy serve -c f --override a=1 --override b=2").unwrap();
        assert!(matches!(serve.command, Some(Command::Serve { settings }) if settings.overrides == ["a=1", "b=2"]));
        for wrong in ["understudy nothing", "understudy storage format", "understudy config", "understudy serve f"] {
            assert!(parse(wrong).unwrap_err().use_stderr(), "{wrong}");
        }
    }

    #[test]
    fn serve_gets_the_configuration() {
        let serve = |line: &str| {
            let mut got = None;
            let arguments = line.split_whitespace().map(OsString::from);
            let environment = [("KAFKA_NUM_PARTITIONS".into(), "7".into())];
            run(arguments, environment, |config| {
                got = Some((config.num_partitions, config.log_retention_hours));
                ExitCode::SUCCESS
            });
            got
        };
        assert_eq!(serve("understudy"), Some((7, 168)));
        assert_eq!(serve("understudy serve --override num.partitions=3 --override log.retention.hours=1"), Some((3, 1)));
        assert_eq!(serve("understudy serve --override num.partitions=0"), None);
        assert_eq!(serve("understudy serve -c /no/such/file"), None);
        assert_eq!(serve("understudy storage random-uuid"), None);
    }

    #[test]
    fn check_sorts_settings_by_what_is_known_of_them() {
        let line = "understudy config check --override num.partition=3 --override group.share.max.size=2 --override confluent.x=1 \
                    --override num.partitions=3";
        let (text, code) = output(line, &[("KAFKA_WHATEVER", "1"), ("PATH", "/bin")]).unwrap();
        let expected = "\
unknown: num.partition=3 (--override); did you mean num.partitions?
unknown: whatever=1 (environment KAFKA_WHATEVER)
not acted on: group.share.max.size=2 (--override)
another product's: confluent.x=1 (--override)
no errors
";
        assert_eq!((text.as_str(), code), (expected, 0));
        let (text, code) = output("understudy config check --override num.partitions=x --override node.id=-1", &[]).unwrap();
        let expected = "\
error: node.id=-1 (--override): Value must be at least 0; allowed: [0,...]
error: num.partitions=x (--override): Not a number of type INT; allowed: [1,...]
";
        assert_eq!((text.as_str(), code), (expected, 1));
    }

    #[test]
    fn print_says_where_each_value_comes_from() {
        let (text, code) = output("understudy config print --override ssl.key.password=secret", &[("KAFKA_NUM_PARTITIONS", "5")]).unwrap();
        assert_eq!(code, 0);
        assert!(text.contains("\nnum.partitions=5  # environment KAFKA_NUM_PARTITIONS\n"), "{text}");
        assert!(text.contains("\nmessage.max.bytes=1048588  # default\n"));
        assert!(text.contains("\nssl.key.password=[hidden]  # --override\n") && !text.contains("secret"));
    }

    #[test]
    fn docs_have_a_row_for_every_key() {
        let (text, _) = output("understudy config docs", &[]).unwrap();
        for name in crate::config::keys().map(|key| key.name).chain(crate::config::TOPIC_KEYS.iter().map(|key| key.name)) {
            assert!(text.contains(&format!("`{name}`")), "{name}");
        }
        for line in text.lines().filter(|line| line.starts_with('|')) {
            assert!(line.ends_with(" |") && line.matches(" | ").count() >= 1, "{line}");
        }
    }

    #[test]
    fn storage_formats_once_and_tells() {
        let root = tempfile::tempdir().unwrap();
        let dirs = format!("{0}/a,{0}/b", root.path().display());
        let on = format!("--override log.dirs={dirs} --override node.id=3");
        let id = "MkU3OEVBNTcwNTJENDM2Qg";
        let problems = output(&format!("understudy storage info {on}"), &[]).unwrap();
        assert!(problems.1 == 1 && problems.0.contains("/a does not exist"), "{problems:?}");

        let (text, code) = output(&format!("understudy storage format -t {id} {on}"), &[]).unwrap();
        assert_eq!(code, 0);
        assert!(text.starts_with("Formatting metadata directory ") && text.contains("\nFormatting data directory "), "{text}");
        let refused = output(&format!("understudy storage format -t {id} {on}"), &[]).unwrap_err();
        assert!(
            refused.ends_with("/a is already formatted. Use --ignore-formatted to ignore this directory and format the others."),
            "{refused}"
        );
        let (text, code) = output(&format!("understudy storage format -t {id} --ignore-formatted {on}"), &[]).unwrap();
        assert_eq!((text.as_str(), code), ("All of the log directories are already formatted.\n", 0));
        let other = output(&format!("understudy storage format -t 4L6g3nShT-eMCtK--X86sw -g {on}"), &[]).unwrap_err();
        assert!(other.contains(id) && other.contains("4L6g3nShT-eMCtK--X86sw"), "{other}");
        let other =
            output(&format!("understudy storage format -t {id} -g --override log.dirs={dirs} --override node.id=4"), &[]).unwrap_err();
        assert!(other.contains("Expected 4, but read 3"), "{other}");

        let (text, code) = output(&format!("understudy storage info {on}"), &[]).unwrap();
        assert!(code == 0 && text.contains(&format!("cluster.id={id}")) && text.contains("Found log directories:"), "{text}");
        assert!(output(&format!("understudy storage format -t not-an-id {on}"), &[]).unwrap_err().contains("not-an-id"));
    }

    #[test]
    fn random_ids_differ_and_can_be_arguments() {
        let ids: std::collections::BTreeSet<String> = (0..200).map(|_| random_id().to_string()).collect();
        assert!(ids.len() == 200 && ids.iter().all(|id| id.len() == 22 && !id.starts_with('-')));
    }
}
