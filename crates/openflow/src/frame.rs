//! Whole messages as bytes: cutting a stream into them, looking at fields without parsing, and editing fields in place.
//! This is the forwarding path; nothing here allocates except [`write()`], which appends.
//!
//! The edits look up where a field stands by version and message type. They return `None` or `false`, and change
//! nothing, when the message has no such field or is too short for it.

use crate::fault::{FrameError, TooLong};
use crate::header::{Header, Version};
use crate::wire::{Encode, set_length};
use alloc::vec::Vec;

/// The length of the first whole frame in `buf`, or `None` while more bytes are needed.
///
/// # Errors
/// The length field says less than a header: the stream cannot be followed any further.
#[inline]
pub fn next(buf: &[u8]) -> Result<Option<usize>, FrameError> {
    let Some(&[_, _, high, low]) = buf.first_chunk::<4>() else { return Ok(None) };
    let length = u16::from_be_bytes([high, low]);
    if usize::from(length) < Header::LEN {
        return Err(FrameError { length });
    }
    Ok((usize::from(length) <= buf.len()).then_some(usize::from(length)))
}

/// The protocol version.
#[inline]
pub fn version(frame: &[u8]) -> Option<Version> {
    frame.first().copied().map(Version)
}

/// The message type as a number; see `MessageType` of the version.
#[inline]
pub fn type_(frame: &[u8]) -> Option<u8> {
    frame.get(1).copied()
}

/// The transaction id.
#[inline]
pub fn xid(frame: &[u8]) -> Option<u32> {
    get::<4>(frame, 4).map(u32::from_be_bytes)
}

/// Replaces the transaction id.
#[inline]
pub fn set_xid(frame: &mut [u8], xid: u32) -> bool {
    put(frame, 4, xid.to_be_bytes())
}

/// The buffer id of a PACKET_IN, PACKET_OUT or FLOW_MOD.
#[inline]
pub fn buffer_id(frame: &[u8]) -> Option<u32> {
    get::<4>(frame, buffer_id_at(frame)?).map(u32::from_be_bytes)
}

/// Replaces the buffer id of a PACKET_IN, PACKET_OUT or FLOW_MOD.
#[inline]
pub fn set_buffer_id(frame: &mut [u8], buffer_id: u32) -> bool {
    buffer_id_at(frame).is_some_and(|at| put(frame, at, buffer_id.to_be_bytes()))
}

/// The cookie of a FLOW_MOD or FLOW_REMOVED, and in 1.3 of a PACKET_IN.
#[inline]
pub fn cookie(frame: &[u8]) -> Option<u64> {
    get::<8>(frame, cookie_at(frame)?).map(u64::from_be_bytes)
}

/// Replaces the cookie of a FLOW_MOD or FLOW_REMOVED, and in 1.3 of a PACKET_IN.
#[inline]
pub fn set_cookie(frame: &mut [u8], cookie: u64) -> bool {
    cookie_at(frame).is_some_and(|at| put(frame, at, cookie.to_be_bytes()))
}

/// The ingress port of a PACKET_IN or PACKET_OUT, as a number of its own version (16 bits wide in 1.0).
#[inline]
pub fn in_port(frame: &[u8]) -> Option<u32> {
    match in_port_at(frame)? {
        (at, Width::U16) => get::<2>(frame, at).map(|port| u16::from_be_bytes(port).into()),
        (at, Width::U32) => get::<4>(frame, at).map(u32::from_be_bytes),
    }
}

/// Replaces the ingress port of a PACKET_IN or PACKET_OUT. In 1.0 a number above 16 bits is refused. In a 1.3
/// PACKET_IN the port is the match's `IN_PORT` field.
#[inline]
pub fn set_in_port(frame: &mut [u8], in_port: u32) -> bool {
    match in_port_at(frame) {
        Some((at, Width::U16)) => {
            u16::try_from(in_port).is_ok_and(|port| put(frame, at, port.to_be_bytes()))
        }
        Some((at, Width::U32)) => put(frame, at, in_port.to_be_bytes()),
        None => false,
    }
}

/// The table id of a 1.3 FLOW_MOD, PACKET_IN, FLOW_REMOVED or TABLE_MOD.
#[inline]
pub fn table_id(frame: &[u8]) -> Option<u8> {
    frame.get(table_id_at(frame)?).copied()
}

/// Replaces the table id of a 1.3 FLOW_MOD, PACKET_IN, FLOW_REMOVED or TABLE_MOD.
#[inline]
pub fn set_table_id(frame: &mut [u8], table_id: u8) -> bool {
    table_id_at(frame).is_some_and(|at| put(frame, at, [table_id]))
}

/// Appends a frame: the header, then whatever `body` appends, then the length is filled in.
///
/// # Errors
/// The frame would be longer than 65,535 bytes; `out` is as it was.
pub fn write(
    version: Version,
    type_: u8,
    xid: u32,
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>),
) -> Result<(), TooLong> {
    let start = out.len();
    Header { version, type_, length: 0, xid }.write(out);
    body(out);
    let length = out.len() - start;
    if length > usize::from(u16::MAX) {
        out.truncate(start);
        return Err(TooLong { length });
    }
    set_length(out, start, 2);
    Ok(())
}

enum Width {
    U16,
    U32,
}

/// Version and type in one number, so that a field's place is found with one comparison per candidate.
#[inline]
fn kind(frame: &[u8]) -> Option<(u8, u8)> {
    let [version, type_] = *frame.first_chunk::<2>()?;
    Some((version, type_))
}

const V10: u8 = Version::V1_0.0;
const V13: u8 = Version::V1_3.0;
const PACKET_IN: u8 = 10;
const FLOW_REMOVED: u8 = 11;
const PACKET_OUT: u8 = 13;
const FLOW_MOD: u8 = 14;
const TABLE_MOD: u8 = 17;

#[inline]
fn buffer_id_at(frame: &[u8]) -> Option<usize> {
    match kind(frame)? {
        (V10 | V13, PACKET_IN | PACKET_OUT) => Some(8),
        (V10, FLOW_MOD) => Some(64),
        (V13, FLOW_MOD) => Some(32),
        _ => None,
    }
}

#[inline]
fn cookie_at(frame: &[u8]) -> Option<usize> {
    match kind(frame)? {
        (V10, FLOW_MOD | FLOW_REMOVED) => Some(48),
        (V13, FLOW_MOD | FLOW_REMOVED) => Some(8),
        (V13, PACKET_IN) => Some(16),
        _ => None,
    }
}

#[inline]
fn in_port_at(frame: &[u8]) -> Option<(usize, Width)> {
    match kind(frame)? {
        (V10, PACKET_IN) => Some((14, Width::U16)),
        (V10, PACKET_OUT) => Some((12, Width::U16)),
        (V13, PACKET_OUT) => Some((12, Width::U32)),
        (V13, PACKET_IN) => in_port_oxm_at(frame).map(|at| (at, Width::U32)),
        _ => None,
    }
}

#[inline]
fn table_id_at(frame: &[u8]) -> Option<usize> {
    match kind(frame)? {
        (V13, PACKET_IN) => Some(15),
        (V13, FLOW_REMOVED) => Some(19),
        (V13, FLOW_MOD) => Some(24),
        (V13, TABLE_MOD) => Some(8),
        _ => None,
    }
}

/// Where the value of the first `IN_PORT` field of a 1.3 PACKET_IN's match stands.
fn in_port_oxm_at(frame: &[u8]) -> Option<usize> {
    /// Class OPENFLOW_BASIC, field 0, no mask, four bytes.
    const IN_PORT: [u8; 4] = [0x80, 0x00, 0x00, 0x04];
    /// Behind the fixed part of the PACKET_IN: match type, match length, fields.
    const MATCH_AT: usize = 24;
    let length = usize::from(u16::from_be_bytes(get::<2>(frame, MATCH_AT + 2)?));
    let end = MATCH_AT + length;
    let mut at = MATCH_AT + 4;
    while at + 4 <= end {
        let header = get::<4>(frame, at)?;
        if header == IN_PORT {
            return (at + 8 <= end).then_some(at + 4);
        }
        at += 4 + usize::from(header[3]);
    }
    None
}

#[inline]
fn get<const N: usize>(frame: &[u8], at: usize) -> Option<[u8; N]> {
    frame.get(at..)?.first_chunk::<N>().copied()
}

#[inline]
fn put<const N: usize>(frame: &mut [u8], at: usize, value: [u8; N]) -> bool {
    match frame.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<N>()) {
        Some(field) => {
            *field = value;
            true
        }
        None => false,
    }
}
