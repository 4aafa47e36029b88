//! HELLO and version negotiation (specification 1.3.5, sections 6.3.1 and 7.5.1).
//!
//! A 1.0 HELLO has no body, and a receiver must put up with one; so elements are read as far as they are well-formed
//! and the rest is ignored, while the body itself is kept whole.

use crate::fault::{DecodeError, Part, TooLong};
use crate::header::{Header, Version};
use crate::list::List;
use crate::wire::{Decode, Encode, Reader, pad_to_8, padding, set_length};
use alloc::vec::Vec;
use core::fmt;

/// A set of protocol versions: bit *n* stands for version number *n*.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct VersionSet(pub u32);

impl VersionSet {
    /// No version.
    pub const EMPTY: Self = Self(0);
    /// The versions that this crate reads and writes.
    pub const SUPPORTED: Self = Self(1 << Version::V1_0.0 | 1 << Version::V1_3.0);

    /// The set of one version. Numbers above 31 do not fit and give the empty set.
    pub const fn only(version: Version) -> Self {
        if version.0 < 32 { Self(1 << version.0) } else { Self::EMPTY }
    }

    /// Whether the version is in the set.
    pub const fn contains(self, version: Version) -> bool {
        version.0 < 32 && self.0 & (1 << version.0) != 0
    }

    /// This set and one version more.
    #[must_use]
    pub const fn with(self, version: Version) -> Self {
        Self(self.0 | Self::only(version).0)
    }

    /// The versions in both sets.
    #[must_use]
    pub const fn intersect(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether there is no version in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The highest version in the set.
    pub const fn highest(self) -> Option<Version> {
        match self.0.checked_ilog2() {
            Some(bit) => Some(Version(bit as u8)),
            None => None,
        }
    }

    /// The versions, lowest first.
    pub fn iter(self) -> impl Iterator<Item = Version> {
        (0..32).map(Version).filter(move |version| self.contains(*version))
    }
}

impl fmt::Debug for VersionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<Version> for VersionSet {
    fn from_iter<I: IntoIterator<Item = Version>>(versions: I) -> Self {
        versions.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// The version to speak, or `None` when there is none in common (answer `HELLO_FAILED_INCOMPATIBLE`, then close).
///
/// With bitmaps on both sides it is the highest version in both; we always send ours. Without one from the peer it is
/// the smaller of the two header versions, if we speak that.
pub fn negotiate(
    ours: VersionSet,
    peer_version: u8,
    bitmap: Option<VersionSet>,
) -> Option<Version> {
    if let Some(theirs) = bitmap {
        return ours.intersect(theirs).highest();
    }
    let version = Version(ours.highest()?.0.min(peer_version));
    ours.contains(version).then_some(version)
}

/// The body of a HELLO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hello<'a> {
    /// The elements as they came.
    pub body: &'a [u8],
}

impl<'a> Hello<'a> {
    /// The type of HELLO messages in every version.
    pub const TYPE: u8 = 0;

    /// Reads a HELLO frame of any version.
    ///
    /// # Errors
    /// The frame is not as long as its header says, or is not a HELLO.
    pub fn parse_frame(frame: &'a [u8]) -> Result<(Header, Self), DecodeError> {
        let header = Header::parse_whole(frame)?;
        if header.type_ != Self::TYPE {
            return Err(DecodeError::Type {
                part: Part::Header,
                offset: 1,
                type_: header.type_.into(),
            });
        }
        Ok((header, Self { body: frame.get(Header::LEN..).unwrap_or_default() }))
    }

    /// The elements, up to the first that is not well-formed.
    pub fn elements(&self) -> impl Iterator<Item = HelloElement<'a>> + use<'a> {
        let mut reader = Reader::new(self.body, Part::Hello);
        core::iter::from_fn(move || HelloElement::read(&mut reader).ok())
    }

    /// The versions that the sender says it speaks, if it says so.
    pub fn versions(&self) -> Option<VersionSet> {
        self.elements().find_map(|element| match element {
            HelloElement::VersionBitmap(bitmaps) => {
                Some(VersionSet(bitmaps.iter().next().unwrap_or(0)))
            }
            HelloElement::Unknown { .. } => None,
        })
    }

    /// Appends a HELLO frame that offers these versions: the highest in the header, all in a version bitmap, which is
    /// left out when 1.0 is all there is.
    ///
    /// # Errors
    /// Never in practice: the frame has 16 bytes.
    pub fn write_message(versions: VersionSet, xid: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let version = versions.highest().unwrap_or(Version::V1_0);
        crate::frame::write(version, Self::TYPE, xid, out, |out| {
            if version > Version::V1_0 {
                let bitmap = versions.0.to_be_bytes();
                let bitmaps = List::parse(&bitmap).unwrap_or_default();
                HelloElement::VersionBitmap(bitmaps).write(out);
            }
        })
    }
}

layout!(Hello<'a>: Hello { body });

/// One element of a HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HelloElement<'a> {
    /// The versions that the sender speaks, 32 to a word, lowest first.
    VersionBitmap(List<'a, u32>),
    /// An element that the specification does not name.
    Unknown {
        /// Its type.
        type_: u16,
        /// What follows type and length, without padding.
        body: &'a [u8],
    },
}

impl HelloElement<'_> {
    const VERSION_BITMAP: u16 = 1;
}

impl<'a> Decode<'a> for HelloElement<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut element = r.element(Part::Hello, 2, 4, 1)?;
        // The padding of the last element is sometimes left out.
        let padding = padding(element.remaining()).min(r.remaining());
        r.skip(padding)?;
        let type_ = u16::read(&mut element)?;
        element.skip(2)?;
        Ok(match type_ {
            Self::VERSION_BITMAP => Self::VersionBitmap(List::read(&mut element)?),
            type_ => Self::Unknown { type_, body: element.take_rest() },
        })
    }
}

impl Encode for HelloElement<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Self::VersionBitmap(_) => Self::VERSION_BITMAP.write(out),
            Self::Unknown { type_, .. } => type_.write(out),
        }
        0u16.write(out);
        match self {
            Self::VersionBitmap(bitmaps) => bitmaps.write(out),
            Self::Unknown { body, .. } => body.write(out),
        }
        set_length(out, start, 2);
        pad_to_8(out, start);
    }
}

impl crate::wire::Element for HelloElement<'_> {
    type At<'x> = HelloElement<'x>;
}
