//! Statistics of a network: an entry's rules are added up, ports go by their virtual numbers.

use crate::flows::{Flow, Wanted};
use crate::ids::TenantIndex;
use crate::switch::Switch;
use crate::switch::counts::port_counts::PortTotals;
use crate::tally::Count;
use crate::v13::flow_mod::{owner_of, sends_to, tenants_match};
use alloc::vec::Vec;
use compile::Network;
use hashbrown::HashMap;
use openflow::List;
use openflow::v13::{self, FlowStats, FlowStatsRequest, PortNo, PortStats, TABLE_ALL};

/// "Not counted" (specification section 7.3.5: unsupported counters are set to the maximum).
const UNSUPPORTED: u64 = u64::MAX;

/// What the rules of one entry have counted.
#[derive(Default)]
struct Sum {
    packets: u64,
    bytes: u64,
    duration: (u32, u32),
}

impl Switch {
    /// The tenant's entries that the filter means, with the counts of all their rules.
    pub(crate) fn network_flow_statistics_v13(
        &self,
        tenant: TenantIndex,
        filter: &FlowStatsRequest<'_>,
        answers: &[u8],
    ) -> Vec<FlowStats<'_>> {
        let state = &self.tenants[tenant.0 as usize];
        let Ok(wanted) = tenants_match(&filter.match_, self.metadata_kept(tenant)) else {
            return Vec::new();
        };
        let mut sums: HashMap<u32, Sum> = HashMap::new();
        for entry in List::<FlowStats<'_>>::parse(answers).unwrap_or_default() {
            if let Some(cookie) =
                owner_of(entry.cookie, self.settings.installation).filter(|c| c.tenant == state.id)
            {
                let sum = sums.entry(cookie.number).or_default();
                sum.packets = sum.packets.saturating_add(entry.packet_count);
                sum.bytes = sum.bytes.saturating_add(entry.byte_count);
                sum.duration = sum.duration.max((entry.duration_sec, entry.duration_nsec));
            }
        }
        let table = (filter.table_id != TABLE_ALL).then_some(filter.table_id);
        let meant = |flow: &Flow| {
            (flow.cookie ^ filter.cookie) & filter.cookie_mask == 0
                && sends_to(
                    &flow.actions,
                    &Wanted {
                        out_port: filter.out_port,
                        out_group: filter.out_group,
                        ..Wanted::EVERYTHING
                    },
                )
        };
        let numbers = state.flows.matching(table, &wanted).into_iter();
        numbers
            .filter_map(|number| {
                let flow = state.flows.get(number).filter(|flow| meant(flow))?;
                let sum = sums.remove(&number).unwrap_or_default();
                Some(FlowStats {
                    table_id: flow.table,
                    duration_sec: sum.duration.0,
                    duration_nsec: sum.duration.1,
                    priority: flow.priority,
                    idle_timeout: flow.idle_timeout,
                    hard_timeout: flow.hard_timeout,
                    flags: v13::FlowModFlags(flow.flags),
                    cookie: flow.cookie,
                    packet_count: sum.packets.saturating_add(flow.past_packets),
                    byte_count: sum.bytes.saturating_add(flow.past_bytes),
                    match_: v13::Match::parse(&flow.match_wire).unwrap_or(v13::Match::ANY),
                    instructions: List::parse(&flow.actions).unwrap_or_default(),
                })
            })
            .collect()
    }
}

/// Counts of virtual ports. Those of a whole edge port are the switch's; on what is shared with others the switch counts
/// everybody's packets, so there is nothing to tell but what is known of the tenant's own.
pub(crate) fn port_statistics(
    network: &Network,
    wanted: PortNo,
    answers: &[u8],
    traffic: impl Fn(u32) -> PortTotals,
) -> Vec<PortStats> {
    let all: HashMap<u32, PortStats> = List::<PortStats>::parse(answers)
        .unwrap_or_default()
        .iter()
        .map(|port| (port.port_no.0, port))
        .collect();
    let numbers = network.ports().keys().filter(|n| wanted == PortNo::ANY || wanted.0 == **n);
    numbers
        .map(|&number| {
            let port_no = PortNo(number);
            match network.whole_edge(number).and_then(|port| all.get(&port)) {
                Some(counted) => PortStats { port_no, ..*counted },
                None => told(port_no, traffic(number)),
            }
        })
        .collect()
}

fn told(port_no: PortNo, traffic: PortTotals) -> PortStats {
    const NOT_COUNTED: Count = Count { packets: UNSUPPORTED, bytes: UNSUPPORTED };
    let received = traffic.received.unwrap_or(NOT_COUNTED);
    let sent = traffic.sent.unwrap_or(NOT_COUNTED);
    PortStats {
        port_no,
        rx_packets: received.packets,
        tx_packets: sent.packets,
        rx_bytes: received.bytes,
        tx_bytes: sent.bytes,
        rx_dropped: UNSUPPORTED,
        tx_dropped: UNSUPPORTED,
        rx_errors: UNSUPPORTED,
        tx_errors: UNSUPPORTED,
        rx_frame_err: UNSUPPORTED,
        rx_over_err: UNSUPPORTED,
        rx_crc_err: UNSUPPORTED,
        collisions: UNSUPPORTED,
        duration_sec: 0,
        duration_nsec: 0,
    }
}
