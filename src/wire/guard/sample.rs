//! Makes sound request bodies of any key and version out of any bytes: for fuzzing and tests of what comes after the guard.

use super::schema::{Field, Kind, N, Shape, api, fields};

/// A body that [`super::check`] accepts, shaped by `seed`: counts, lengths, nulls and contents are drawn from it, and are zero once it is
/// used up. An array has up to three elements. `None` if that key and version are unknown.
pub fn body(key: i16, version: i16, seed: &[u8]) -> Option<Vec<u8>> {
    let api = api(key).filter(|api| api.first <= version && version <= api.last)?;
    let mut sample = Sample { seed, out: Vec::new(), version: version as u8, flexible: api.flexible(version) };
    sample.structure(api.structure);
    Some(sample.out)
}

struct Sample<'a> {
    seed: &'a [u8],
    out: Vec<u8>,
    version: u8,
    flexible: bool,
}

impl Sample<'_> {
    fn draw(&mut self) -> u8 {
        match self.seed.split_first() {
            Some((first, rest)) => {
                self.seed = rest;
                *first
            }
            None => 0,
        }
    }

    fn raw(&mut self, size: usize) {
        for _ in 0..size {
            let byte = self.draw();
            self.out.push(byte);
        }
    }

    fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// A length or count; `wide` if it takes four bytes in versions that are not flexible, else two. -1 is null.
    fn length(&mut self, value: i32, wide: bool) {
        match (self.flexible, wide) {
            (true, _) => self.uvarint((value + 1) as u32),
            (false, true) => self.out.extend(value.to_be_bytes()),
            (false, false) => self.out.extend((value as i16).to_be_bytes()),
        }
    }

    fn structure(&mut self, structure: u8) {
        let version = self.version;
        for field in fields(structure).iter().filter(|f| f.tag == N && f.is_in(version)) {
            self.field(field);
        }
        if self.flexible {
            self.tags(structure);
        }
    }

    fn tags(&mut self, structure: u8) {
        let version = self.version;
        let mut tagged: Vec<(u32, Vec<u8>)> = Vec::new();
        for field in fields(structure).iter().filter(|f| f.tag != N && f.is_in(version)) {
            if self.draw() % 2 == 1 {
                let before = std::mem::take(&mut self.out);
                self.field(field);
                tagged.push((u32::from(field.tag), std::mem::replace(&mut self.out, before)));
            }
        }
        if self.draw() % 8 == 1 {
            let number = 1000 + u32::from(self.draw());
            let size = usize::from(self.draw() % 4);
            tagged.push((number, vec![0xff; size]));
        }
        tagged.sort_by_key(|(number, _)| *number);
        self.uvarint(tagged.len() as u32);
        for (number, contents) in tagged {
            self.uvarint(number);
            self.uvarint(contents.len() as u32);
            self.out.extend(contents);
        }
    }

    fn field(&mut self, field: &Field) {
        let null = field.nullable(self.version) && self.draw() % 4 == 1;
        match field.shape {
            Shape::One(Kind::Struct) if field.nullable(self.version) => {
                self.out.extend((if null { -1i8 } else { 1 }).to_be_bytes());
                if !null {
                    self.structure(field.structure);
                }
            }
            Shape::One(kind) => self.one(kind, null, field.structure),
            Shape::ArrayOf(_) if null => self.length(-1, true),
            Shape::ArrayOf(kind) => {
                let count = self.draw() % 4;
                self.length(i32::from(count), true);
                for _ in 0..count {
                    self.one(kind, false, field.structure);
                }
            }
        }
    }

    fn one(&mut self, kind: Kind, null: bool, structure: u8) {
        match (kind, kind.width()) {
            (Kind::Bool, _) => {
                let byte = self.draw() % 2;
                self.out.push(byte);
            }
            (_, Some(width)) => self.raw(width),
            (Kind::Struct, _) => self.structure(structure),
            (_, None) if null => self.length(-1, kind == Kind::Bytes),
            (Kind::Str, None) => {
                let size = self.draw() % 24;
                self.length(i32::from(size), false);
                for _ in 0..size {
                    let letter = b'a' + self.draw() % 26;
                    self.out.push(letter);
                }
            }
            (_, None) => {
                let size = self.draw() % 24;
                self.length(i32::from(size), true);
                self.raw(usize::from(size));
            }
        }
    }
}
