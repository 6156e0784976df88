//! The project's files as the checks see them: with comments and literals blanked, with tests blanked, and the paths that code names.
//! A scanner, not a parser: it knows as much of Rust as this project writes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One file.
pub struct Source {
    /// From the project's root, with `/`.
    pub path: String,
    /// As it is.
    pub text: String,
    /// Comments, strings and characters are spaces; lines and columns stay.
    pub code: String,
    /// As `code`, and whatever is compiled for tests alone is spaces too.
    pub shipped: String,
}

/// A path named in code.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    /// Line, from 1.
    pub line: usize,
    /// Its segments; one that begins with `crate` or `super` begins after the crate's root instead, marked by `crate`.
    pub path: String,
}

/// The project's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every text file of the project, by path.
pub fn texts() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut dirs = vec![root().to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).expect("a directory of the project") {
            let path: PathBuf = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if matches!(name, "target" | ".git" | "understudy-data") {
                continue;
            }
            if path.is_dir() {
                dirs.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let path = path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// The Rust files among them.
pub fn sources(texts: &[(String, String)]) -> Vec<Source> {
    let rust = texts.iter().filter(|(path, _)| path.ends_with(".rs"));
    let mut sources: Vec<Source> = rust.map(|(path, text)| Source::new(path, text)).collect();
    let tests: BTreeSet<String> = sources.iter().flat_map(test_modules).collect();
    for source in &mut sources {
        let stem = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
        if tests.iter().any(|test| stem == test || stem.starts_with(&format!("{test}/"))) {
            source.shipped = blank(&source.shipped, 0, source.shipped.len());
        }
    }
    sources
}

impl Source {
    /// A file on its own.
    pub fn new(path: &str, text: &str) -> Source {
        let code = without_comments(text);
        let mut shipped = code.clone();
        for (from, to) in test_items(&code) {
            shipped = blank(&shipped, from, to);
        }
        Source { path: path.into(), text: text.into(), code, shipped }
    }

    /// Names of the modules that the file is in, from the crate's root.
    pub fn module(&self) -> Vec<&str> {
        let inner = self.path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
        inner.split('/').filter(|name| !matches!(*name, "lib" | "main")).collect()
    }

    /// The paths of two segments or more that shipped code names, groups expanded.
    pub fn named(&self) -> Vec<Named> {
        named(&self.shipped, &self.module())
    }
}

fn blank(text: &str, from: usize, to: usize) -> String {
    let spaces: String = text[from..to].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
    [&text[..from], &spaces, &text[to..]].concat()
}

/// Blanks comments and literals, byte for byte.
pub fn without_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = skipped(bytes, at);
        if end > at {
            out[at..end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
            at = end;
        } else {
            at += 1;
        }
    }
    String::from_utf8(out).expect("only whole literals and comments are blanked")
}

/// Where the comment or literal that begins at `at` ends; `at` if none begins.
fn skipped(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let find = |from: usize, what: &[u8]| {
        let tail = bytes.get(from..).unwrap_or_default();
        tail.windows(what.len()).position(|w| w == what).map_or(bytes.len(), |found| from + found + what.len())
    };
    match rest {
        [b'/', b'/', ..] => find(at, b"\n").saturating_sub(1).max(at + 2),
        [b'/', b'*', ..] => find(at + 2, b"*/"),
        [b'"', ..] => {
            let mut end = at + 1;
            while end < bytes.len() && bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            (end + 1).min(bytes.len())
        }
        [b'r', b'"' | b'#', ..] if at == 0 || !is_word(bytes[at - 1]) || bytes[at - 1] == b'b' => {
            let hashes = rest[1..].iter().take_while(|b| **b == b'#').count();
            if rest.get(1 + hashes) != Some(&b'"') {
                return at;
            }
            find(at + 2 + hashes, &[&b"\""[..], &b"#".repeat(hashes)].concat())
        }
        [b'\'', b'\\', ..] => find(at + 3, b"'"),
        [b'\'', first, ..] => {
            let width = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            if rest.get(1 + width) == Some(&b'\'') { at + 2 + width } else { at }
        }
        _ => at,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// From and to of every item that `#[cfg(test)]` stands before.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let mark = "#[cfg(test)]";
    code.match_indices(mark).map(|(at, _)| (at, item_end(code, at + mark.len()))).collect()
}

/// The end of the item that begins at or after `from`: its `;`, or the brace that closes its first one.
fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Stems of the files that a `#[cfg(test)] mod name;` of this file names.
fn test_modules(source: &Source) -> Vec<String> {
    let dir = match source.path.rsplit_once('/') {
        Some((dir, "mod.rs" | "lib.rs" | "main.rs")) => dir.to_owned(),
        _ => source.path.trim_end_matches(".rs").to_owned(),
    };
    let items = test_items(&source.code).into_iter().map(|(from, to)| &source.code[from..to]);
    let names = items.filter_map(|item| item.strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name.trim()));
    names.map(|name| format!("{dir}/{name}")).collect()
}

/// See [`Source::named`]; `module` is what `super` and `self` begin from.
fn named(code: &str, module: &[&str]) -> Vec<Named> {
    let mut out = Vec::new();
    let bytes = code.as_bytes();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        if bytes[at] == b'\n' {
            line += 1;
        }
        let begins = is_word(bytes[at]) && (at == 0 || !is_word(bytes[at - 1]) && !matches!(bytes[at - 1], b'.' | b':' | b'\''));
        if !begins {
            at += 1;
            continue;
        }
        let mut found = Vec::new();
        let end = tree(code, at, String::new(), &mut found);
        out.extend(found.into_iter().filter(|path| path.contains("::")).map(|path| Named { line, path: from_root(&path, module) }));
        line += code[at..end].matches('\n').count();
        at = end;
    }
    out
}

/// Reads one path, or one use tree below `prefix`; returns where it ends.
fn tree(code: &str, from: usize, prefix: String, out: &mut Vec<String>) -> usize {
    let word = code[from..].bytes().take_while(|b| is_word(*b)).count();
    let mut at = from + word;
    let path = if prefix.is_empty() { code[from..at].to_owned() } else { format!("{prefix}::{}", &code[from..at]) };
    let Some(rest) = code[at..].strip_prefix("::") else {
        out.push(path);
        return at;
    };
    at += 2;
    match rest.bytes().next() {
        Some(b'{') => {
            at += 1;
            loop {
                at += code[at..].bytes().take_while(|b| b.is_ascii_whitespace() || *b == b',').count();
                match code.as_bytes().get(at) {
                    Some(b'}') => return at + 1,
                    Some(b) if is_word(*b) => {
                        at = tree(code, at, path.clone(), out);
                        // A renaming is not part of the path.
                        at += code[at..].bytes().take_while(|b| !matches!(b, b',' | b'}')).count();
                    }
                    Some(_) => at += 1,
                    None => return at,
                }
            }
        }
        Some(b) if is_word(b) => tree(code, at, path, out),
        _ => {
            out.push(format!("{path}::*"));
            at
        }
    }
}

/// `crate::a` and `super::a` as `crate::...` from the root; other paths as they are.
fn from_root(path: &str, module: &[&str]) -> String {
    let supers = path.split("::").take_while(|name| *name == "super").count();
    if supers == 0 {
        return path.to_owned();
    }
    let rest = path.split("::").skip(supers);
    let base = module.iter().take(module.len().saturating_sub(supers)).copied();
    ["crate"].into_iter().chain(base).chain(rest).collect::<Vec<_>>().join("::")
}

#[test]
fn comments_literals_and_tests_are_blanked() {
    let text = "use a::b; // c::d\n/* e::f */ let x = \"g::h \\\" i::j\"; let c = '\"'; let l: &'a str = r#\"k::\"l\"#;\n\
                #[cfg(test)]\nmod tests { use m::n; }\nfn o() { p::q() }";
    let source = Source::new("src/x/y.rs", text);
    assert_eq!(source.code.len(), text.len());
    let paths: Vec<_> = source.named().into_iter().map(|named| (named.line, named.path)).collect();
    assert_eq!(paths, [(1, "a::b".into()), (5, "p::q".into())]);
}

#[test]
fn use_trees_are_expanded_and_begin_at_the_root() {
    let source = Source::new("src/x/y.rs", "use crate::{a::{self, B as C}, d::*};\nuse super::super::e::F;\nuse super::z;");
    let paths: Vec<_> = source.named().into_iter().map(|named| named.path).collect();
    assert_eq!(paths, ["crate::a::self", "crate::a::B", "crate::d::*", "crate::e::F", "crate::x::z"]);
}

#[test]
fn files_of_test_modules_are_not_shipped() {
    let files = [("src/x/mod.rs", "#[cfg(test)]\npub(crate) mod kit;\nmod y;"), ("src/x/kit.rs", "use a::b;"), ("src/x/y.rs", "use a::c;")];
    let files: Vec<_> = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let named: Vec<_> = sources(&files).iter().flat_map(Source::named).map(|named| named.path).collect();
    assert_eq!(named, ["a::c"]);
}
