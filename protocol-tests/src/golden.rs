//! Golden text files: what a test saw the last time somebody looked. `UPDATE_GOLDEN=1` rewrites them.

use std::path::{Path, PathBuf};

/// Whether golden files are to be rewritten instead of compared.
pub fn updating() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// Path of a file of this package's `testdata`.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

/// Compares `text` with the golden file, or rewrites it.
///
/// # Panics
/// If they differ: the first line that does is in the text.
pub fn compare(name: &str, text: &str) {
    let path = path(name);
    if updating() {
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if let Some((line, (is, was))) = text.lines().zip(golden.lines()).enumerate().find(|(_, (is, was))| is != was) {
        panic!("{name}, line {}:\n  is  {is}\n  was {was}\nif that is meant: UPDATE_GOLDEN=1", line + 1);
    }
    assert_eq!(text.lines().count(), golden.lines().count(), "{name}: lines; if that is meant: UPDATE_GOLDEN=1");
}

/// Bytes as hex, with volatile parts replaced by their names in angle brackets. A part that does not occur is left; empty ones are an error.
pub fn masked_hex(bytes: &[u8], volatile: &[(&str, Vec<u8>)]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    let mut at = 0;
    while at < bytes.len() {
        match volatile.iter().find(|(_, part)| bytes[at..].starts_with(part)) {
            Some((name, part)) => {
                assert!(!part.is_empty(), "{name} is empty");
                out += &format!("<{name}>");
                at += part.len();
            }
            None => {
                out += &format!("{:02x}", bytes[at]);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volatile_parts_get_names() {
        let hex = masked_hex(&[0, 1, 2, 3, 1, 2], &[("id", vec![1, 2]), ("other", vec![9])]);
        assert_eq!(hex, "00<id>03<id>");
    }
}
