//! The OpenFlow wire format, versions 1.0 (0x01) and 1.3 (0x04).
//!
//! One representation serves reading and writing: every message body is a plain struct with public fields that
//! borrows from the frame it was read from, so that reading allocates nothing and writing is appending to a `Vec`.
//!
//! Start reading at [`frame`] (where does a message end, and how is one edited in place), then
//! [`v10::Message`] or [`v13::Message`] (what does it say). Repeated parts are a [`List`]: a run of bytes that was
//! walked once when it was parsed, so that iterating over it cannot fail. [`ListBuf`] builds one.
//!
//! Rules that hold everywhere:
//! - Numbers are in host order; the bytes are big-endian.
//! - Every wire enumeration is an open newtype: a value that the specification does not name is still a value, and it
//!   survives a round trip byte for byte. So do unknown message, action, instruction and statistics types.
//! - Padding is written as zero. When read it is accepted whatever it holds; what was read into a struct is written
//!   back with zeros, what stays in a [`List`] is copied as it was.
//! - Offsets in a [`DecodeError`] count from the start of the bytes that were handed in.
//! - Nothing here panics, whatever the bytes are.
//!
//! ```
//! use openflow::v10::{Action, FlowMod, Match, Message, PortNo, Wildcards};
//! use openflow::{ListBuf, frame};
//!
//! let match_ = Match { wildcards: Wildcards::ALL.without(Wildcards::IN_PORT), in_port: PortNo(1), ..Match::ANY };
//! let actions = ListBuf::from([Action::Output { port: PortNo(2), max_len: 0 }]);
//! let flow_mod = FlowMod { match_, actions: actions.as_list(), ..FlowMod::default() };
//! let mut out = Vec::new();
//! flow_mod.write_message(7, &mut out)?;
//!
//! assert!(frame::set_cookie(&mut out, 0xc0));
//! let (header, message) = Message::parse(&out)?;
//! assert_eq!(header.xid, 7);
//! assert_eq!(message, Message::FlowMod(FlowMod { cookie: 0xc0, ..flow_mod }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Deliberately absent: I/O, clocks, sessions, and any judgement whether a message *may* be sent. Whether a match
//! repeats a field, lacks a prerequisite or masks what has no mask is a question for the caller that applies it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[macro_use]
mod macros;

pub mod error;
mod fault;
pub mod frame;
pub mod header;
pub mod hello;
pub mod list;
pub mod nicira;
pub mod text;
pub mod v10;
pub mod v13;
pub mod wire;

pub use error::ErrorCode;
pub use fault::{DecodeError, FrameError, Part, TooLong};
pub use header::{Header, Version};
pub use hello::{Hello, VersionSet};
pub use list::{List, ListBuf};
pub use wire::{Decode, Element, Encode};

/// The buffer id that says: the packet is not buffered in the switch (`OFP_NO_BUFFER`).
pub const NO_BUFFER: u32 = 0xffff_ffff;
