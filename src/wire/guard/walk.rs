//! The walk itself: one pass over the body along the table.

use super::schema::{Api, Field, Kind, N, Shape, fields};
use super::{Fault, Malformed, max_elements};

/// Kafka's longest text.
const MAX_STR: i64 = i16::MAX as i64;

/// The walk cannot go on; [`Walk::fault`] says why. (Faults are large, and a result that carries one would be written at every step.)
struct Stop;

struct Walk<'a> {
    body: &'a [u8],
    at: usize,
    version: u8,
    flexible: bool,
    elements: usize,
    fault: Option<Fault>,
}

/// Walks a body of that request; the version must be one that the table has.
pub(super) fn request(api: &Api, version: i16, body: &[u8]) -> Result<(), Malformed> {
    let flexible = api.flexible(version);
    let mut walk = Walk { body, at: 0, version: version as u8, flexible, elements: 0, fault: None };
    let _ = walk.structure(api.structure);
    walk.fault.map_or(Ok(()), |fault| Err(Malformed { at: walk.at, fault }))
}

impl<'a> Walk<'a> {
    #[cold]
    fn stop(&mut self, fault: Fault) -> Stop {
        self.fault = Some(fault);
        Stop
    }

    #[inline(always)]
    fn left(&self) -> usize {
        self.body.len() - self.at
    }

    #[inline(always)]
    fn skip(&mut self, need: usize) -> Result<(), Stop> {
        if need > self.left() {
            return Err(self.stop(Fault::CutShort { need, left: self.left() }));
        }
        self.at += need;
        Ok(())
    }

    #[inline(always)]
    fn fixed<const SIZE: usize>(&mut self) -> Result<[u8; SIZE], Stop> {
        match self.body.get(self.at..).and_then(|rest| rest.first_chunk::<SIZE>()) {
            Some(bytes) => {
                self.at += SIZE;
                Ok(*bytes)
            }
            None => Err(self.stop(Fault::CutShort { need: SIZE, left: self.left() })),
        }
    }

    #[inline(always)]
    fn uvarint(&mut self) -> Result<u32, Stop> {
        let [byte] = self.fixed()?;
        if byte < 0x80 { Ok(u32::from(byte)) } else { self.long_uvarint(byte) }
    }

    fn long_uvarint(&mut self, first: u8) -> Result<u32, Stop> {
        let mut value = u32::from(first & 0x7f);
        for shift in [7, 14, 21, 28] {
            let [byte] = self.fixed()?;
            if shift == 28 && byte > 0x0f {
                return Err(self.stop(Fault::Varint));
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    fn count_elements(&mut self, more: usize) -> Result<(), Stop> {
        self.elements += more;
        let most = max_elements(self.body.len());
        if self.elements > most { Err(self.stop(Fault::TooMany(most))) } else { Ok(()) }
    }

    fn structure(&mut self, structure: u8) -> Result<(), Stop> {
        let fields = fields(structure);
        for field in fields {
            if field.tag == N && field.is_in(self.version) {
                self.field(field)?;
            }
        }
        if !self.flexible {
            return Ok(());
        }
        match self.uvarint()? {
            0 => Ok(()),
            count => self.tags(count as usize, fields),
        }
    }

    fn tags(&mut self, count: usize, fields: &[Field]) -> Result<(), Stop> {
        // Each takes a byte for its number and one for its size.
        if count > self.left() / 2 {
            return Err(self.stop(Fault::Count { claimed: count as i64, left: self.left() }));
        }
        for _ in 0..count {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            if size > self.left() {
                return Err(self.stop(Fault::Length { claimed: size as i64, left: self.left() }));
            }
            let mut known = fields.iter().filter(|f| f.tag != N && u32::from(f.tag) == tag).peekable();
            if known.peek().is_none() {
                self.count_elements(1)?;
                self.at += size;
                continue;
            }
            let Some(field) = known.find(|f| f.is_in(self.version)) else {
                return Err(self.stop(Fault::TagVersion(tag)));
            };
            let start = self.at;
            self.field(field)?;
            let used = self.at - start;
            if used != size {
                return Err(self.stop(Fault::TagSize { tag, size, used }));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn field(&mut self, field: &Field) -> Result<(), Stop> {
        let nullable = field.nullable(self.version);
        match field.shape {
            Shape::One(Kind::Struct) if nullable => match i8::from_be_bytes(self.fixed()?) {
                1 => self.structure(field.structure),
                -1 => Ok(()),
                other => Err(self.stop(Fault::Presence(other))),
            },
            Shape::One(kind) => self.one(kind, nullable, field.structure),
            Shape::ArrayOf(kind) => self.array(kind, nullable, field.structure),
        }
    }

    #[inline(always)]
    fn one(&mut self, kind: Kind, nullable: bool, structure: u8) -> Result<(), Stop> {
        match kind {
            Kind::Bool | Kind::I8 => self.skip(1),
            Kind::I16 => self.skip(2),
            Kind::I32 => self.skip(4),
            Kind::I64 => self.skip(8),
            Kind::Uuid => self.skip(16),
            Kind::Str => self.text(nullable),
            Kind::Bytes => {
                let claimed = self.count()?;
                self.contents(claimed, i64::from(i32::MAX), nullable).map(|_| ())
            }
            Kind::Struct => self.structure(structure),
        }
    }

    fn text(&mut self, nullable: bool) -> Result<(), Stop> {
        let claimed = if self.flexible { i64::from(self.uvarint()?) - 1 } else { i64::from(i16::from_be_bytes(self.fixed()?)) };
        let text = self.contents(claimed, MAX_STR, nullable)?;
        // Short names are nearly always ASCII.
        if text.is_ascii() || std::str::from_utf8(text).is_ok() { Ok(()) } else { Err(self.stop(Fault::NotUtf8)) }
    }

    /// A count of elements or bytes, -1 for null.
    #[inline(always)]
    fn count(&mut self) -> Result<i64, Stop> {
        if self.flexible { Ok(i64::from(self.uvarint()?) - 1) } else { Ok(i64::from(i32::from_be_bytes(self.fixed()?))) }
    }

    /// The `claimed` bytes that come next; none for a null that is allowed.
    #[inline(always)]
    fn contents(&mut self, claimed: i64, most: i64, nullable: bool) -> Result<&'a [u8], Stop> {
        if claimed == -1 {
            return if nullable { Ok(&[]) } else { Err(self.stop(Fault::Null)) };
        }
        match usize::try_from(claimed) {
            Ok(size) if claimed <= most && size <= self.left() => {
                let start = self.at;
                self.at += size;
                Ok(&self.body[start..self.at])
            }
            _ => Err(self.stop(Fault::Length { claimed, left: self.left() })),
        }
    }

    fn array(&mut self, kind: Kind, nullable: bool, structure: u8) -> Result<(), Stop> {
        let claimed = self.count()?;
        if claimed == -1 {
            return if nullable { Ok(()) } else { Err(self.stop(Fault::Null)) };
        }
        // Every element takes a byte at least; the walk over the elements then finds out whether they are really there.
        let count = match usize::try_from(claimed) {
            Ok(count) if count <= self.left() => count,
            _ => return Err(self.stop(Fault::Count { claimed, left: self.left() })),
        };
        if let Some(width) = kind.width() {
            return self.skip(count * width);
        }
        self.count_elements(count)?;
        for _ in 0..count {
            self.one(kind, false, structure)?;
        }
        Ok(())
    }
}
