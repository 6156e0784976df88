//! Who may import what: one row per folder of `src`, exceptions by file, each with its reason.

use super::source::{Source, sources, texts};

/// What a folder's code may name, besides itself, of what is watched: our other folders, the dependencies, and [`WATCHED_STD`].
struct Layer {
    folder: &'static str,
    may: &'static [&'static str],
}

/// The parts of std that touch the world.
const WATCHED_STD: &[&str] = &["env", "fs", "io", "net", "os", "process", "thread"];

/// The node, `main.rs` and `lib.rs` put everything together and may name all of it.
const LAYERS: &[Layer] = &[
    // The rules: values in, values out.
    Layer { folder: "core", may: &["bytes", "crc32c", "hashbrown", "imbl", "regex", "rustc_hash", "slab", "thiserror", "twox_hash"] },
    Layer {
        folder: "log",
        may: &[
            "core",
            "arc_swap",
            "bytes",
            "crc32c",
            "flate2",
            "hashbrown",
            "libc",
            "lz4_flex",
            "rustc_hash",
            "rustix",
            "serde",
            "serde_json",
            "siphasher",
            "snap",
            "std::fs",
            "std::io",
            "std::os",
            "thiserror",
            "tracing",
            "zstd",
        ],
    },
    Layer { folder: "wire", may: &["core", "bytes", "kafka_protocol", "serde", "serde_json", "thiserror", "uuid"] },
    // The other end of a connection: frames out, frames in.
    Layer { folder: "peer", may: &["rt::clock", "wire", "bytes", "kafka_protocol", "std::io", "thiserror", "tokio"] },
    // As pure as what it runs.
    Layer { folder: "sim", may: &["core", "bytes"] },
    Layer { folder: "config", may: &["core", "java_properties", "strsim", "thiserror"] },
    Layer { folder: "rt", may: &["core::types", "actix", "std::process", "thiserror", "tokio", "tracing"] },
    Layer {
        folder: "actors",
        may: &[
            "core",
            "log",
            "peer",
            "rt",
            "actix",
            "arc_swap",
            "bytes",
            "crossbeam_channel",
            "imbl",
            "rustc_hash",
            "rustix",
            "std::fs",
            "std::io",
            "std::thread",
            "thiserror",
            "tokio",
            "tracing",
            "understudy_metrics",
        ],
    },
    // Handlers see the actors' addresses and messages, not their insides.
    Layer {
        folder: "api",
        may: &[
            "actors::groups::Groups",
            "actors::groups::messages",
            "actors::link",
            "actors::partition::Partition",
            "actors::partition::messages",
            "actors::quorum",
            "actors::routes",
            "actors::shard::Disk",
            "config",
            "core",
            "log",
            "rt",
            "wire",
            "actix",
            "arc_swap",
            "bytes",
            "futures_util",
            "kafka_protocol",
            "rustc_hash",
            "std::net",
            "thiserror",
            "tokio",
            "tracing",
            "understudy_metrics",
            "uuid",
        ],
    },
    Layer {
        folder: "net",
        may: &[
            "api",
            "rt",
            "wire",
            "actix",
            "bytes",
            "futures_util",
            "rustc_hash",
            "rustix",
            "socket2",
            "std::io",
            "std::net",
            "std::os",
            "thiserror",
            "tokio",
            "tracing",
            "understudy_metrics",
        ],
    },
    Layer { folder: "http", may: &["axum", "hyper", "hyper_util", "serde", "tokio", "tracing", "understudy_metrics"] },
    Layer {
        folder: "cli",
        may: &[
            "config",
            "core",
            "log",
            "sim",
            "clap",
            "std::env",
            "std::fs",
            "std::io",
            "std::process",
            "thiserror",
            "tracing",
            "tracing_subscriber",
            "uuid",
        ],
    },
];

/// What a file may name beyond its folder's row.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("src/actors/controller.rs", "rand", "the process's randomness, handed to the rules as core::chance"),
    ("src/actors/groups/", "wire::records", "what groups are is written in Kafka's schemas"),
    ("src/actors/log_io/", "std::process", "a half-done disk job must not be followed by others"),
    ("src/actors/partition/", "uuid", "names for directories that are set aside"),
    ("src/actors/quorum/", "std::process", "without its metadata log a broker cannot go on"),
    ("src/actors/quorum/", "wire::quorum", "what its nodes say to each other is written in Kafka's schemas"),
    ("src/actors/quorum/", "wire::records", "the metadata log is written in Kafka's schemas"),
    ("src/actors/shard/settings.rs", "config", "what a topic's settings come to on this broker"),
    ("src/api/describe_log_dirs.rs", "rustix::fs::statvfs", "how much room a log directory has"),
    ("src/api/fetch.rs", "actors::controller::Random", "ids of fetch sessions"),
    ("src/api/fetch/reply.rs", "std::io", "ranges too small to leave to the socket are read here"),
    ("src/cli/election.rs", "std::net", "asks a running node"),
    ("src/cli/sim.rs", "rt::clock", "how long it took"),
    ("src/config/endpoints.rs", "std::net::IpAddr", "reads addresses, opens nothing"),
    ("src/config/file.rs", "std::fs", "the properties file"),
    ("src/config/file.rs", "std::io", "why it cannot be read"),
    ("src/rt/watch.rs", "std::thread::panicking", "how an actor ended"),
];

/// What breaks a row, as `file:line: text`.
fn breaches(source: &Source, dependencies: &[String], used: &mut Vec<usize>) -> Vec<String> {
    let module = source.module();
    let Some(layer) = LAYERS.iter().find(|layer| module.first() == Some(&layer.folder)) else { return Vec::new() };
    if source.path.starts_with("src/actors/node/") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for named in source.named() {
        let Some(path) = watched(&named.path, layer.folder, dependencies) else { continue };
        if layer.may.iter().any(|may| is_below(path, may)) {
            continue;
        }
        match EXCEPTIONS.iter().position(|(file, import, _)| source.path.starts_with(file) && is_below(path, import)) {
            Some(exception) => used.push(exception),
            None => found.push(format!("{}:{}: {} may not name {path}", source.path, named.line, layer.folder)),
        }
    }
    found
}

/// The part of a path that a row would have to allow; nothing if it is not watched.
fn watched<'a>(path: &'a str, folder: &str, dependencies: &[String]) -> Option<&'a str> {
    let first = path.split("::").next()?;
    match first {
        "crate" => path.strip_prefix("crate::").filter(|rest| !is_below(rest, folder)),
        "std" => path.split("::").nth(1).filter(|second| WATCHED_STD.contains(second)).map(|_| path),
        _ => dependencies.iter().any(|dependency| dependency == first).then_some(path),
    }
}

fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Names of the root package's dependencies, as code spells them.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default().split("\n[").next().unwrap_or_default();
    section.lines().filter_map(|line| Some(line.split_once(" = ")?.0.replace('-', "_"))).collect()
}

#[test]
fn every_layer_imports_only_what_it_may() {
    let texts = texts();
    let manifest = &texts.iter().find(|(path, _)| path == "Cargo.toml").expect("the manifest").1;
    let (dependencies, sources, mut used) = (dependencies(manifest), sources(&texts), Vec::new());
    assert!(dependencies.len() > 20, "{dependencies:?}");
    let found: Vec<String> = sources.iter().flat_map(|source| breaches(source, &dependencies, &mut used)).collect();
    assert!(found.is_empty(), "see LAYERS in src/tidy/layers.rs:\n{}", found.join("\n"));
    let idle: Vec<_> = (0..EXCEPTIONS.len()).filter(|row| !used.contains(row)).map(|row| EXCEPTIONS[row]).collect();
    assert!(idle.is_empty(), "exceptions that nothing needs any more: {idle:?}");
    let unknown: Vec<_> = sources.iter().filter(|source| source.path.starts_with("src/") && source.path.matches('/').count() > 1).collect();
    for source in unknown {
        let folder = source.module()[0];
        assert!(folder == "tidy" || LAYERS.iter().any(|layer| layer.folder == folder), "{}: a folder without a row in LAYERS", source.path);
    }
}

#[test]
fn dependencies_that_nothing_names_are_gone() {
    let texts = texts();
    let manifest = &texts.iter().find(|(path, _)| path == "Cargo.toml").expect("the manifest").1;
    let code: Vec<Source> = sources(&texts).into_iter().filter(|source| source.path.starts_with("src/")).collect();
    let unused = unnamed(&dependencies(manifest), &code);
    assert!(unused.is_empty(), "in Cargo.toml and nowhere in src: {unused:?}");
}

fn unnamed(dependencies: &[String], code: &[Source]) -> Vec<String> {
    let named = |name: &String| code.iter().any(|source| source.shipped.contains(&format!("{name}::")));
    dependencies.iter().filter(|name| !named(name)).cloned().collect()
}

#[test]
fn a_breach_is_found() {
    let dependencies = ["tokio".to_owned(), "thiserror".to_owned()];
    let of = |path: &str, text: &str| breaches(&Source::new(path, text), &dependencies, &mut Vec::new());
    assert_eq!(of("src/core/x.rs", "use crate::core::types::Offset;\nuse super::y;\nuse std::sync::Arc;\nuse thiserror::Error;"), [""; 0]);
    assert_eq!(of("src/core/x.rs", "\nuse crate::log::Log;"), ["src/core/x.rs:2: core may not name log::Log"]);
    assert_eq!(of("src/core/x.rs", "use super::super::log;"), ["src/core/x.rs:1: core may not name log"]);
    assert_eq!(of("src/core/x.rs", "fn f() { std::fs::read(p) }"), ["src/core/x.rs:1: core may not name std::fs::read"]);
    assert_eq!(of("src/core/x.rs", "use std::{sync::Arc, thread};"), ["src/core/x.rs:1: core may not name std::thread"]);
    assert_eq!(of("src/core/x.rs", "use tokio::time;"), ["src/core/x.rs:1: core may not name tokio::time"]);
    assert_eq!(of("src/rt/x.rs", "use crate::core::{types::Millis, quorum};"), ["src/rt/x.rs:1: rt may not name core::quorum"]);
    assert_eq!(of("src/api/x.rs", "use crate::actors::shard::{Disk, Shard};"), ["src/api/x.rs:1: api may not name actors::shard::Shard"]);
    let source = [Source::new("src/x.rs", "use tokio::time;")];
    assert_eq!(unnamed(&dependencies, &source), ["thiserror"]);
}
