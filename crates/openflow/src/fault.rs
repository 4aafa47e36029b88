//! What can be wrong with bytes.

use core::fmt;

/// The part of a message that a fault is in. It decides which OpenFlow error the peer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// The eight bytes at the front.
    Header,
    /// A message's body, outside the parts below.
    Body,
    /// A match, 1.0 or 1.3.
    Match,
    /// An action.
    Action,
    /// The field of a set-field action (1.3).
    SetField,
    /// An instruction (1.3).
    Instruction,
    /// A group's bucket (1.3).
    Bucket,
    /// A meter's band (1.3).
    MeterBand,
    /// A table-features entry or property (1.3).
    TableFeatures,
    /// A queue or a queue's property.
    Queue,
    /// A statistics entry.
    Statistics,
    /// A HELLO element.
    Hello,
}

/// Why bytes are not the message that they claim to be. `offset` counts from the start of the bytes handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeError {
    /// The structure needs more bytes than there are.
    Truncated {
        /// Where in the message.
        part: Part,
        /// Where the missing field begins.
        offset: usize,
        /// How many bytes it needs.
        needed: usize,
        /// How many there are.
        available: usize,
    },
    /// A length field is too small, not aligned, or reaches past the end.
    BadLength {
        /// Where in the message.
        part: Part,
        /// Where the length field is.
        offset: usize,
        /// What it says.
        length: usize,
        /// How many bytes there are from the structure's start.
        available: usize,
    },
    /// There are bytes behind the structure that do not belong to it.
    Trailing {
        /// Where in the message.
        part: Part,
        /// Where they begin.
        offset: usize,
        /// How many they are.
        extra: usize,
    },
    /// The frame is of another protocol version than the one it was read as.
    Version {
        /// The number of the version in the header.
        version: u8,
    },
    /// The type of a structure without which the rest cannot be read is not known (a match that is not OXM).
    Type {
        /// Where in the message.
        part: Part,
        /// Where the type field is.
        offset: usize,
        /// What it says.
        type_: u16,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { part, offset, needed, available } => {
                write!(f, "{part:?} at byte {offset}: {needed} bytes needed, {available} left")
            }
            Self::BadLength { part, offset, length, available } => {
                write!(
                    f,
                    "{part:?} at byte {offset}: length field says {length}, {available} bytes are there"
                )
            }
            Self::Trailing { part, offset, extra } => {
                write!(f, "{part:?} at byte {offset}: {extra} bytes too many")
            }
            Self::Version { version } => {
                write!(f, "version {version:#04x} is not the one spoken here")
            }
            Self::Type { part, offset, type_ } => {
                write!(f, "{part:?} at byte {offset}: type {type_} is not known")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

/// The stream cannot be cut into frames: a header's length field is below eight. Nothing behind it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameError {
    /// What the length field says.
    pub length: u16,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a message says that it is {} bytes long; its header alone has 8", self.length)
    }
}

impl core::error::Error for FrameError {}

/// A frame would be longer than its 16-bit length field can say. Nothing of it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TooLong {
    /// How long it would have been, in bytes.
    pub length: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a message of {} bytes does not fit into 65535", self.length)
    }
}

impl core::error::Error for TooLong {}
