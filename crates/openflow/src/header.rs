//! The eight bytes that begin every message, in every version.

use crate::fault::{DecodeError, Part};
use crate::wire::{Decode, Encode, Reader};
use alloc::vec::Vec;
use core::fmt;

open_enum! {
    /// A protocol version as the header carries it.
    pub struct Version(u8) {
        /// OpenFlow 1.0.
        V1_0 = 0x01,
        /// OpenFlow 1.1.
        V1_1 = 0x02,
        /// OpenFlow 1.2.
        V1_2 = 0x03,
        /// OpenFlow 1.3.
        V1_3 = 0x04,
        /// OpenFlow 1.4.
        V1_4 = 0x05,
        /// OpenFlow 1.5.
        V1_5 = 0x06,
    }
}

impl fmt::Display for Version {
    /// "1.0", "1.3"; a version that is not known as its number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            number @ 0x01..=0x06 => write!(f, "1.{}", number - 1),
            number => write!(f, "{number:#04x}"),
        }
    }
}

/// `struct ofp_header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// The protocol version of this message.
    pub version: Version,
    /// The message type; its meaning depends on the version.
    pub type_: u8,
    /// The length of the whole message in bytes, header included.
    pub length: u16,
    /// The transaction id, which a reply repeats.
    pub xid: u32,
}

impl Header {
    /// The header's own length in bytes.
    pub const LEN: usize = 8;

    /// Reads the header at the front of a frame. What follows it is not looked at.
    ///
    /// # Errors
    /// There are fewer than eight bytes, or the length field says so.
    pub fn parse(frame: &[u8]) -> Result<Self, DecodeError> {
        let header = Self::read(&mut Reader::new(frame, Part::Header))?;
        if usize::from(header.length) < Self::LEN {
            return Err(DecodeError::BadLength {
                part: Part::Header,
                offset: 2,
                length: header.length.into(),
                available: frame.len(),
            });
        }
        Ok(header)
    }

    /// Reads the header of a frame that is exactly as long as its header says.
    ///
    /// # Errors
    /// As [`Header::parse`], or the length field differs from the frame's length.
    pub fn parse_whole(frame: &[u8]) -> Result<Self, DecodeError> {
        let header = Self::parse(frame)?;
        if usize::from(header.length) != frame.len() {
            return Err(DecodeError::BadLength {
                part: Part::Header,
                offset: 2,
                length: header.length.into(),
                available: frame.len(),
            });
        }
        Ok(header)
    }
}

impl<'a> Decode<'a> for Header {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let [version, type_, l0, l1, x0, x1, x2, x3] = r.array::<{ Self::LEN }>()?;
        Ok(Self {
            version: Version(version),
            type_,
            length: u16::from_be_bytes([l0, l1]),
            xid: u32::from_be_bytes([x0, x1, x2, x3]),
        })
    }
}

impl Encode for Header {
    fn write(&self, out: &mut Vec<u8>) {
        self.version.write(out);
        self.type_.write(out);
        self.length.write(out);
        self.xid.write(out);
    }
}
