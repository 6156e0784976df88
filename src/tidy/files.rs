//! What every file must have and must not have.

use super::source::{Source, root, sources, texts};

/// Longer files hold more than one idea.
const LONGEST: usize = 600;

/// Files that are longer, with the reason.
const LONG: &[(&str, &str)] = &[];

/// The files of the checks name what they look for.
fn is_ours(path: &str) -> bool {
    path.starts_with("src/tidy")
}

/// Complaints about one Rust file.
fn complaints(source: &Source) -> Vec<String> {
    let Source { path, text, code, shipped } = source;
    let mut found = Vec::new();
    let mut complain = |line: usize, what: String| found.push(format!("{path}:{line}: {what}"));
    if !text.starts_with("//! ") {
        complain(1, "does not begin by saying what it is (//!)".into());
    }
    let lines = text.lines().count();
    if lines > LONGEST && !LONG.iter().any(|(long, _)| long == path) {
        complain(lines, format!("longer than {LONGEST} lines"));
    }
    for (at, (line, code)) in text.lines().zip(code.lines()).enumerate() {
        if let Some(word) = left_over(line, code) {
            complain(at + 1, format!("left over: {word}"));
        }
    }
    if path != "src/rt/clock.rs" && (path.starts_with("src/") || path.starts_with("metrics/src/")) {
        for (at, line) in shipped.lines().enumerate() {
            if let Some(clock) =
                ["Instant::now", "SystemTime::now", "UNIX_EPOCH", "clock_gettime"].iter().find(|clock| line.contains(**clock))
            {
                complain(at + 1, format!("reads the clock ({clock}); only rt::clock does"));
            }
        }
    }
    found
}

/// A word that says that something was meant to be done later. `code` is the line without comments and literals.
fn left_over(line: &str, code: &str) -> Option<&'static str> {
    let words = ["TODO", "FIXME", "XXX", "HACK"];
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let written = words.into_iter().find(|word| line.split(|c| !is_word(c)).any(|part| part == *word));
    let macros = ["todo!", "unimplemented!", "dbg!", "#[ignore"].into_iter().find(|name| code.contains(name));
    let lower = line.to_lowercase();
    written.or(macros).or(["placeholder", "until merge", "/// x\n"].into_iter().find(|text| lower.contains(text)))
}

/// Paths that exist on somebody's machine only. `~/` and what a container has (`/var/lib`) are not.
fn machine_paths(path: &str, text: &str) -> Vec<String> {
    // Kafka's own default, which our config layer is compared with.
    let kafkas = "/tmp/kafka-logs";
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.replace(kafkas, "");
        for place in ["/work", "/tmp", "/root", "/home", "/farm"] {
            let stands = line.match_indices(place).any(|(from, _)| {
                let before = line[..from].chars().next_back();
                let after = line[from + place.len()..].chars().next();
                !before.is_some_and(|c| c.is_alphanumeric() || "._-~})".contains(c))
                    && !after.is_some_and(|c| c.is_alphanumeric() || "-_".contains(c))
            });
            if stands {
                found.push(format!("{path}:{}: a path of one machine ({place})", at + 1));
            }
        }
    }
    found
}

/// Files that no `mod` names: they look like code and are never compiled.
fn orphans(sources: &[Source]) -> Vec<String> {
    let is_declared = |path: &str| {
        let (dir, name) = stem(path).rsplit_once('/').expect("below src");
        let parents = sources
            .iter()
            .filter(|source| stem(&source.path) == dir || matches!(source.path.strip_prefix(dir), Some("/lib.rs" | "/main.rs")));
        parents.into_iter().any(|parent| declares(&parent.code, name))
    };
    let paths = sources.iter().map(|source| source.path.as_str());
    let modules = paths.filter(|path| {
        (path.starts_with("src/") || path.contains("/src/")) && !path.ends_with("src/lib.rs") && !path.ends_with("src/main.rs")
    });
    modules.filter(|path| !is_declared(path)).map(|path| format!("{path}: no `mod` names it")).collect()
}

/// The path of a module's file without what files are called.
fn stem(path: &str) -> &str {
    let stem = path.trim_end_matches(".rs");
    stem.strip_suffix("/mod").unwrap_or(stem)
}

/// Whether the code has `mod name;`, or names it to a macro that declares modules.
fn declares(code: &str, name: &str) -> bool {
    code.contains(&format!("mod {name};")) || code.contains("mod $module;") && code.contains(&format!("\n    {name}:"))
}

/// `understudy.` keys that a text names and the configuration does not have.
fn unknown_keys(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for (from, _) in line.match_indices("`understudy.") {
            let name: String = line[from + 1..].chars().take_while(|c| c.is_ascii_lowercase() || *c == '.').collect();
            if line[from + 1 + name.len()..].starts_with('`') && crate::config::key(&name).is_none() {
                found.push(format!("{path}:{}: no such key: {name}", at + 1));
            }
        }
    }
    found
}

#[test]
fn files_are_in_order() {
    let texts = texts();
    let sources = sources(&texts);
    assert!(sources.len() > 100, "only {} files below {}", sources.len(), root().display());
    let ours = |path: &&(String, String)| is_ours(&path.0);
    let mut found: Vec<String> = sources.iter().filter(|source| !is_ours(&source.path)).flat_map(complaints).collect();
    found.extend(texts.iter().filter(|text| !ours(text)).flat_map(|(path, text)| machine_paths(path, text)));
    found.extend(texts.iter().filter(|text| !ours(text)).flat_map(|(path, text)| unknown_keys(path, text)));
    found.extend(orphans(&sources));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_is_out_of_order_is_found() {
    let of = |text: &str| complaints(&Source::new("src/x.rs", text)).join("|");
    assert_eq!(of("//! Fine.\nfn f() { let s = \"dbg!\"; }"), "");
    assert_eq!(of("fn f() {}"), "src/x.rs:1: does not begin by saying what it is (//!)");
    assert_eq!(of("//! X.\n// TODO: more"), "src/x.rs:2: left over: TODO");
    assert_eq!(of("//! X.\nfn f() { todo!() }"), "src/x.rs:2: left over: todo!");
    assert_eq!(of("//! A Placeholder."), "src/x.rs:1: left over: placeholder");
    assert_eq!(of("//! X.\n#[ignore]\nfn f() {}"), "src/x.rs:2: left over: #[ignore");
    assert_eq!(of("//! X.\nlet t = Instant::now();"), "src/x.rs:2: reads the clock (Instant::now); only rt::clock does");
    assert_eq!(of("//! X.\n#[cfg(test)]\nmod tests { fn f() { Instant::now(); } }"), "");
    let long = format!("//! X.\n{}", "//\n".repeat(LONGEST));
    assert_eq!(of(&long), "src/x.rs:601: longer than 600 lines");

    assert_eq!(
        machine_paths("a", "x /tmp/kafka-logs ~/work a/work /workers /home-made $x/tmp http://h/home"),
        ["a:1: a path of one machine (/tmp)"; 0]
    );
    assert_eq!(machine_paths("a", "\n\"/work/x\" or /tmp"), ["a:2: a path of one machine (/work)", "a:2: a path of one machine (/tmp)"]);

    let files = [
        Source::new("src/lib.rs", "mod a;\n// mod b;"),
        Source::new("src/a.rs", ""),
        Source::new("src/b.rs", ""),
        Source::new("src/a/c.rs", ""),
    ];
    assert_eq!(orphans(&files), ["src/b.rs: no `mod` names it", "src/a/c.rs: no `mod` names it"]);

    assert_eq!(unknown_keys("a", "`understudy.shards` and `understudy.sharks`, `understudy.x"), ["a:1: no such key: understudy.sharks"]);
}
