//! Reads and writes the few fields of OpenFlow that the generator's hot path needs: headers, types,
//! and the place of a packet or a buffer id in a message. All numbers are big-endian.
//!
//! The crate `openflow` has a complete codec; this module decodes only fields that are measured.

use crate::plan::Version;

pub(crate) const HEADER_LEN: usize = 8;

/// Message types that both versions share.
pub(crate) mod kind {
    pub(crate) const HELLO: u8 = 0;
    pub(crate) const ERROR: u8 = 1;
    pub(crate) const ECHO_REQUEST: u8 = 2;
    pub(crate) const ECHO_REPLY: u8 = 3;
    pub(crate) const VENDOR: u8 = 4;
    pub(crate) const FEATURES_REQUEST: u8 = 5;
    pub(crate) const FEATURES_REPLY: u8 = 6;
    pub(crate) const GET_CONFIG_REQUEST: u8 = 7;
    pub(crate) const GET_CONFIG_REPLY: u8 = 8;
    pub(crate) const SET_CONFIG: u8 = 9;
    pub(crate) const PACKET_IN: u8 = 10;
    pub(crate) const PORT_STATUS: u8 = 12;
    pub(crate) const PACKET_OUT: u8 = 13;
    pub(crate) const FLOW_MOD: u8 = 14;
}

/// Message types whose numbers differ between the versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Types {
    pub(crate) stats_request: u8,
    pub(crate) stats_reply: u8,
    pub(crate) barrier_request: u8,
    pub(crate) barrier_reply: u8,
    pub(crate) queue_config_request: u8,
    pub(crate) queue_config_reply: u8,
}

impl Types {
    pub(crate) const fn of(version: Version) -> Self {
        match version {
            Version::V1_0 => Self {
                stats_request: 16,
                stats_reply: 17,
                barrier_request: 18,
                barrier_reply: 19,
                queue_config_request: 20,
                queue_config_reply: 21,
            },
            Version::V1_3 => Self {
                stats_request: 18,
                stats_reply: 19,
                barrier_request: 20,
                barrier_reply: 21,
                queue_config_request: 22,
                queue_config_reply: 23,
            },
        }
    }
}

pub(crate) const ROLE_REQUEST: u8 = 24;
pub(crate) const ROLE_REPLY: u8 = 25;
pub(crate) const GET_ASYNC_REQUEST: u8 = 26;
pub(crate) const GET_ASYNC_REPLY: u8 = 27;

#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk::<2>().map(|b| u16::from_be_bytes(*b))
}

#[inline]
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk::<4>().map(|b| u32::from_be_bytes(*b))
}

/// Appends a whole message; a body that is too long for one message is cut.
pub(crate) fn message(out: &mut Vec<u8>, version: Version, kind: u8, xid: u32, body: &[u8]) {
    let body = body.get(..usize::from(u16::MAX) - HEADER_LEN).unwrap_or(body);
    out.extend_from_slice(&[version.wire(), kind]);
    out.extend_from_slice(&((HEADER_LEN + body.len()) as u16).to_be_bytes());
    out.extend_from_slice(&xid.to_be_bytes());
    out.extend_from_slice(body);
}

/// The packet inside a PACKET_IN, or `None` if the message is too short.
#[inline]
pub(crate) fn packet_in_data(version: Version, message: &[u8]) -> Option<&[u8]> {
    match version {
        Version::V1_0 => message.get(18..),
        Version::V1_3 => {
            let match_len = usize::from(be16(message, 26)?);
            message.get(24 + match_len.next_multiple_of(8) + 2..)
        }
    }
}

/// The packet inside a PACKET_OUT, or `None` if the message is too short.
#[inline]
pub(crate) fn packet_out_data(version: Version, message: &[u8]) -> Option<&[u8]> {
    match version {
        Version::V1_0 => message.get(16 + usize::from(be16(message, 14)?)..),
        Version::V1_3 => message.get(24 + usize::from(be16(message, 16)?)..),
    }
}

/// The place of the buffer id in a PACKET_OUT or a FLOW_MOD.
#[inline]
pub(crate) fn buffer_id(version: Version, message: &[u8]) -> Option<u32> {
    let at = match (message.get(1)?, version) {
        (&kind::FLOW_MOD, Version::V1_0) => 64,
        (&kind::FLOW_MOD, Version::V1_3) => 32,
        _ => 8,
    };
    be32(message, at).filter(|&id| id != u32::MAX)
}

#[inline]
pub(crate) fn put32(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_packet_in_and_packet_out_have_no_packet_data() {
        for version in [Version::V1_0, Version::V1_3] {
            for length in 0..16 {
                let bytes = vec![0xff; length];
                assert_eq!(packet_in_data(version, &bytes), None);
                assert_eq!(packet_out_data(version, &bytes), None);
            }
        }
    }
}
