//! Text fields of fixed size: [`Name`] by value (port and table names), [`Text`] borrowed (long descriptions).

use crate::fault::DecodeError;
use crate::wire::{Decode, Encode, Reader, pad};
use alloc::vec::Vec;
use core::fmt;

/// A name in a field of `N` bytes, ended by the first NUL. The bytes behind the NUL are kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name<const N: usize>(pub [u8; N]);

impl<const N: usize> Name<N> {
    /// A name from text, cut so that a NUL still fits behind it.
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().take(N.saturating_sub(1)).zip(text.bytes()) {
            *to = from;
        }
        Self(bytes)
    }

    /// The bytes before the first NUL.
    pub fn as_bytes(&self) -> &[u8] {
        before_nul(&self.0)
    }

    /// The text before the first NUL and before the first byte that is not UTF-8.
    pub fn as_str(&self) -> &str {
        valid_prefix(self.as_bytes())
    }
}

impl<const N: usize> Default for Name<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> fmt::Debug for Name<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_bytes(self.as_bytes(), f)
    }
}

impl<const N: usize> fmt::Display for Name<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'a, const N: usize> Decode<'a> for Name<N> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.array().map(Self)
    }
}

impl<const N: usize> Encode for Name<N> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

/// A text in a field of `N` bytes, without the NULs that fill the field's end. Written, it is cut or filled to `N`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a, const N: usize>(pub &'a [u8]);

impl<'a, const N: usize> Text<'a, N> {
    /// A field from text.
    pub const fn new(text: &'a str) -> Self {
        Self(text.as_bytes())
    }

    /// The text before the first NUL and before the first byte that is not UTF-8.
    pub fn as_str(&self) -> &'a str {
        valid_prefix(before_nul(self.0))
    }
}

impl<const N: usize> fmt::Debug for Text<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_bytes(self.0, f)
    }
}

impl<'a, const N: usize> Decode<'a> for Text<'a, N> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut text = r.bytes(N)?;
        while let [head @ .., 0] = text {
            text = head;
        }
        Ok(Self(text))
    }
}

impl<const N: usize> Encode for Text<'_, N> {
    fn write(&self, out: &mut Vec<u8>) {
        let kept = self.0.get(..N).unwrap_or(self.0);
        out.extend_from_slice(kept);
        pad(out, N - kept.len());
    }
}

fn before_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn valid_prefix(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

fn debug_bytes(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "\"{}\"", bytes.escape_ascii())
}
