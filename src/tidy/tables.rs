//! Tables in the code: the API keys and their files, what messages between actors say about themselves, the configuration keys acted on.

use super::source::{Source, sources, texts};
use crate::api::{Spec, TABLE};
use crate::config::{Status, TOPIC_KEYS, keys};

/// What is wrong with the table and the handlers' files: (name of the file without `.rs`, its text).
fn api_faults(table: &[Spec], files: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    for pair in table.windows(2) {
        if pair[0].key >= pair[1].key {
            found.push(format!("apis!: {} (key {}) stands before {} (key {})", pair[0].name, pair[0].key, pair[1].name, pair[1].key));
        }
    }
    for spec in table {
        let module = snake(spec.name);
        let versions = if spec.min == spec.max { format!("v{}", spec.min) } else { format!("v{}-{}", spec.min, spec.max) };
        let header = format!("//! {} (key {}), {versions}", spec.name, spec.key);
        match files.iter().find(|(name, _)| *name == module) {
            None => found.push(format!("src/api/{module}.rs: {} is in the table and has no file of that name", spec.name)),
            Some((_, text)) => {
                let rest = text.strip_prefix(&*header);
                if !rest.is_some_and(|rest| rest.starts_with(['.', ';', ' '])) {
                    found.push(format!("src/api/{module}.rs:1: should begin {header:?}, as its SPEC says"));
                }
            }
        }
    }
    for (name, text) in files {
        if text.contains("pub const SPEC: Spec") && !table.iter().any(|spec| snake(spec.name) == *name) {
            found.push(format!("src/api/{name}.rs: has a SPEC and is not in apis!"));
        }
        for (at, line) in text.lines().enumerate() {
            let number = line.split("with_error_code(").nth(1).and_then(|rest| rest.chars().next());
            if number.is_some_and(|c| c.is_ascii_digit() || c == '-') {
                found.push(format!("src/api/{name}.rs:{}: an error by its number; wire::error names them", at + 1));
            }
        }
    }
    found
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Messages that do not say who sends them and what it means if they are lost.
fn quiet_messages(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for (at, code) in source.shipped.lines().enumerate() {
        let derives =
            code.trim_start().starts_with("#[derive(") && code.split(|c: char| !c.is_alphanumeric()).any(|word| word == "Message");
        if !derives {
            continue;
        }
        let above = lines[..at].iter().rev().take_while(|line| line.starts_with("///") || line.starts_with("#["));
        let doc: String = above.copied().collect();
        let name = lines[at..].iter().find_map(|line| line.strip_prefix("pub struct ")).unwrap_or_default();
        let name = name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        for what in ["From:", "Lost:"] {
            if !doc.contains(what) {
                found.push(format!("{}:{}: the message {name} does not say {what}", source.path, at + 1));
            }
        }
    }
    found
}

#[test]
fn every_api_has_its_file_and_says_its_versions() {
    let texts = texts();
    let files = texts.iter().filter_map(|(path, text)| Some((path.strip_prefix("src/api/")?.strip_suffix(".rs")?, text.as_str())));
    let found = api_faults(TABLE, &files.collect::<Vec<_>>());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_message_says_who_sends_it_and_what_its_loss_means() {
    let sources = sources(&texts());
    let messages = sources.iter().map(|source| source.shipped.matches("#[rtype(").count()).sum::<usize>();
    assert!(messages > 20, "only {messages} messages found");
    let found: Vec<String> = sources.iter().filter(|source| source.path.starts_with("src/")).flat_map(quiet_messages).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn faults_of_the_table_are_found() {
    let table = [Spec::new(3, "Metadata", 0, 13), Spec::new(32, "DescribeConfigs", 4, 4)];
    let good = ("metadata", "//! Metadata (key 3), v0-13.\npub const SPEC: Spec");
    let fine = [good, ("describe_configs", "//! DescribeConfigs (key 32), v4; more\nx"), ("cx", "//! Help.")];
    assert_eq!(api_faults(&table, &fine), [""; 0]);
    assert_eq!(
        api_faults(&table, &fine[..1]),
        ["src/api/describe_configs.rs: DescribeConfigs is in the table and has no file of that name"]
    );
    let stale = [("metadata", "//! Metadata (key 3), v0-12.\n"), fine[1]];
    assert_eq!(api_faults(&table, &stale), ["src/api/metadata.rs:1: should begin \"//! Metadata (key 3), v0-13\", as its SPEC says"]);
    let wider = [("metadata", "//! Metadata (key 3), v0-130.\n"), fine[1]];
    assert_eq!(api_faults(&table, &wider).len(), 1);
    assert_eq!(
        api_faults(&table[..1], &[good, ("fetch", "pub const SPEC: Spec = x")]),
        ["src/api/fetch.rs: has a SPEC and is not in apis!"]
    );
    let turned = [table[1], table[0], table[0]];
    assert_eq!(api_faults(&turned, &fine).len(), 2);
    let number = [("metadata", "//! Metadata (key 3), v0-13.\n  .with_error_code(35)")];
    assert_eq!(api_faults(&table[..1], &number), ["src/api/metadata.rs:2: an error by its number; wire::error names them"]);
}

#[test]
fn quiet_messages_are_found() {
    let of = |doc: &str| {
        quiet_messages(&Source::new("src/x.rs", &format!("{doc}\n#[derive(Message, Clone)]\n#[rtype(result = \"()\")]\npub struct Go;")))
    };
    assert_eq!(of("/// Go. From: us.\n/// Lost: never."), [""; 0]);
    assert_eq!(of("/// Go. From: us."), ["src/x.rs:2: the message Go does not say Lost:"]);
    assert_eq!(of("/// Lost: never. From: us.\nuse x;").len(), 2);
}

/// Keys that claim to be acted on though no code outside their table names their field, and no topic key takes its default from them.
fn idle_keys<'a>(acted_on: impl Iterator<Item = &'a str>, sources: &[Source]) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let named = |field: &str| {
        let others = sources.iter().filter(|source| source.path.starts_with("src/") && source.path != "src/config/broker.rs");
        others.flat_map(|source| source.shipped.split(|c| !is_word(c))).any(|word| word == field)
    };
    let is_default = |key: &str| TOPIC_KEYS.iter().any(|topic| topic.synonyms.contains(&key));
    acted_on.filter(|key| !is_default(key) && !named(&key.replace('.', "_"))).map(|key| format!("{key} says that it is acted on")).collect()
}

#[test]
fn every_key_that_says_it_is_acted_on_is() {
    let acted_on = keys().filter(|key| key.status == Status::Now).map(|key| key.name);
    assert_eq!(idle_keys(acted_on, &sources(&texts())), Vec::<String>::new(), "act on it, or say `Later` in src/config/broker.rs");
}

#[test]
fn idle_keys_are_found() {
    let uses = Source::new("src/x.rs", "fn f(c: &Config) -> i32 { c.node_id }");
    let keys = ["node.id", "log.retention.ms", "socket.send.buffer.bytes"].into_iter();
    assert_eq!(idle_keys(keys, &[uses]), ["socket.send.buffer.bytes says that it is acted on"]);
}
