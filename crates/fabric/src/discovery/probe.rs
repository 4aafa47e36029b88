//! The frame of a probe (IEEE 802.1AB, sections 8 and 9).

use crate::lldp::{ETHERTYPE, LldpKey, PROBE_SOURCE};
use crate::time::{Duration, Instant};
use crate::units::{Dpid, PortId, PortNumber};
use alloc::vec::Vec;

/// The group address "nearest bridge": no bridge forwards frames to this address.
const DESTINATION: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
/// Chassis id and port id, both of subtype 7 (locally assigned), with their lengths.
const CHASSIS: [u8; 3] = [0x02, 9, 7];
const PORT: [u8; 3] = [0x04, 5, 7];
const TIME_TO_LIVE: [u8; 2] = [0x06, 2];

const CHASSIS_AT: usize = 14;
const PORT_AT: usize = CHASSIS_AT + 3 + 8;
const TIME_TO_LIVE_AT: usize = PORT_AT + 3 + 4;

/// The frame of a probe from this port.
pub(super) fn frame(key: &LldpKey, port: PortId, lifetime: Duration, now: Instant) -> Vec<u8> {
    let seconds = lifetime.as_nanos().div_ceil(1_000_000_000);
    let mut body = Vec::with_capacity(40);
    body.extend_from_slice(&DESTINATION);
    body.extend_from_slice(&PROBE_SOURCE);
    body.extend_from_slice(&ETHERTYPE.to_be_bytes());
    body.extend_from_slice(&CHASSIS);
    body.extend_from_slice(&port.dpid.0.to_be_bytes());
    body.extend_from_slice(&PORT);
    body.extend_from_slice(&port.port.get().to_be_bytes());
    body.extend_from_slice(&TIME_TO_LIVE);
    body.extend_from_slice(&u16::try_from(seconds).unwrap_or(u16::MAX).to_be_bytes());
    body.extend_from_slice(&[0, 0]);
    let mut frame = Vec::with_capacity(body.len() + 26);
    key.tag_probe(&body, now, &mut frame);
    frame
}

/// The sending port that a probe names.
pub(super) fn sender(frame: &[u8]) -> Option<PortId> {
    let has = |at: usize, head: &[u8]| frame.get(at..at + head.len()) == Some(head);
    if !has(CHASSIS_AT, &CHASSIS) || !has(PORT_AT, &PORT) || !has(TIME_TO_LIVE_AT, &TIME_TO_LIVE) {
        return None;
    }
    let dpid = frame.get(CHASSIS_AT + 3..PORT_AT)?.try_into().ok()?;
    let port = frame.get(PORT_AT + 3..TIME_TO_LIVE_AT)?.try_into().ok()?;
    let port = PortNumber::new(u32::from_be_bytes(port)).ok()?;
    Some(PortId::new(Dpid(u64::from_be_bytes(dpid)), port))
}
