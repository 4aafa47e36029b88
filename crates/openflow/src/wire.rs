//! Reading and appending big-endian fields. [`Reader`] is the only place that touches bytes by position; it checks
//! every step and knows how far into the frame it is, so that errors can say where.

use crate::fault::{DecodeError, Part};
use alloc::vec::Vec;

/// Something that can be appended to a frame.
pub trait Encode {
    /// Appends the wire form.
    fn write(&self, out: &mut Vec<u8>);
}

/// Something that can be read from a frame that lives for `'a`.
pub trait Decode<'a>: Sized {
    /// Reads one value and advances the reader behind it.
    ///
    /// # Errors
    /// The bytes are too few or contradict themselves.
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

/// A wire structure that can stand in a [`List`](crate::List): the same type at any lifetime.
pub trait Element: Encode + Copy {
    /// This type, borrowing for `'x`.
    type At<'x>: Decode<'x> + Encode + Copy;
}

/// A position in a run of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
    part: Part,
}

impl<'a> Reader<'a> {
    /// A reader over `bytes` that reports faults as being in `part`.
    pub const fn new(bytes: &'a [u8], part: Part) -> Self {
        Self { rest: bytes, offset: 0, part }
    }

    /// A reader over bytes that begin `offset` bytes into what the caller was given.
    pub const fn at(bytes: &'a [u8], offset: usize, part: Part) -> Self {
        Self { rest: bytes, offset, part }
    }

    /// The number of bytes not yet read.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether everything was read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Where the next byte is, counted from the start of what the caller was given.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Which part of a message faults are reported in.
    pub const fn part(&self) -> Part {
        self.part
    }

    /// The bytes not yet read, without reading them.
    pub const fn peek(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// Fewer are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.rest = rest;
                self.offset += N;
                Ok(*head)
            }
            None => Err(self.truncated(N)),
        }
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// Fewer are left.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(n) {
            Some((head, rest)) => {
                self.rest = rest;
                self.offset += n;
                Ok(head)
            }
            None => Err(self.truncated(n)),
        }
    }

    /// Passes over `n` bytes of padding.
    ///
    /// # Errors
    /// Fewer are left.
    #[inline]
    pub fn skip(&mut self, n: usize) -> Result<(), DecodeError> {
        self.bytes(n).map(|_| ())
    }

    /// Everything that is left.
    #[inline]
    pub fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.offset += rest.len();
        self.rest = &[];
        rest
    }

    /// A reader over the next `n` bytes, which this one passes over.
    ///
    /// # Errors
    /// Fewer are left.
    #[inline]
    pub fn sub(&mut self, n: usize, part: Part) -> Result<Reader<'a>, DecodeError> {
        let offset = self.offset;
        Ok(Reader { rest: self.bytes(n)?, offset, part })
    }

    /// A reader over one self-delimiting structure, from its first byte: the 16-bit length of the whole stands
    /// `length_at` bytes into it, is at least `min`, a multiple of `align`, and does not reach past the end.
    ///
    /// # Errors
    /// The length field is missing or wrong; faults are reported in `part`.
    #[inline]
    pub fn element(
        &mut self,
        part: Part,
        length_at: usize,
        min: usize,
        align: usize,
    ) -> Result<Reader<'a>, DecodeError> {
        let mut field = Reader { part, ..*self };
        field.skip(length_at)?;
        let length = usize::from(u16::read(&mut field)?);
        if length < min || length > self.rest.len() || length % align != 0 {
            return Err(Reader { part, ..*self }.bad_length(length_at, length));
        }
        self.sub(length, part)
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// Something is left.
    #[inline]
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(DecodeError::Trailing { part: self.part, offset: self.offset, extra: self.rest.len() })
    }

    /// The error for a structure that begins here, whose length field `at` bytes into it cannot be right.
    #[cold]
    pub fn bad_length(&self, at: usize, length: usize) -> DecodeError {
        let (part, offset) = (self.part, self.offset + at);
        DecodeError::BadLength { part, offset, length, available: self.rest.len() }
    }

    #[cold]
    fn truncated(&self, needed: usize) -> DecodeError {
        DecodeError::Truncated {
            part: self.part,
            offset: self.offset,
            needed,
            available: self.rest.len(),
        }
    }
}

/// Reads one value that must use up all the bytes.
pub(crate) fn parse_all<'a, T: Decode<'a>>(bytes: &'a [u8], part: Part) -> Result<T, DecodeError> {
    let mut r = Reader::new(bytes, part);
    let value = T::read(&mut r)?;
    r.finish()?;
    Ok(value)
}

/// Appends `n` zero bytes.
pub(crate) fn pad(out: &mut Vec<u8>, n: usize) {
    out.resize(out.len() + n, 0);
}

/// The padding behind `length` bytes up to the next multiple of eight.
pub(crate) const fn padding(length: usize) -> usize {
    length.wrapping_neg() % 8
}

/// Pads what was appended since `start` to a multiple of eight.
pub(crate) fn pad_to_8(out: &mut Vec<u8>, start: usize) {
    pad(out, padding(out.len() - start));
}

/// Writes the length of what was appended since `start` into the 16-bit field `at` bytes into it. A length that does
/// not fit is written as 65,535; the frame around it is then refused as too long.
pub(crate) fn set_length(out: &mut [u8], start: usize, at: usize) {
    let length = u16::try_from(out.len() - start).unwrap_or(u16::MAX);
    if let Some(field) = out.get_mut(start + at..start + at + 2) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

macro_rules! integer {
    ($($int:ty),*) => { $(
        impl<'a> Decode<'a> for $int {
            #[inline]
            fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
                Ok(Self::from_be_bytes(r.array()?))
            }
        }

        impl Encode for $int {
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }

        impl Element for $int {
            type At<'x> = $int;
        }
    )* };
}

integer!(u8, u16, u32, u64);

impl<'a, const N: usize> Decode<'a> for [u8; N] {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.array()
    }
}

impl<const N: usize> Encode for [u8; N] {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl<'a, const N: usize> Decode<'a> for [u32; N] {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut values = [0; N];
        for value in &mut values {
            *value = u32::read(r)?;
        }
        Ok(values)
    }
}

impl<const N: usize> Encode for [u32; N] {
    fn write(&self, out: &mut Vec<u8>) {
        for value in self {
            value.write(out);
        }
    }
}

/// A run of bytes reads as everything that is left.
impl<'a> Decode<'a> for &'a [u8] {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(r.take_rest())
    }
}

impl Encode for Vec<u8> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl Encode for &[u8] {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}
