//! Port statistics as a member of a big switch tells them, in either version.

use super::statistics::written;
use crate::tally::Count;
use alloc::vec::Vec;
use flowspace::port_from_v10;
use openflow::{List, Version, v10, v13};

/// What a member tells of a port.
#[derive(Clone, Copy, Debug)]
pub(super) enum PortCounts {
    V10(v10::PortStats),
    V13(v13::PortStats),
}

impl PortCounts {
    /// The ports of an answer, by number.
    pub(super) fn all(version: Version, answers: &[u8]) -> Vec<(u32, PortCounts)> {
        match version {
            Version::V1_0 => {
                let ports = List::<v10::PortStats>::parse(answers).unwrap_or_default();
                ports.iter().map(|it| (port_from_v10(it.port_no.0), PortCounts::V10(it))).collect()
            }
            _ => {
                let ports = List::<v13::PortStats>::parse(answers).unwrap_or_default();
                ports.iter().map(|it| (it.port_no.0, PortCounts::V13(it))).collect()
            }
        }
    }

    /// What has come in, if the member counts it.
    pub(super) fn received(&self) -> Option<Count> {
        let (packets, bytes) = match self {
            PortCounts::V10(it) => (it.rx_packets, it.rx_bytes),
            PortCounts::V13(it) => (it.rx_packets, it.rx_bytes),
        };
        // The highest number is "not counted".
        (packets != u64::MAX).then_some(Count { packets, bytes })
    }

    /// On the wire, with this instead if it is known.
    pub(super) fn written(&self, received: Option<Count>) -> Vec<u8> {
        match (*self, received) {
            (PortCounts::V10(mut it), Some(Count { packets, bytes })) => {
                (it.rx_packets, it.rx_bytes) = (packets, bytes);
                written(&it)
            }
            (PortCounts::V13(mut it), Some(Count { packets, bytes })) => {
                (it.rx_packets, it.rx_bytes) = (packets, bytes);
                written(&it)
            }
            (PortCounts::V10(it), None) => written(&it),
            (PortCounts::V13(it), None) => written(&it),
        }
    }
}
