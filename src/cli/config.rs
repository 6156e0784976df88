//! `config print`, `config docs`, `config check`.

use crate::config::{Config, Given, Key, Kind, Setting, Standing, Status, TOPIC_KEYS, keys, not_acted_on};
use std::io::{self, Write};

fn shown(kind: Option<Kind>, value: &str) -> &str {
    if kind == Some(Kind::Password) { "[hidden]" } else { value }
}

/// Every key with the value in force and where it comes from, by name; keys that others know included.
pub fn print(config: &Config, out: &mut dyn Write) -> io::Result<()> {
    let mut names: Vec<&str> = keys().map(|key| key.name).chain(config.given.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let kind = crate::config::key(name).map(|key| key.kind);
        match (config.given.get(name), config.value(name)) {
            (Some(Setting { origin, value }), None) => writeln!(out, "{name}={}  # {origin}", shown(kind, value))?,
            (Some(Setting { origin, .. }), Some(value)) => writeln!(out, "{name}={}  # {origin}", shown(kind, &value))?,
            (None, Some(value)) => writeln!(out, "{name}={value}  # default")?,
            (None, None) => {}
        }
    }
    Ok(())
}

/// What is wrong, what is unknown, what nothing acts on. Whether there are no errors.
pub fn check(given: Given, out: &mut dyn Write) -> io::Result<bool> {
    let idle: Vec<(String, Standing)> = not_acted_on(&given)
        .map(|(name, Setting { value, origin }, standing)| {
            let kind = crate::config::key(name).map(|key| key.kind);
            (format!("{name}={} ({origin})", shown(kind, value)), standing)
        })
        .collect();
    let errors = Config::load(given).err();
    for error in errors.iter().flat_map(|errors| &errors.0) {
        writeln!(out, "error: {error}")?;
    }
    for (text, standing) in &idle {
        match standing {
            Standing::Unknown { nearest: Some(nearest) } => writeln!(out, "unknown: {text}; did you mean {nearest}?")?,
            Standing::Unknown { nearest: None } => writeln!(out, "unknown: {text}")?,
            _ => {}
        }
    }
    for (wanted, title) in [(Standing::NotYet, "not acted on"), (Standing::Foreign, "another product's")] {
        for (text, _) in idle.iter().filter(|(_, standing)| *standing == wanted) {
            writeln!(out, "{title}: {text}")?;
        }
    }
    if errors.is_none() {
        writeln!(out, "no errors")?;
    }
    Ok(errors.is_none())
}

/// All keys as Markdown tables.
pub fn docs(out: &mut dyn Write) -> io::Result<()> {
    let table = |out: &mut dyn Write, title: &str, wanted: &dyn Fn(&Key) -> bool| -> io::Result<()> {
        writeln!(out, "## {title}\n")?;
        writeln!(out, "| Key | Type | Default | Allowed | Changes | Meaning |\n| --- | --- | --- | --- | --- | --- |")?;
        for key in keys().filter(|key| wanted(key)) {
            let (name, kind, update, doc) = (key.name, key.kind.name().to_lowercase(), key.update.name(), key.doc);
            writeln!(out, "| `{name}` | {kind} | {} | {} | {update} | {doc} |", code(key.default), code(Some(&key.rule.to_string())))?;
        }
        writeln!(out)
    };
    writeln!(out, "# Configuration keys\n")?;
    table(out, "Our own", &|key| key.is_ours())?;
    table(out, "Kafka's, acted on", &|key| !key.is_ours() && key.status == Status::Now)?;
    writeln!(out, "## Of topics\n\nA topic's value, or else that of the first broker key that is set, or else the default.\n")?;
    writeln!(out, "| Key | Type | Default | Allowed | Broker keys | Meaning |\n| --- | --- | --- | --- | --- | --- |")?;
    for key in TOPIC_KEYS {
        let (name, kind, doc) = (key.name, key.kind.name().to_lowercase(), key.doc);
        let synonyms: Vec<String> = key.synonyms.iter().map(|name| format!("`{name}`")).collect();
        let (default, allowed) = (code(key.default), code(Some(&key.rule.to_string())));
        writeln!(out, "| `{name}` | {kind} | {default} | {allowed} | {} | {doc} |", synonyms.join(", "))?;
    }
    writeln!(out)?;
    table(out, "Kafka's, not acted on yet", &|key| key.status == Status::Later)
}

/// A value in a table cell.
fn code(text: Option<&str>) -> String {
    match text {
        None | Some("") => String::new(),
        Some(text) => format!("`{}`", text.replace('|', "\\|")),
    }
}
