//! The integers of records: zigzag, then little-endian base 128. One and two bytes are the common cases.

use super::records::Fault;

/// Unsigned little-endian base 128 of at most `BITS` bits at the start of `bytes`: the value and its length.
#[inline(always)]
fn unsigned<const BITS: u32>(bytes: &[u8]) -> Result<(u64, usize), Fault> {
    match *bytes {
        [a, ..] if a < 0x80 => Ok((u64::from(a), 1)),
        [a, b, ..] if b < 0x80 => Ok((u64::from(a & 0x7f) | u64::from(b) << 7, 2)),
        _ => long_unsigned::<BITS>(bytes),
    }
}

#[inline(never)]
fn long_unsigned<const BITS: u32>(bytes: &[u8]) -> Result<(u64, usize), Fault> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().enumerate() {
        let shift = 7 * i as u32;
        let bits = u64::from(byte & 0x7f);
        if shift >= BITS || (BITS - shift < 7 && bits >> (BITS - shift) != 0) {
            return Err(Fault::Varint);
        }
        value |= bits << shift;
        if *byte < 0x80 {
            return Ok((value, i + 1));
        }
    }
    Err(Fault::Short)
}

/// A zigzag varint of 32 bits and its length.
#[inline(always)]
pub(super) fn varint(bytes: &[u8]) -> Result<(i32, usize), Fault> {
    let (n, len) = unsigned::<32>(bytes)?;
    let n = n as u32;
    Ok(((n >> 1) as i32 ^ -((n & 1) as i32), len))
}

/// A zigzag varint of 64 bits and its length.
#[inline(always)]
pub(super) fn varlong(bytes: &[u8]) -> Result<(i64, usize), Fault> {
    let (n, len) = unsigned::<64>(bytes)?;
    Ok(((n >> 1) as i64 ^ -((n & 1) as i64), len))
}

/// Appends a zigzag varint; also writes 64-bit ones.
pub(super) fn put_varint(out: &mut Vec<u8>, n: i64) {
    let mut rest = (n << 1 ^ n >> 63) as u64;
    while rest > 0x7f {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Bytes that [`put_varint`] writes.
pub(super) fn varint_size(n: i64) -> usize {
    let zigzag = (n << 1 ^ n >> 63) as u64;
    (64 - (zigzag | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges() {
        let cases: [(&[u8], i32); 8] = [
            (&[0], 0),
            (&[1], -1),
            (&[2], 1),
            (&[0x7f], -64),
            (&[0x80, 1], 64),
            (&[0xff, 0xff, 3], -32768),
            (&[0xfe, 0xff, 0xff, 0xff, 0x0f], i32::MAX),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], i32::MIN),
        ];
        for (bytes, n) in cases {
            assert_eq!(varint(bytes), Ok((n, bytes.len())));
            let mut out = Vec::new();
            put_varint(&mut out, n.into());
            assert_eq!(out, bytes);
        }
        assert_eq!(varint(&[]), Err(Fault::Short));
        assert_eq!(varint(&[0x80, 0x80]), Err(Fault::Short));
        assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0x1f]), Err(Fault::Varint), "33 bits");
        assert_eq!(varint(&[0x80; 6]), Err(Fault::Varint));
        assert_eq!(varlong(&[0xff; 10]), Err(Fault::Varint));
        assert_eq!(varlong(&[0x80; 11]), Err(Fault::Varint));
        assert_eq!(varlong(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]), Ok((i64::MIN, 10)));
    }

    proptest! {
        #[test]
        fn written_is_read(n: i64, shift in 0u32..64) {
            let n = n >> shift;
            let mut out = Vec::new();
            put_varint(&mut out, n);
            prop_assert_eq!(varint_size(n), out.len());
            prop_assert_eq!(varlong(&out), Ok((n, out.len())));
            let narrow = i32::try_from(n);
            prop_assert_eq!(varint(&out).ok(), narrow.ok().map(|n| (n, out.len())));
        }
    }
}
