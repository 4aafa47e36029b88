//! Statistics of a network: questions about its ingress ports, ports by their virtual numbers.

use alloc::vec::Vec;
use compile::Network;
use flowspace::{port_from_v10, port_to_v10};
use hashbrown::HashMap;
use openflow::List;
use openflow::v10::{self, PortNo, PortStats};

/// "Not counted" (specification section 5.3.5: unsupported counters are set to -1).
const UNSUPPORTED: u64 = u64::MAX;

/// What the switch is asked for the entries of a network: everything at the ports where it comes in.
pub(super) fn questions(network: &Network) -> Vec<v10::Match> {
    let mut asked = Vec::new();
    let arrivals = network.ingress_ports().flat_map(|port| network.incoming(port));
    for wire in arrivals.filter_map(|incoming| incoming.match_.to_v10().ok()) {
        if !asked.contains(&wire) {
            asked.push(wire);
        }
    }
    asked
}

/// Counts of virtual ports. Those of a whole edge port are the switch's; on what is shared with others the switch counts
/// everybody's packets, so nothing is told.
pub(super) fn port_statistics(network: &Network, wanted: PortNo, answers: &[u8]) -> Vec<PortStats> {
    let all: HashMap<u32, PortStats> = List::<PortStats>::parse(answers)
        .unwrap_or_default()
        .iter()
        .map(|port| (port_from_v10(port.port_no.0), port))
        .collect();
    let everything = wanted == PortNo::NONE;
    let numbers = network.ports().keys().filter(|n| everything || port_from_v10(wanted.0) == **n);
    numbers
        .filter_map(|&number| {
            let port_no = PortNo(port_to_v10(number)?);
            Some(match network.whole_edge(number).and_then(|port| all.get(&port)) {
                Some(counted) => PortStats { port_no, ..*counted },
                None => not_counted(port_no),
            })
        })
        .collect()
}

fn not_counted(port_no: PortNo) -> PortStats {
    PortStats {
        port_no,
        rx_packets: UNSUPPORTED,
        tx_packets: UNSUPPORTED,
        rx_bytes: UNSUPPORTED,
        tx_bytes: UNSUPPORTED,
        rx_dropped: UNSUPPORTED,
        tx_dropped: UNSUPPORTED,
        rx_errors: UNSUPPORTED,
        tx_errors: UNSUPPORTED,
        rx_frame_err: UNSUPPORTED,
        rx_over_err: UNSUPPORTED,
        rx_crc_err: UNSUPPORTED,
        collisions: UNSUPPORTED,
    }
}
