//! Arbitrary messages from arbitrary bytes: the bytes decide every choice, so a shorter input is a simpler message, and
//! a fuzzer can learn which bytes lead where. When the bytes run out every choice is zero.

use openflow::text::{Name, Text};
use openflow::{Element, ErrorCode, List, ListBuf, error::Error};
use std::cell::OnceCell;
use std::fmt::Debug;

/// Keeps what generated messages borrow.
#[derive(Default)]
pub struct Arena(OnceCell<(Vec<u8>, Box<Arena>)>);

impl Arena {
    /// Keeps the bytes for as long as the arena lives.
    pub fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        let mut node = self;
        while let Some((_, next)) = node.0.get() {
            node = next;
        }
        &node.0.get_or_init(|| (bytes, Box::default())).0
    }
}

/// The choices still to come.
pub struct Source<'s> {
    input: &'s [u8],
    arena: &'s Arena,
}

/// Something that can be made from choices.
pub trait Generate<'s>: Sized {
    fn generate(source: &mut Source<'s>) -> Self;
}

impl<'s> Source<'s> {
    pub fn new(input: &'s [u8], arena: &'s Arena) -> Self {
        Self { input, arena }
    }

    pub fn any<T: Generate<'s>>(&mut self) -> T {
        T::generate(self)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u8) -> u8 {
        self.any::<u8>() % n
    }

    /// `length` bytes of the input, fewer at its end.
    pub fn slice(&mut self, length: usize) -> &'s [u8] {
        let (head, rest) = self.input.split_at(length.min(self.input.len()));
        self.input = rest;
        head
    }

    /// Just `length` bytes, zeros behind the input's end.
    pub fn filled(&mut self, length: usize) -> &'s [u8] {
        let head = self.slice(length);
        if head.len() == length {
            return head;
        }
        let mut bytes = head.to_vec();
        bytes.resize(length, 0);
        self.arena.keep(bytes)
    }

    /// A multiple of eight bytes, and `more`.
    pub fn aligned(&mut self, more: usize) -> &'s [u8] {
        let length = 8 * usize::from(self.below(4)) + more;
        self.filled(length)
    }

    /// Up to three elements. That they are read back from the list as they were put in is checked on the way, since
    /// lists compare by their bytes.
    pub fn list<T>(&mut self) -> List<'s, T::At<'s>>
    where
        T: Element,
        T::At<'s>: Generate<'s> + PartialEq + Debug,
    {
        let elements: Vec<T::At<'s>> = (0..self.below(4)).map(|_| self.any()).collect();
        let list: ListBuf<T::At<'s>> = elements.iter().collect();
        let list = List::parse(self.arena.keep(list.into_bytes()))
            .expect("what was written is well-formed");
        assert_eq!(list.iter().collect::<Vec<_>>(), elements);
        list
    }
}

macro_rules! integers {
    ($($int:ty),*) => { $(
        impl<'s> Generate<'s> for $int {
            fn generate(source: &mut Source<'s>) -> Self {
                let mut bytes = [0; size_of::<$int>()];
                let head = source.slice(bytes.len());
                bytes[..head.len()].copy_from_slice(head);
                Self::from_be_bytes(bytes)
            }
        }
    )* };
}

integers!(u8, u16, u32, u64);

impl<'s, const N: usize> Generate<'s> for [u8; N] {
    fn generate(source: &mut Source<'s>) -> Self {
        std::array::from_fn(|_| source.any())
    }
}

impl<'s, const N: usize> Generate<'s> for [u32; N] {
    fn generate(source: &mut Source<'s>) -> Self {
        std::array::from_fn(|_| source.any())
    }
}

impl<'s, const N: usize> Generate<'s> for Name<N> {
    fn generate(source: &mut Source<'s>) -> Self {
        Self(source.any())
    }
}

impl<'s, const N: usize> Generate<'s> for Text<'s, N> {
    fn generate(source: &mut Source<'s>) -> Self {
        let mut text =
            source.filled(usize::from(source.input.first().copied().unwrap_or(0)).min(N));
        while let [head @ .., 0] = text {
            text = head;
        }
        Self(text)
    }
}

/// Bytes without a structure: up to 255.
impl<'s> Generate<'s> for &'s [u8] {
    fn generate(source: &mut Source<'s>) -> Self {
        let length = source.any::<u8>();
        source.slice(length.into())
    }
}

impl<'s> Generate<'s> for Error<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        Self { code: ErrorCode { type_: source.any(), code: source.any() }, data: source.any() }
    }
}

/// A type number that no version names.
pub fn unknown_type(source: &mut Source<'_>) -> u16 {
    0x4000 | source.any::<u16>() & 0x3fff
}

/// Generation of newtypes and structures field by field.
#[macro_export]
macro_rules! generated {
    (newtypes $($name:ident),* $(,)?) => { $(
        impl<'s> Generate<'s> for $name {
            fn generate(source: &mut Source<'s>) -> Self {
                Self(source.any())
            }
        }
    )* };
    ($($name:ident $(<$life:lifetime>)? { $($field:ident),* $(,)? $(; $list:ident: $element:ident)? })*) => { $(
        impl<'s> Generate<'s> for $name $(<$life>)? {
            fn generate(source: &mut Source<'s>) -> Self {
                Self { $($field: source.any(),)* $($list: source.list::<$element>(),)? }
            }
        }
    )* };
}
