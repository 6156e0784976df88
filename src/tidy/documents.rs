//! Documents against the tree: what they name exists, and what exists they name.

use super::source::{Source, root, sources, texts};
use std::collections::BTreeSet;

/// Texts in backticks.
fn quoted(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().scan(false, |fenced, (at, line)| {
        *fenced ^= line.trim_start().starts_with("```");
        Some((at + 1, if *fenced { "" } else { line }))
    });
    lines.flat_map(|(at, line)| line.split('`').skip(1).step_by(2).map(move |word| (at, word)))
}

/// Files and folders that a document names and `exists` does not know. A folder ends in `/`, a file in `.rs`, `.md` or `.py`.
fn dead_paths(document: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let is_path = |word: &str| {
        let ends = word.ends_with('/') || [".rs", ".md", ".py"].iter().any(|end| word.ends_with(end));
        ends && !word.starts_with(['/', '.', '~']) && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
    };
    let dead = quoted(text).filter(|(_, word)| is_path(word) && !exists(word));
    dead.map(|(line, word)| format!("{document}:{line}: no such file: {word}")).collect()
}

/// Folders and actors that the description of the architecture leaves out.
fn left_out(text: &str, folders: &BTreeSet<String>, actors: &BTreeSet<String>) -> Vec<String> {
    let named: BTreeSet<&str> = quoted(text).map(|(_, word)| word).collect();
    let folders = folders.iter().filter(|folder| !named.contains(&*format!("{folder}/"))).map(|folder| format!("the folder {folder}/"));
    let row = |actor: &String| text.lines().any(|line| line.starts_with(&format!("| `{actor}` |")));
    let actors = actors.iter().filter(|actor| !row(actor)).map(|actor| format!("a row for the actor {actor}"));
    folders.chain(actors).map(|what| format!("src/ARCHITECTURE.md: nothing about {what}")).collect()
}

/// Types that are actors.
fn actors(sources: &[Source]) -> BTreeSet<String> {
    let lines = sources.iter().flat_map(|source| source.shipped.lines());
    lines.filter_map(|line| line.strip_prefix("impl Actor for ")?.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn documents_and_tree_agree() {
    let texts = texts();
    let of = |path: &str| texts.iter().find(|(name, _)| name == path).unwrap_or_else(|| panic!("{path} is missing")).1.as_str();
    let (readme, architecture) = (of("README.md"), of("src/ARCHITECTURE.md"));
    let mut found = dead_paths("README.md", readme, |path| root().join(path).exists());
    found.extend(dead_paths("src/ARCHITECTURE.md", architecture, |path| {
        root().join("src").join(path).exists() || root().join(path).exists()
    }));
    let sources: Vec<Source> = sources(&texts).into_iter().filter(|source| source.path.starts_with("src/")).collect();
    let folders =
        sources.iter().filter_map(|source| source.path.strip_prefix("src/")?.split_once('/')).map(|(folder, _)| folder.to_owned());
    let (folders, actors) = (folders.filter(|folder| folder != "tidy").collect::<BTreeSet<_>>(), actors(&sources));
    assert!(folders.len() >= 10 && actors.len() >= 5, "{folders:?} {actors:?}");
    found.extend(left_out(architecture, &folders, &actors));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn disagreements_are_found() {
    let text = "`core/` and `core/x.rs`, `/ready`, `a b/`\n```\n`gone/`\n```\n`gone.rs` | `Link` |\n| `Shard` | x |";
    assert_eq!(dead_paths("R", text, |path| path.starts_with("core")), ["R:5: no such file: gone.rs"]);
    let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<_>>();
    let found = left_out(text, &set(&["core", "log"]), &set(&["Link", "Shard"]));
    assert_eq!(
        found,
        ["src/ARCHITECTURE.md: nothing about the folder log/", "src/ARCHITECTURE.md: nothing about a row for the actor Link"]
    );
    let source = [Source::new("src/x.rs", "impl Actor for Link {}\n#[cfg(test)]\nmod tests { impl Actor for Fake {} }")];
    assert_eq!(actors(&source), set(&["Link"]));
}
