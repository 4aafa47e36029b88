//! Repeated wire structures: [`List`] borrows a run that was checked when it was parsed, [`ListBuf`] builds one.

use crate::fault::{DecodeError, Part};
use crate::wire::{Decode, Element, Encode, Reader};
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

/// A checked run of wire structures. Walking it cannot fail, because parsing it walked it.
///
/// Two lists are equal when their bytes are.
pub struct List<'a, T> {
    bytes: &'a [u8],
    element: PhantomData<T>,
}

impl<'a, T> List<'a, T> {
    /// The list of nothing.
    pub const EMPTY: Self = Self { bytes: &[], element: PhantomData };

    /// The list as it stands on the wire.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether there is no element.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl<'a, T: Decode<'a>> List<'a, T> {
    /// Checks that `bytes` are a run of whole elements.
    ///
    /// # Errors
    /// The first element that is not well-formed; the offset counts from the start of `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes, Part::Body))
    }

    /// The elements in order.
    pub const fn iter(&self) -> Iter<'a, T> {
        Iter { reader: Reader::new(self.bytes, Part::Body), element: PhantomData }
    }

    /// The number of elements. Walks the list.
    pub fn count(&self) -> usize {
        self.iter().count()
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for List<'a, T> {
    /// Takes everything that is left.
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let bytes = r.peek();
        while !r.is_empty() {
            let before = r.remaining();
            T::read(r)?;
            if r.remaining() == before {
                // A structure of no bytes would never get to the end.
                return Err(DecodeError::BadLength {
                    part: r.part(),
                    offset: r.offset(),
                    length: 0,
                    available: before,
                });
            }
        }
        Ok(Self { bytes, element: PhantomData })
    }
}

impl<T> Encode for List<'_, T> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.bytes);
    }
}

impl<T> Clone for List<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<T> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T> Eq for List<'_, T> {}

impl<T> Hash for List<'_, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl<'a, T: Decode<'a> + fmt::Debug> fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Decode<'a>> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Decode<'a>> IntoIterator for &List<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The elements of a [`List`] in order.
#[derive(Clone, Debug)]
pub struct Iter<'a, T> {
    reader: Reader<'a>,
    element: PhantomData<T>,
}

impl<'a, T> Iter<'a, T> {
    /// The bytes of the elements not yet walked over.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.reader.peek()
    }
}

impl<'a, T: Decode<'a>> Iterator for Iter<'a, T> {
    type Item = T;
    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.reader.is_empty() {
            return None;
        }
        // Parsing walked the same bytes with the same code, so `ok` never hides an error.
        T::read(&mut self.reader).ok()
    }
}

/// A list being built. Holds the wire form; cleared and reused it does not allocate again.
pub struct ListBuf<T> {
    bytes: Vec<u8>,
    element: PhantomData<fn() -> T>,
}

impl<T> ListBuf<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), element: PhantomData }
    }

    /// Removes all elements and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The list as it stands on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The list as it stands on the wire, owned.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl<T: Element> ListBuf<T> {
    /// Appends an element.
    pub fn push(&mut self, element: T::At<'_>) {
        if self.bytes.capacity() == 0 {
            // An element is written field by field. Without this room the list would grow with each of the first
            // fields.
            self.bytes.reserve(64);
        }
        element.write(&mut self.bytes);
    }

    /// The list as message bodies hold it.
    pub fn as_list(&self) -> List<'_, T::At<'_>> {
        List { bytes: &self.bytes, element: PhantomData }
    }
}

impl<T> Default for ListBuf<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for ListBuf<T> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), element: PhantomData }
    }
}

impl<T> PartialEq for ListBuf<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T> Eq for ListBuf<T> {}

impl<T: Element> fmt::Debug for ListBuf<T>
where
    for<'x> T::At<'x>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_list().iter()).finish()
    }
}

impl<T: Encode> From<&[T]> for ListBuf<T> {
    fn from(elements: &[T]) -> Self {
        elements.iter().collect()
    }
}

impl<T: Encode, const N: usize> From<[T; N]> for ListBuf<T> {
    fn from(elements: [T; N]) -> Self {
        elements.iter().collect()
    }
}

impl<T: Encode> FromIterator<T> for ListBuf<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut list = Self::new();
        for element in elements {
            element.write(&mut list.bytes);
        }
        list
    }
}

impl<'e, T: Encode + 'e> FromIterator<&'e T> for ListBuf<T> {
    fn from_iter<I: IntoIterator<Item = &'e T>>(elements: I) -> Self {
        let mut list = Self::new();
        for element in elements {
            element.write(&mut list.bytes);
        }
        list
    }
}

impl<T> From<List<'_, T>> for ListBuf<T> {
    fn from(list: List<'_, T>) -> Self {
        Self { bytes: list.bytes.to_vec(), element: PhantomData }
    }
}

impl<T> From<ListBuf<T>> for Vec<u8> {
    fn from(list: ListBuf<T>) -> Self {
        list.bytes
    }
}
