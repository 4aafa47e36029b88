//! Statistics: every question answered for the tenant, from its own tables and the switch's counts.

use super::{Request, Share, Switch, Waiter};
use crate::flows::{Asked, Wanted};
use crate::ids::TenantIndex;
use crate::messages;
use crate::parts::{write_part, write_parts};
use crate::policy::PortCounters;
use crate::south::installed::Owner;
use crate::south::pending::{Awaits, Purpose};
use crate::tally::Count;
use crate::time::Instant;
use alloc::string::ToString;
use alloc::vec::Vec;
use compile::{Reason, Refused};
use hashbrown::HashMap;
use openflow::error::v13 as code;
use openflow::text::Text;
use openflow::v13::{
    DescStats, MultipartRequestBody as Body, MultipartType, PortNo, PortStats, QUEUE_ALL,
};
use openflow::{Encode, ErrorCode, frame};

/// A long answer: each counts as several messages for the switch.
const LONG: u32 = 4;

/// "Not counted" (1.0, section 5.3.5; 1.3, section 7.3.5: unsupported counters are set to the maximum).
const UNSUPPORTED: u64 = u64::MAX;

impl Switch {
    /// A tenant asks for statistics.
    pub(super) fn statistics(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let (tenant, codes) = (request.tenant, self.codes());
        let state = &self.tenants[tenant];
        let is_network = state.network.is_some();
        let asked = messages::asked(self.wire, request.body(), self.metadata_kept(tenant))?;
        let body = match asked {
            Asked::Flows(wanted) => {
                let question = self.flow_questions(tenant, &wanted, false)?;
                self.collect(request, MultipartType::FLOW.0, Share::Tenant, &question, LONG);
                return Ok(());
            }
            Asked::Aggregate(wanted) => {
                // The switch can add up by itself, unless the tenant's cookies are a part of the question.
                let has_tables = self.target().has_metadata() && !self.datapath.is_joined();
                let by_switch = has_tables && wanted.cookie_mask == 0 && !is_network;
                let type_ = if by_switch { MultipartType::AGGREGATE } else { MultipartType::FLOW };
                let question = self.flow_questions(tenant, &wanted, by_switch)?;
                self.collect(request, type_.0, Share::Tenant, &question, LONG);
                return Ok(());
            }
            Asked::Other(body) => body,
        };
        match body {
            Body::Desc => self.describe(request),
            Body::Table => {
                let mut questions = self.flow_questions(tenant, &Wanted::EVERYTHING, false)?;
                questions.extend_from_slice(&self.question_of_table_0(tenant));
                self.collect(request, MultipartType::FLOW.0, Share::Tenant, &questions, LONG);
            }
            Body::PortStats { port_no } => {
                if port_no != PortNo::ANY && !self.has_port(tenant, port_no.0) {
                    return Err(codes.bad_port.into());
                }
                let question = match is_network {
                    true => messages::port_counters(self.wire),
                    false => messages::ask_again(self.wire, request.body()),
                };
                let share = self.share_of_ports(tenant);
                self.collect(request, MultipartType::PORT_STATS.0, share, &question, 1);
            }
            Body::Queue { port_no, queue_id } => {
                if port_no != PortNo::ANY && !self.has_port(tenant, port_no.0) {
                    return Err(codes.queue_bad_port.into());
                }
                if queue_id != QUEUE_ALL && (is_network || !state.terms.queues.contains(&queue_id))
                {
                    return Err(codes.queue_bad_queue.into());
                }
                if is_network {
                    // Virtual ports have no queues.
                    self.collect(request, MultipartType::QUEUE.0, Share::Tenant, &[], 1);
                } else {
                    let question = messages::ask_again(self.wire, request.body());
                    self.collect(request, MultipartType::QUEUE.0, Share::Anybody, &question, 1);
                }
            }
            Body::Experimenter { experimenter, .. } => {
                if !state.terms.experimenters.contains(&experimenter) {
                    // The same number in both versions.
                    return Err(code::BAD_REQUEST_BAD_EXPERIMENTER.into());
                }
                let mut question = request.frame.to_vec();
                frame::set_xid(&mut question, 0);
                self.collect(request, MultipartType::EXPERIMENTER.0, Share::Tenant, &question, 1);
            }
            body => self.statistics_v13(request, body)?,
        }
        Ok(())
    }

    /// A part of an answer of the switch. The error code has the same number in both versions.
    pub(super) fn statistics_reply(
        &mut self,
        xid: u32,
        body: &[u8],
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let more = messages::has_more(self.wire, body)?;
        let entry = self.session.acknowledge(xid, now).ok_or(code::BAD_REQUEST_BAD_MULTIPART)?;
        if !more {
            self.session.take(xid);
        }
        let entries_at = self.semantics().layout.statistics_entries();
        let (head, entries) = body.split_at_checked(entries_at).unwrap_or_default();
        let type_ = MultipartType(head.first_chunk().copied().map_or(0, u16::from_be_bytes));
        match entry.awaits {
            Awaits::Collection(collection) => {
                let asking = self.asks(collection).filter(|_| type_ == MultipartType::GROUP);
                let own = asking.map(|tenant| self.of_own_groups(tenant, entries));
                self.collection_part(collection, own.as_deref().unwrap_or(entries), more, now);
            }
            Awaits::Counts(tenant) => self.counts_part(tenant, entries, more, now),
            Awaits::Idle(tenant, number, begun) => {
                self.idle_part(Owner { tenant, number }, begun, entries, more, now);
            }
            Awaits::Own(purpose @ (Purpose::Space | Purpose::Full(_))) => {
                self.space_part(purpose, type_, entries, more);
            }
            Awaits::Own(Purpose::Description) => {
                if let (MultipartType::DESC, Ok(it)) = (type_, DescStats::parse(entries)) {
                    let words = [it.mfr_desc.as_str(), it.hw_desc.as_str(), it.sw_desc.as_str()];
                    self.is_described(Some(words));
                }
            }
            Awaits::Own(Purpose::PortCounters) => {
                if type_ == MultipartType::PORT_STATS {
                    self.traffic_part(entries, more, now);
                }
            }
            Awaits::Own(
                purpose @ (Purpose::Flows | Purpose::Groups | Purpose::Meters | Purpose::Ports),
            ) => {
                match (purpose, type_) {
                    (Purpose::Flows, MultipartType::FLOW) => self.learn_rules(entries),
                    (Purpose::Flows, _) => {}
                    (purpose, type_) => self.learn_v13(purpose, type_, entries),
                }
                self.datapath.count_reported(entries.len());
                if !self.has_exceeded_a_bound() && !more {
                    self.learned_one(now);
                }
            }
            _ => return Err(code::BAD_REQUEST_BAD_MULTIPART),
        }
        Ok(())
    }

    /// Writes an answer that is not about entries.
    pub(super) fn write_statistics(&mut self, type_: u16, waiter: &Waiter, answers: &[u8]) {
        let (tenant, xid) = (waiter.origin.tenant, waiter.origin.xid);
        let (wire, version) = (self.wire, self.version());
        let asked = match messages::asked(wire, &waiter.request, self.metadata_kept(tenant)) {
            Ok(asked) => asked,
            // Since the request the tenant's slice has become a network, or a network a slice.
            Err(refused) => return self.refuse(&waiter.origin, refused),
        };
        let mut out = Vec::new();
        let written = match asked {
            Asked::Other(Body::PortStats { port_no }) => {
                let ports = self.port_statistics(tenant, port_no, answers);
                let ports = ports.iter().filter_map(|it| messages::written_port(wire, it));
                write_parts(version, type_, xid, ports, &mut out)
            }
            Asked::Other(Body::Queue { .. }) => {
                let allowed = &self.tenants[tenant].terms.queues;
                let own = messages::own_queues(wire, answers, |port, queue| {
                    allowed.contains(&queue) && self.map.ownership().sees_port(tenant, port)
                });
                write_parts(version, type_, xid, own, &mut out)
            }
            Asked::Other(body) => match self.own_answer_v13(tenant, body, answers) {
                Some(own) => write_parts(version, type_, xid, own, &mut out),
                None => write_part(version, type_, xid, answers, false, &mut out),
            },
            // The switch's own sum.
            Asked::Flows(_) | Asked::Aggregate(_) => {
                write_part(version, type_, xid, answers, false, &mut out)
            }
        };
        match written {
            Ok(()) => self.answer(waiter.origin.controller, &out),
            // One entry alone is too long for any part.
            Err(_) => {
                let refused = Reason::AnswerTooLarge.with(self.codes().too_much);
                self.refuse(&waiter.origin, refused);
            }
        }
    }

    /// Counters of a tenant's ports. A whole edge port of a network has the switch's counters. On a shared port or a
    /// link the switch counts the packets of all tenants, so the tenant gets only the counters that Weir knows to be
    /// the tenant's own. Of a slice's shared port nothing is known: a rule of table 0 is for a flowspace entry,
    /// whatever the port.
    fn port_statistics(
        &self,
        tenant: TenantIndex,
        wanted: PortNo,
        answers: &[u8],
    ) -> Vec<PortStats> {
        let all = messages::ports(self.wire, answers).into_iter();
        let Some(network) = self.tenants[tenant].network.as_deref() else {
            let ownership = self.map.ownership();
            let hides =
                self.tenants[tenant].terms.limits.shared_port_counters == PortCounters::Unsupported;
            let own = |it: PortStats| match hides && ownership.others_use(tenant, it.port_no.0) {
                true => not_counted(it.port_no),
                false => it,
            };
            return all.filter(|it| ownership.sees_port(tenant, it.port_no.0)).map(own).collect();
        };
        let all: HashMap<u32, PortStats> = all.map(|it| (it.port_no.0, it)).collect();
        let numbers = network.ports().keys().filter(|it| wanted == PortNo::ANY || wanted.0 == **it);
        let answer = numbers.map(|&number| {
            match network.whole_edge(number).and_then(|port| all.get(&port)) {
                Some(counted) => PortStats { port_no: PortNo(number), ..*counted },
                None => self.port_known(tenant, number),
            }
        });
        answer.collect()
    }

    fn port_known(&self, tenant: TenantIndex, number: u32) -> PortStats {
        let traffic = self.traffic(tenant, number);
        let mut known = not_counted(PortNo(number));
        if let Some(Count { packets, bytes }) = traffic.received {
            (known.rx_packets, known.rx_bytes) = (packets, bytes);
        }
        if let Some(Count { packets, bytes }) = traffic.sent {
            (known.tx_packets, known.tx_bytes) = (packets, bytes);
        }
        known
    }

    /// What the switch is, in words. The description has the same form in both versions.
    fn describe(&mut self, request: &Request<'_>) {
        let state = &self.tenants[request.tenant];
        let name = state.terms.name.to_string();
        let is_network = state.network.is_some();
        let hw_desc = if is_network { "virtual switch" } else { "slice of an OpenFlow switch" };
        let serial = alloc::format!("{:016x}", self.datapath_of(request.tenant));
        let description = DescStats {
            mfr_desc: Text::new("Weir"),
            hw_desc: Text::new(hw_desc),
            sw_desc: Text::new(concat!("weir ", env!("CARGO_PKG_VERSION"))),
            serial_num: Text::new(serial.as_str()),
            dp_desc: Text::new(name.as_str()),
        };
        self.reply_parts(request, MultipartType::DESC, [description]);
    }

    /// Answers a request for statistics without the switch.
    pub(super) fn reply_parts<E: Encode>(
        &mut self,
        request: &Request<'_>,
        type_: MultipartType,
        entries: impl IntoIterator<Item = E>,
    ) {
        self.reply(request, |switch, out| {
            write_parts(switch.version(), type_.0, request.header.xid, entries, out)
        });
    }
}

/// A port of which nothing is counted for one tenant alone.
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
        duration_sec: 0,
        duration_nsec: 0,
    }
}
