//! Log lines: for people or as JSON, on standard error, as much as `RUST_LOG` asks for (`info` if it asks for nothing).

use crate::config::LogFormat;
use std::io::IsTerminal;
use tracing_subscriber::filter::{EnvFilter, LevelFilter};

/// Starts logging for the whole process. A second call changes nothing: several nodes can run in one process.
pub fn start(format: LogFormat) {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).from_env_lossy();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // The error says that somebody was first, which is what is wanted.
    let _ = match format {
        LogFormat::Human => lines.with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}
