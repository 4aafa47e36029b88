//! The error codes of OpenFlow ([`ErrorCode`], with every code of both versions by name in [`v10`] and [`v13`]), the
//! code for each [`DecodeError`], and the body of the ERROR message.

use crate::fault::{DecodeError, Part, TooLong};
use crate::header::Version;
use core::fmt;

mod code;
pub mod v10;
pub mod v13;

pub use code::ErrorCode;

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
