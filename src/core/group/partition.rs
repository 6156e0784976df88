//! Which partition of `__consumer_offsets` a group belongs to.

/// The partition of `count` (at least 1) for that group: Java's hash of the text, its magnitude modulo the count.
pub fn partition_of(group: &str, count: i32) -> i32 {
    let hash = group.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    // The one number whose magnitude does not fit counts as 0.
    hash.checked_abs().unwrap_or(0) % count.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_java() {
        for (group, hash, partition) in [
            ("", 0, 0),
            ("a", 97, 47),
            ("console-consumer-1", 35_782_224, 24),
            ("polygenelubricants", i32::MIN, 0),
            ("grüße", 98_768_023, 23),
            ("\u{1F600}", 1_772_899, 49),
        ] {
            assert_eq!(partition_of(group, i32::MAX), if hash == i32::MIN { 0 } else { i32::abs(hash) }, "{group}");
            assert_eq!(partition_of(group, 50), partition, "{group}");
        }
    }
}
