//! What group coordination costs: the rules by themselves, and a broker of its own process over the wire. Prints figures; fails if one is
//! beyond what the project promises. `cargo bench --bench groups -- rules` or `-- wire` runs one of the two.

mod consumers;
mod rules;
mod wire;

use std::time::Duration;

/// Prints what each of `count` took, and fails if that is more than `limit`.
fn report(what: &str, took: Duration, count: usize, limit: Duration) {
    let each = took / count as u32;
    println!("{what}: {each:?} (limit {limit:?})");
    assert!(each <= limit, "{what} takes too long");
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for (name, run) in [("rules", rules::run as fn()), ("consumers", consumers::run), ("wire", wire::run)] {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            run();
        }
    }
}
