//! One point of header space.

use core::fmt;

use crate::field::{Field, WORDS};

/// The header values of one packet at one port.
///
/// Fields that the packet does not have are zero. Two fields that cannot be in one packet may share
/// bits (see [`crate::field`]), so `get` returns the shared bits for either field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Key {
    pub(crate) words: [u64; WORDS],
}

impl Key {
    /// All fields zero.
    pub const ZERO: Key = Key { words: [0; WORDS] };

    /// The value of a field.
    #[inline]
    pub const fn get(&self, field: Field) -> u128 {
        let place = field.place();
        if place.width == 128 {
            ((self.words[place.word] as u128) << 64) | self.words[place.word + 1] as u128
        } else {
            (self.words[place.word] >> place.shift) as u128 & field.full_mask()
        }
    }

    /// Sets a field. Bits of `value` beyond the field's width are ignored.
    #[inline]
    pub const fn set(&mut self, field: Field, value: u128) {
        let place = field.place();
        if place.width == 128 {
            self.words[place.word] = (value >> 64) as u64;
            self.words[place.word + 1] = value as u64;
        } else {
            let mask = field.full_mask() as u64;
            let cleared = self.words[place.word] & !(mask << place.shift);
            self.words[place.word] = cleared | ((value as u64 & mask) << place.shift);
        }
    }

    /// [`Key::set`] for building a key in one expression.
    #[must_use]
    pub const fn with(mut self, field: Field, value: u128) -> Key {
        self.set(field, value);
        self
    }

    /// A bit for each word that is not 0.
    #[inline]
    pub(crate) const fn words_in_use(&self) -> u32 {
        let (mut used, mut word) = (0, 0);
        while word < WORDS {
            used |= ((self.words[word] != 0) as u32) << word;
            word += 1;
        }
        used
    }

    pub(crate) const fn clear_words_from(&mut self, first: usize) {
        let mut word = first;
        while word < WORDS {
            self.words[word] = 0;
            word += 1;
        }
    }
}

impl fmt::Debug for Key {
    /// Non-zero fields by name. Fields that share bits are all shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Key");
        for field in Field::ALL {
            let value = self.get(field);
            if value != 0 {
                out.field(field.name(), &format_args!("{value:#x}"));
            }
        }
        out.finish()
    }
}
