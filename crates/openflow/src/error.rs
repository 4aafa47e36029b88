//! What can be wrong with bytes ([`DecodeError`], [`FrameError`], [`TooLong`]), the error codes that OpenFlow has for
//! it ([`ErrorCode`], with every code of both versions by name in [`v10`] and [`v13`]), and the ERROR message's body.

use crate::header::Version;
use core::fmt;

pub mod v10;
pub mod v13;

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
        /// The version in the header.
        version: Version,
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

impl DecodeError {
    /// The error that a peer of this version must be sent.
    pub fn openflow_error(&self, version: Version) -> ErrorCode {
        if version == Version::V1_0 { self.error_v10() } else { self.error_v13() }
    }

    fn error_v10(&self) -> ErrorCode {
        match *self {
            Self::Version { .. } => v10::BAD_REQUEST_BAD_VERSION,
            Self::Truncated { part: Part::Action, .. }
            | Self::BadLength { part: Part::Action, .. }
            | Self::Trailing { part: Part::Action, .. } => v10::BAD_ACTION_BAD_LEN,
            Self::Type { part: Part::Action, .. } => v10::BAD_ACTION_BAD_TYPE,
            Self::Type { .. } => v10::BAD_REQUEST_BAD_TYPE,
            Self::Truncated { .. } | Self::BadLength { .. } | Self::Trailing { .. } => {
                v10::BAD_REQUEST_BAD_LEN
            }
        }
    }

    fn error_v13(&self) -> ErrorCode {
        match *self {
            Self::Version { .. } => v13::BAD_REQUEST_BAD_VERSION,
            Self::Type { part: Part::Match, .. } => v13::BAD_MATCH_BAD_TYPE,
            Self::Type { part: Part::Action, .. } => v13::BAD_ACTION_BAD_TYPE,
            Self::Type { part: Part::Instruction, .. } => v13::BAD_INSTRUCTION_UNKNOWN_INST,
            Self::Type { part: Part::TableFeatures, .. } => v13::TABLE_FEATURES_FAILED_BAD_TYPE,
            Self::Type { .. } => v13::BAD_REQUEST_BAD_TYPE,
            Self::Truncated { part, .. }
            | Self::BadLength { part, .. }
            | Self::Trailing { part, .. } => match part {
                Part::Match => v13::BAD_MATCH_BAD_LEN,
                Part::Action => v13::BAD_ACTION_BAD_LEN,
                Part::SetField => v13::BAD_ACTION_BAD_SET_LEN,
                Part::Instruction => v13::BAD_INSTRUCTION_BAD_LEN,
                Part::Bucket => v13::GROUP_MOD_FAILED_BAD_BUCKET,
                Part::TableFeatures => v13::TABLE_FEATURES_FAILED_BAD_LEN,
                Part::Header
                | Part::Body
                | Part::MeterBand
                | Part::Queue
                | Part::Statistics
                | Part::Hello => v13::BAD_REQUEST_BAD_LEN,
            },
        }
    }
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
                write!(f, "version {:#04x} is not the one spoken here", version.0)
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

/// The type and code of an ERROR message. Which words they stand for depends on the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode {
    /// `OFPET_*`.
    pub type_: u16,
    /// The code within the type. With type 0xffff (1.3 experimenter) it is the experimenter's own.
    pub code: u16,
}

impl ErrorCode {
    /// The name that the specification gives (as `ovs-ofctl` prints it), if it names this one.
    pub fn name(self, version: Version) -> Option<&'static str> {
        let names = if version == Version::V1_0 { v10::NAMES } else { v13::NAMES };
        names.iter().find(|(code, _)| *code == self).map(|(_, name)| *name)
    }

    /// Prints the name, or the numbers where there is none.
    pub const fn display(self, version: Version) -> DisplayErrorCode {
        DisplayErrorCode { code: self, version }
    }
}

layout!(ErrorCode: Body { type_, code });

/// An [`ErrorCode`] in a version, for printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplayErrorCode {
    code: ErrorCode,
    version: Version,
}

impl fmt::Display for DisplayErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code.name(self.version) {
            Some(name) => f.write_str(name),
            None => write!(f, "type {}, code {}", self.code.type_, self.code.code),
        }
    }
}

/// The body of an ERROR message, the same in both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Error<'a> {
    /// What went wrong.
    pub code: ErrorCode,
    /// At least the first 64 bytes of the message that failed; for `HELLO_FAILED` a text.
    pub data: &'a [u8],
}

layout!(Error<'a>: Body { code, data });

impl Error<'_> {
    /// The type of ERROR messages in every version.
    pub const TYPE: u8 = 1;

    /// Appends a whole ERROR frame of the given version.
    ///
    /// # Errors
    /// The frame would be longer than 65,535 bytes; nothing was appended.
    pub fn write_message(
        &self,
        version: Version,
        xid: u32,
        out: &mut alloc::vec::Vec<u8>,
    ) -> Result<(), TooLong> {
        crate::frame::write(version, Self::TYPE, xid, out, |out| self.write(out))
    }
}

/// Defines the constants of one version and the table of their names.
macro_rules! codes {
    ($( $constant:ident = $type_:literal, $code:literal, $name:literal: $doc:literal; )*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $doc)]
            pub const $constant: ErrorCode = ErrorCode { type_: $type_, code: $code };
        )*

        /// Every code of this version with its name.
        pub const NAMES: &[(ErrorCode, &str)] = &[ $( ($constant, $name), )* ];
    };
}
use codes;
