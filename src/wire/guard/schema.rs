//! The form of the layout table, and how to find a request in it.

use super::table::{ANSWERS, APIS, STRUCTS};

/// Never, or no tag.
pub(super) const N: u8 = u8::MAX;

/// What one value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One byte: false if 0.
    Bool,
    /// One byte: a number.
    I8,
    /// Two bytes.
    I16,
    /// Four bytes.
    I32,
    /// Eight bytes: a number or a float.
    I64,
    /// Sixteen bytes.
    Uuid,
    /// UTF-8 text with a length before it.
    Str,
    /// Bytes with a length before them: also records.
    Bytes,
    /// Fields, and in flexible versions tagged fields.
    Struct,
}

impl Kind {
    /// Bytes that one such value takes, if all take the same.
    pub(super) const fn width(self) -> Option<usize> {
        match self {
            Kind::Bool | Kind::I8 => Some(1),
            Kind::I16 => Some(2),
            Kind::I32 => Some(4),
            Kind::I64 => Some(8),
            Kind::Uuid => Some(16),
            Kind::Str | Kind::Bytes | Kind::Struct => None,
        }
    }
}

/// Whether a field holds one value or a list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One.
    One(Kind),
    /// A count, then so many.
    ArrayOf(Kind),
}

/// One field of a struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) shape: Shape,
    first: u8,
    last: u8,
    null_from: u8,
    /// Its number if it is tagged, else `N`.
    pub(super) tag: u8,
    /// Which struct, if it holds structs.
    pub(super) structure: u8,
}

impl Field {
    /// Whether that version has the field.
    pub(super) const fn is_in(&self, version: u8) -> bool {
        self.first <= version && version <= self.last
    }

    /// Whether that version lets it be null.
    pub(super) const fn nullable(&self, version: u8) -> bool {
        self.null_from <= version
    }
}

/// A row of the table of fields.
pub(super) const fn f(shape: Shape, first: u8, last: u8, null_from: u8, tag: u8, structure: u8) -> Field {
    Field { shape, first, last, null_from, tag, structure }
}

/// One kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    /// Its number.
    pub key: i16,
    /// Kafka's name, without "Request".
    pub name: &'static str,
    /// Lowest version whose layout is known.
    pub first: i16,
    /// Highest version whose layout is known.
    pub last: i16,
    flexible: i16,
    pub(super) structure: u8,
}

impl Api {
    /// Whether that version has compact lengths and tagged fields, and header version 2. Also answers for versions beyond the known ones.
    pub const fn flexible(&self, version: i16) -> bool {
        version >= self.flexible
    }
}

/// A row of the table of requests.
pub(super) const fn a(key: i16, name: &'static str, first: i16, last: i16, flexible: u8, structure: u8) -> Api {
    Api { key, name, first, last, flexible: if flexible == N { i16::MAX } else { flexible as i16 }, structure }
}

/// Where each key is in the table, `N` if it is not.
const PLACES: [u8; 128] = {
    let mut places = [N; 128];
    let mut i = 0;
    while i < APIS.len() {
        places[APIS[i].key as usize] = i as u8;
        i += 1;
    }
    places
};

/// The request of that key, or `None` if Kafka 4.3 has none.
pub fn api(key: i16) -> Option<&'static Api> {
    let place = *PLACES.get(usize::try_from(key).ok()?)?;
    APIS.get(usize::from(place))
}

/// The answer to what this broker asks others under that key.
pub(super) fn answer(key: i16) -> Option<&'static Api> {
    ANSWERS.iter().find(|api| api.key == key)
}

/// Every known request, by rising key.
pub fn apis() -> &'static [Api] {
    APIS
}

/// The fields of that struct.
pub(super) fn fields(structure: u8) -> &'static [Field] {
    STRUCTS[usize::from(structure)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_others_are_not() {
        for known in apis() {
            assert_eq!(api(known.key), Some(known));
        }
        for unknown in [-1, i16::MIN, 4, 5, 6, 7, 93, 127, 128, 999, i16::MAX] {
            assert_eq!(api(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn flexible_versions_are_kafkas() {
        let table = [
            (0, 8, false),
            (0, 9, true),
            (3, 9, true),
            (17, 1, false),
            (18, 2, false),
            (18, 3, true),
            (18, 99, true),
            (18, -1, false),
            (47, 0, false),
        ];
        for (key, version, want) in table {
            assert_eq!(api(key).unwrap().flexible(version), want, "key {key} v{version}");
        }
    }

    /// The guard recurses along structs, so the table itself bounds its depth.
    #[test]
    fn structs_nest_five_deep_at_most_and_never_in_a_circle() {
        fn depth(structure: u8, above: usize) -> usize {
            assert!(above < 5, "struct {structure} is nested too deep");
            let inner = fields(structure).iter().filter(|f| matches!(f.shape, Shape::One(Kind::Struct) | Shape::ArrayOf(Kind::Struct)));
            1 + inner.map(|f| depth(f.structure, above + 1)).max().unwrap_or(0)
        }
        assert!(apis().iter().map(|api| depth(api.structure, 0)).max().unwrap() >= 4);
    }
}
