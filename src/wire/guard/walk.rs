//! The walk itself: one pass over the body along the table.

use super::schema::{Api, Field, Kind, N, Shape, fields};
use super::{Fault, Malformed, max_elements};

/// Kafka's longest text.
const MAX_STR: i64 = i16::MAX as i64;

struct Walk<'a> {
    body: &'a [u8],
    at: usize,
    version: u8,
    flexible: bool,
    elements: usize,
}

/// Walks a body of that request; the version must be one that the table has.
pub(super) fn request(api: &Api, version: i16, body: &[u8]) -> Result<(), Malformed> {
    let mut walk = Walk { body, at: 0, version: version as u8, flexible: api.flexible(version), elements: 0 };
    let done = walk.structure(api.structure);
    done.map_err(|fault| Malformed { at: walk.at, fault })
}

impl Walk<'_> {
    fn left(&self) -> usize {
        self.body.len() - self.at
    }

    fn skip(&mut self, need: usize) -> Result<(), Fault> {
        if need > self.left() {
            return Err(Fault::CutShort { need, left: self.left() });
        }
        self.at += need;
        Ok(())
    }

    fn fixed<const SIZE: usize>(&mut self) -> Result<[u8; SIZE], Fault> {
        match self.body[self.at..].first_chunk::<SIZE>() {
            Some(bytes) => {
                self.at += SIZE;
                Ok(*bytes)
            }
            None => Err(Fault::CutShort { need: SIZE, left: self.left() }),
        }
    }

    fn uvarint(&mut self) -> Result<u32, Fault> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.fixed()?;
            if shift == 28 && byte > 0x0f {
                return Err(Fault::Varint);
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    fn count_elements(&mut self, more: usize) -> Result<(), Fault> {
        self.elements += more;
        let most = max_elements(self.body.len());
        if self.elements > most { Err(Fault::TooMany(most)) } else { Ok(()) }
    }

    fn structure(&mut self, structure: u8) -> Result<(), Fault> {
        let fields = fields(structure);
        for field in fields {
            if field.tag == N && field.is_in(self.version) {
                self.field(field)?;
            }
        }
        if self.flexible { self.tags(fields) } else { Ok(()) }
    }

    fn tags(&mut self, fields: &[Field]) -> Result<(), Fault> {
        let count = self.uvarint()? as usize;
        // Each takes a byte for its number and one for its size.
        if count > self.left() / 2 {
            return Err(Fault::Count { claimed: count as i64, left: self.left() });
        }
        for _ in 0..count {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            if size > self.left() {
                return Err(Fault::Length { claimed: size as i64, left: self.left() });
            }
            let mut known = fields.iter().filter(|f| f.tag != N && u32::from(f.tag) == tag).peekable();
            if known.peek().is_none() {
                self.count_elements(1)?;
                self.at += size;
                continue;
            }
            let field = known.find(|f| f.is_in(self.version)).ok_or(Fault::TagVersion(tag))?;
            let start = self.at;
            self.field(field)?;
            let used = self.at - start;
            if used != size {
                return Err(Fault::TagSize { tag, size, used });
            }
        }
        Ok(())
    }

    #[inline]
    fn field(&mut self, field: &Field) -> Result<(), Fault> {
        let nullable = field.nullable(self.version);
        match field.shape {
            Shape::One(Kind::Struct) if nullable => match i8::from_be_bytes(self.fixed()?) {
                1 => self.structure(field.structure),
                -1 => Ok(()),
                other => Err(Fault::Presence(other)),
            },
            Shape::One(kind) => self.one(kind, nullable, field.structure),
            Shape::ArrayOf(kind) => self.array(kind, nullable, field.structure),
        }
    }

    #[inline]
    fn one(&mut self, kind: Kind, nullable: bool, structure: u8) -> Result<(), Fault> {
        match kind {
            Kind::Bool | Kind::I8 => self.skip(1),
            Kind::I16 => self.skip(2),
            Kind::I32 => self.skip(4),
            Kind::I64 => self.skip(8),
            Kind::Uuid => self.skip(16),
            Kind::Str => {
                let claimed = if self.flexible { i64::from(self.uvarint()?) - 1 } else { i64::from(i16::from_be_bytes(self.fixed()?)) };
                let text = self.contents(claimed, MAX_STR, nullable)?;
                if std::str::from_utf8(text).is_ok() { Ok(()) } else { Err(Fault::NotUtf8) }
            }
            Kind::Bytes => {
                let claimed = self.count()?;
                self.contents(claimed, i64::from(i32::MAX), nullable).map(|_| ())
            }
            Kind::Struct => self.structure(structure),
        }
    }

    /// A count of elements or bytes, -1 for null.
    fn count(&mut self) -> Result<i64, Fault> {
        if self.flexible { Ok(i64::from(self.uvarint()?) - 1) } else { Ok(i64::from(i32::from_be_bytes(self.fixed()?))) }
    }

    /// The `claimed` bytes that come next; none for a null that is allowed.
    fn contents(&mut self, claimed: i64, most: i64, nullable: bool) -> Result<&[u8], Fault> {
        if claimed == -1 {
            return if nullable { Ok(&[]) } else { Err(Fault::Null) };
        }
        match usize::try_from(claimed) {
            Ok(size) if claimed <= most && size <= self.left() => {
                let start = self.at;
                self.at += size;
                Ok(&self.body[start..self.at])
            }
            _ => Err(Fault::Length { claimed, left: self.left() }),
        }
    }

    fn array(&mut self, kind: Kind, nullable: bool, structure: u8) -> Result<(), Fault> {
        let claimed = self.count()?;
        if claimed == -1 {
            return if nullable { Ok(()) } else { Err(Fault::Null) };
        }
        // Every element takes a byte at least; the walk over the elements then finds out whether they are really there.
        let count = match usize::try_from(claimed) {
            Ok(count) if count <= self.left() => count,
            _ => return Err(Fault::Count { claimed, left: self.left() }),
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
