//! Reading and writing values in Kafka's flexible encoding: compact lengths, tagged fields. Nothing is allocated that the bytes do not hold.

use crate::core::types::{BrokerId, Epoch, Id};

use super::BadRecord;

type Read<T> = Result<T, BadRecord>;

/// Kafka's longest text in bytes.
const MAX_TEXT: usize = i16::MAX as usize;

/// What is left to read.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    /// Nothing may be left.
    pub(super) fn end(&self) -> Read<()> {
        if self.bytes.is_empty() { Ok(()) } else { Err(BadRecord::Trailing(self.bytes.len())) }
    }

    fn fixed<const SIZE: usize>(&mut self) -> Read<[u8; SIZE]> {
        let (value, rest) = self.bytes.split_first_chunk().ok_or(BadRecord::CutShort)?;
        self.bytes = rest;
        Ok(*value)
    }

    fn take(&mut self, size: usize) -> Read<&'a [u8]> {
        let (value, rest) = self.bytes.split_at_checked(size).ok_or(BadRecord::Length)?;
        self.bytes = rest;
        Ok(value)
    }

    pub(super) fn i8(&mut self) -> Read<i8> {
        self.fixed().map(i8::from_be_bytes)
    }

    pub(super) fn bool(&mut self) -> Read<bool> {
        Ok(self.i8()? != 0)
    }

    pub(super) fn i16(&mut self) -> Read<i16> {
        self.fixed().map(i16::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Read<u16> {
        self.fixed().map(u16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Read<i32> {
        self.fixed().map(i32::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Read<i64> {
        self.fixed().map(i64::from_be_bytes)
    }

    pub(super) fn broker(&mut self) -> Read<BrokerId> {
        self.i32().map(BrokerId)
    }

    pub(super) fn epoch(&mut self) -> Read<Epoch> {
        self.i32().map(Epoch)
    }

    pub(super) fn id(&mut self) -> Read<Id> {
        self.fixed().map(|bytes| Id(u128::from_be_bytes(bytes)))
    }

    pub(super) fn uvarint(&mut self) -> Read<u32> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.fixed()?;
            if shift == 28 && byte > 0x0f {
                return Err(BadRecord::Length);
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    pub(super) fn text_or_null(&mut self) -> Read<Option<String>> {
        Ok(self.str_or_null()?.map(str::to_owned))
    }

    pub(super) fn str_or_null(&mut self) -> Read<Option<&'a str>> {
        self.bytes_or_null()?.map(utf8).transpose()
    }

    pub(super) fn bytes_or_null(&mut self) -> Read<Option<&'a [u8]>> {
        let size = self.uvarint()?.checked_sub(1);
        size.map(|size| self.take(size as usize)).transpose()
    }

    /// A text after a two-byte length, as versions that are not flexible have it.
    pub(super) fn classic_str_or_null(&mut self) -> Read<Option<&'a str>> {
        match self.i16()? {
            -1 => Ok(None),
            size => self.take(usize::try_from(size).map_err(|_| BadRecord::Length)?).and_then(utf8).map(Some),
        }
    }

    /// Bytes after a four-byte length.
    pub(super) fn classic_bytes_or_null(&mut self) -> Read<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Ok(None),
            size => self.take(usize::try_from(size).map_err(|_| BadRecord::Length)?).map(Some),
        }
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn text(&mut self) -> Read<String> {
        self.text_or_null()?.ok_or(BadRecord::Length)
    }

    pub(super) fn list_or_null<T>(&mut self, mut one: impl FnMut(&mut Self) -> Read<T>) -> Read<Option<Vec<T>>> {
        let Some(count) = self.uvarint()?.checked_sub(1) else {
            return Ok(None);
        };
        // Each takes a byte at least. The list grows as they are really read, so a lie costs nothing.
        if count as usize > self.bytes.len() {
            return Err(BadRecord::Length);
        }
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(one(self)?);
        }
        Ok(Some(list))
    }

    pub(super) fn list<T>(&mut self, one: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        self.list_or_null(one)?.ok_or(BadRecord::Length)
    }

    /// The tagged fields at the end of a struct: `one` gets each number with a reader of its content, and leaves what it does not know.
    pub(super) fn tags(&mut self, mut one: impl FnMut(u32, &mut Reader<'a>) -> Read<Tag>) -> Read<()> {
        for _ in 0..self.uvarint()? {
            let number = self.uvarint()?;
            let size = self.uvarint()? as usize;
            let mut content = Reader::new(self.take(size)?);
            if one(number, &mut content)? == Tag::Read {
                content.end()?;
            }
        }
        Ok(())
    }

    /// The end of a struct without tagged fields of its own.
    pub(super) fn no_tags(&mut self) -> Read<()> {
        self.tags(|_, _| Ok(Tag::Unknown))
    }
}

fn utf8(bytes: &[u8]) -> Read<&str> {
    std::str::from_utf8(bytes).map_err(|_| BadRecord::NotUtf8)
}

/// What became of a tagged field.
#[derive(PartialEq, Eq)]
pub(super) enum Tag {
    /// Its content was read.
    Read,
    /// It is to be skipped.
    Unknown,
}

/// Appends values. Texts that are too long are remembered, and [`Writer::done`] tells.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    too_long: Option<usize>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { out, too_long: None }
    }

    /// Whether all that was written could be.
    pub(super) fn done(&self) -> Result<(), BadRecord> {
        self.too_long.map_or(Ok(()), |size| Err(BadRecord::TextTooLong(size)))
    }

    pub(super) fn i8(&mut self, value: i8) {
        self.out.extend(value.to_be_bytes());
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.i8(i8::from(value));
    }

    pub(super) fn i16(&mut self, value: i16) {
        self.out.extend(value.to_be_bytes());
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.out.extend(value.to_be_bytes());
    }

    pub(super) fn i32(&mut self, value: i32) {
        self.out.extend(value.to_be_bytes());
    }

    pub(super) fn i64(&mut self, value: i64) {
        self.out.extend(value.to_be_bytes());
    }

    pub(super) fn id(&mut self, value: Id) {
        self.out.extend(value.0.to_be_bytes());
    }

    pub(super) fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    pub(super) fn text(&mut self, text: &str) {
        if text.len() > MAX_TEXT {
            self.too_long = Some(text.len());
        }
        self.uvarint(text.len() as u32 + 1);
        self.out.extend(text.as_bytes());
    }

    /// A text after a two-byte length, as versions that are not flexible have it.
    pub(super) fn classic_text(&mut self, text: &str) {
        if text.len() > MAX_TEXT {
            self.too_long = Some(text.len());
        }
        self.i16(text.len() as i16);
        self.out.extend(text.as_bytes());
    }

    pub(super) fn classic_text_or_null(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.classic_text(text),
            None => self.i16(-1),
        }
    }

    /// Bytes after a four-byte length.
    pub(super) fn classic_bytes(&mut self, bytes: &[u8]) {
        self.i32(bytes.len() as i32);
        self.out.extend(bytes);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.uvarint(bytes.len() as u32 + 1);
        self.out.extend(bytes);
    }

    pub(super) fn text_or_null(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.text(text),
            None => self.uvarint(0),
        }
    }

    pub(super) fn list<T>(&mut self, list: &[T], mut one: impl FnMut(&mut Self, &T)) {
        self.uvarint(list.len() as u32 + 1);
        for value in list {
            one(self, value);
        }
    }

    pub(super) fn brokers(&mut self, list: &[BrokerId]) {
        self.list(list, |w, id| w.i32(id.0));
    }

    pub(super) fn ids(&mut self, list: &[Id]) {
        self.list(list, |w, id| w.id(*id));
    }

    /// The tagged fields at the end of a struct: those that are there, in rising order of their numbers.
    pub(super) fn tags(&mut self, tagged: &[(u32, Option<Vec<u8>>)]) {
        self.uvarint(tagged.iter().filter(|(_, content)| content.is_some()).count() as u32);
        for (number, content) in tagged {
            if let Some(content) = content {
                self.uvarint(*number);
                self.uvarint(content.len() as u32);
                self.out.extend(content);
            }
        }
    }

    /// The end of a struct without tagged fields.
    pub(super) fn no_tags(&mut self) {
        self.tags(&[]);
    }
}

/// The content of a tagged field.
pub(super) fn content(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out));
    out
}
