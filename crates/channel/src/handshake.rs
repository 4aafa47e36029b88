//! The first frames of a connection: HELLO in both directions, and towards a switch FEATURES.
//!
//! A pure state machine: frames in, frames out. It has no clock; a peer that stays silent is the
//! caller's to give up on.

use std::fmt;

use openflow::error::{Error as ErrorBody, v13};
use openflow::hello::negotiate;
use openflow::{ErrorCode, Hello, Version, VersionSet, frame};

use crate::message_type::{
    ECHO_REPLY, ECHO_REQUEST, ERROR, FEATURES_REPLY, FEATURES_REQUEST, HELLO,
};

/// Longest text of a peer's ERROR that is kept for the log, in bytes.
const MAX_TEXT: usize = 200;
/// How much of the offending frame an ERROR carries (specification 1.3.5, section 7.4.4).
const MAX_ERROR_DATA: usize = 64;

/// The handshake of one connection, from one of its two sides.
#[derive(Debug, Clone)]
pub struct Handshake {
    side: Side,
    allowed: VersionSet,
    xid: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The peer is a switch; we are its controller.
    TowardsSwitch,
    /// The peer is a controller; we are its switch.
    TowardsController,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Hello,
    Features(Version),
    Done,
}

/// What a frame did to the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// More frames are needed. There may be an answer to flush.
    Continue,
    /// The frame is none of the handshake's: the switch reports an event (say, PORT_STATUS)
    /// before its features are known. Keep or drop it; the handshake goes on.
    NotOurs,
    /// The handshake is complete. Frames behind this one belong to the session.
    Done(Established),
}

/// The result of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Established {
    /// The version agreed on; every further frame in both directions has this version.
    pub version: Version,
    /// What the switch said of itself; `None` if the peer is a controller.
    pub switch: Option<SwitchFeatures>,
}

/// A switch's FEATURES_REPLY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchFeatures {
    /// The datapath id.
    pub dpid: u64,
    /// Zero for the main connection; others are auxiliary (specification 1.3.5, section 6.3.6).
    pub auxiliary_id: u8,
    /// The whole frame as it came, for a parser of its version.
    pub frame: Vec<u8>,
}

/// The peer failed the handshake. The error message for the peer, if there is one, is in the output
/// already: flush the output, then close.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeError {
    /// No version in common.
    Incompatible {
        /// What we allow.
        ours: VersionSet,
        /// What the peer offered: its bitmap, or its header's version alone.
        theirs: VersionSet,
    },
    /// Another message came before HELLO.
    NotHello {
        /// Its message type.
        type_: u8,
    },
    /// A frame in another version than the one agreed on.
    WrongVersion {
        /// The version agreed on.
        agreed: Version,
        /// The frame's.
        got: Version,
    },
    /// A HELLO or FEATURES_REPLY that cannot be read.
    Malformed {
        /// Its message type.
        type_: u8,
    },
    /// The peer answered with an ERROR.
    Refused {
        /// The version of its frame, which says how to read the code.
        version: Version,
        /// Its type and code.
        code: ErrorCode,
        /// The text that came with it (HELLO_FAILED has one), cut to 200 bytes.
        text: String,
    },
}

impl Handshake {
    /// Towards a switch: HELLO, then FEATURES. Our requests have the number `xid` (any number).
    pub fn towards_switch(allowed: VersionSet, xid: u32) -> Self {
        Handshake { side: Side::TowardsSwitch, allowed, xid, state: State::Hello }
    }

    /// Towards a controller: HELLO only; what the controller asks then is the session's business.
    pub fn towards_controller(allowed: VersionSet, xid: u32) -> Self {
        Handshake { side: Side::TowardsController, allowed, xid, state: State::Hello }
    }

    /// Appends our HELLO, which both sides send without waiting (specification 1.3.5,
    /// section 6.3.1). Call it once, when the connection stands or even before.
    pub fn start(&self, out: &mut Vec<u8>) {
        // The frame has at most 16 bytes.
        let _ = Hello::write_message(self.allowed, self.xid, out);
    }

    /// Takes the peer's next frame (as [`Connection::next_frame`](crate::Connection::next_frame)
    /// gives it) and appends what is to be answered.
    pub fn handle(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Result<Step, HandshakeError> {
        let type_ = frame::type_(frame).unwrap_or_default();
        if type_ == ERROR && self.state != State::Done {
            return Err(refused(frame));
        }
        match self.state {
            State::Hello if type_ == HELLO => self.handle_hello(frame, out),
            State::Hello => {
                self.write_error(v13::BAD_REQUEST_BAD_TYPE, frame, out);
                Err(HandshakeError::NotHello { type_ })
            }
            // A HELLO may come twice; the first one counts.
            State::Features(_) if type_ == HELLO => Ok(Step::Continue),
            State::Features(agreed) => self.handle_before_features(agreed, type_, frame, out),
            State::Done => Ok(Step::NotOurs),
        }
    }

    fn handle_hello(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Result<Step, HandshakeError> {
        let Ok((header, hello)) = Hello::parse_frame(frame) else {
            self.write_error(v13::BAD_REQUEST_BAD_LEN, frame, out);
            return Err(HandshakeError::Malformed { type_: HELLO });
        };
        let offered = hello.versions();
        let Some(version) = negotiate(self.allowed, header.version.0, offered) else {
            let theirs = offered.unwrap_or(VersionSet::only(header.version));
            let error = HandshakeError::Incompatible { ours: self.allowed, theirs };
            let text = error.to_string();
            let body = ErrorBody { code: v13::HELLO_FAILED_INCOMPATIBLE, data: text.as_bytes() };
            let _ = body.write_message(self.answer_version(frame), header.xid, out);
            return Err(error);
        };
        match self.side {
            Side::TowardsController => {
                self.state = State::Done;
                Ok(Step::Done(Established { version, switch: None }))
            }
            Side::TowardsSwitch => {
                self.state = State::Features(version);
                let _ = frame::write(version, FEATURES_REQUEST, self.xid, out, |_| {});
                Ok(Step::Continue)
            }
        }
    }

    fn handle_before_features(
        &mut self,
        agreed: Version,
        type_: u8,
        frame: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, HandshakeError> {
        let got = frame::version(frame).unwrap_or(Version(0));
        if got != agreed {
            self.write_error(v13::BAD_REQUEST_BAD_VERSION, frame, out);
            return Err(HandshakeError::WrongVersion { agreed, got });
        }
        match type_ {
            FEATURES_REPLY => {
                let Some(switch) = SwitchFeatures::parse(agreed, frame) else {
                    self.write_error(v13::BAD_REQUEST_BAD_LEN, frame, out);
                    return Err(HandshakeError::Malformed { type_ });
                };
                self.state = State::Done;
                Ok(Step::Done(Established { version: agreed, switch: Some(switch) }))
            }
            ECHO_REQUEST => {
                let xid = frame::xid(frame).unwrap_or_default();
                let data = frame.get(8..).unwrap_or_default();
                let _ = frame::write(agreed, ECHO_REPLY, xid, out, |out| {
                    out.extend_from_slice(data);
                });
                Ok(Step::Continue)
            }
            _ => Ok(Step::NotOurs),
        }
    }

    /// The codes used here have the same numbers in 1.0 and 1.3.
    fn write_error(&self, code: ErrorCode, frame: &[u8], out: &mut Vec<u8>) {
        let data = frame.get(..MAX_ERROR_DATA).unwrap_or(frame);
        let xid = frame::xid(frame).unwrap_or_default();
        let _ = ErrorBody { code, data }.write_message(self.answer_version(frame), xid, out);
    }

    /// The peer's own version if we could speak it, so that it can read the error; else the
    /// highest of ours that is not above it; else our lowest.
    fn answer_version(&self, frame: &[u8]) -> Version {
        let theirs = frame::version(frame).unwrap_or(Version::V1_0);
        let below = self.allowed.iter().filter(|version| version.0 <= theirs.0).last();
        below.or(self.allowed.iter().next()).unwrap_or(Version::V1_0)
    }
}

impl SwitchFeatures {
    /// The fixed part has 32 bytes in both versions (specifications 1.0.0, section 5.3.1; 1.3.5,
    /// section 7.3.1).
    fn parse(version: Version, frame: &[u8]) -> Option<Self> {
        let fixed = frame.first_chunk::<32>()?;
        let dpid = u64::from_be_bytes(*fixed.get(8..)?.first_chunk::<8>()?);
        let auxiliary_id = if version >= Version::V1_3 { *fixed.get(21)? } else { 0 };
        Some(SwitchFeatures { dpid, auxiliary_id, frame: frame.to_vec() })
    }
}

fn refused(frame: &[u8]) -> HandshakeError {
    let version = frame::version(frame).unwrap_or(Version(0));
    let Some(&[t0, t1, c0, c1]) = frame.get(8..).and_then(|body| body.first_chunk::<4>()) else {
        return HandshakeError::Malformed { type_: ERROR };
    };
    let code =
        ErrorCode { type_: u16::from_be_bytes([t0, t1]), code: u16::from_be_bytes([c0, c1]) };
    let data = frame.get(12..).unwrap_or_default();
    // Only HELLO_FAILED carries text; other errors carry our own bytes back.
    let text = match code.type_ == v13::HELLO_FAILED_INCOMPATIBLE.type_ {
        true => String::from_utf8_lossy(data.get(..MAX_TEXT).unwrap_or(data))
            .trim_end_matches('\0')
            .to_owned(),
        false => String::new(),
    };
    HandshakeError::Refused { version, code, text }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Incompatible { ours, theirs } => {
                write!(f, "no OpenFlow version in common: we speak {}", Names(*ours))?;
                write!(f, ", the peer {}", Names(*theirs))
            }
            HandshakeError::NotHello { type_ } => {
                write!(f, "a message of type {type_} came before HELLO")
            }
            HandshakeError::WrongVersion { agreed, got } => {
                write!(f, "a message of OpenFlow {got} came after {agreed} was agreed on")
            }
            HandshakeError::Malformed { type_ } => {
                write!(f, "a malformed message of type {type_} in the handshake")
            }
            HandshakeError::Refused { version, code, text } => {
                write!(f, "the peer refused: {}", code.display(*version))?;
                if text.is_empty() { Ok(()) } else { write!(f, " ({text:?})") }
            }
        }
    }
}

impl std::error::Error for HandshakeError {}

/// "1.0 (0x01), 1.3 (0x04)".
struct Names(VersionSet);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none that we know");
        }
        for (i, version) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            match version.0 {
                n @ 1..=6 => write!(f, "{comma}{version} ({n:#04x})")?,
                _ => write!(f, "{comma}{version}")?,
            }
        }
        Ok(())
    }
}
