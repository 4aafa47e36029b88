//! Statistics requests and other questions: asked of all members, answered once.

use super::change::Ask;
use super::wire::Sent;
use super::{BigSwitch, wire};
use crate::messages;
use crate::parts::{write_parts, written};
use crate::refusals::Verdict;
use crate::semantics::Semantics;
use crate::south::pending::Purpose;
use crate::tally::Count;
use crate::time::Instant;
use crate::v13::statistics::GroupSums;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::Reason;
use openflow::error::v13 as code;
use openflow::v13::{GroupStats, MeterBandCounter, MeterStats, MultipartType, Port, PortStats};
use openflow::{Header, List, ListBuf, frame};

/// Bytes of answers that are kept for one question.
const LIMIT: usize = 16 << 20;

impl BigSwitch {
    /// The front sends a statistics request.
    pub(super) fn question(&mut self, xid: u32, message: &[u8], now: Instant) {
        let sums = match type_of(wire::body(message)) {
            MultipartType::PORT_DESC => {
                let ports = self.front.shown().values().map(written).collect();
                self.reply(xid, MultipartType::PORT_DESC, ports);
                return;
            }
            type_ @ (MultipartType::FLOW
            | MultipartType::PORT_STATS
            | MultipartType::GROUP
            | MultipartType::METER) => Some(type_),
            _ => None,
        };
        self.ask(xid, sums, message, now);
    }

    /// Asks all members for statistics that Weir adds up, or one member for anything else.
    pub(super) fn ask(
        &mut self,
        xid: u32,
        sums: Option<MultipartType>,
        message: &[u8],
        now: Instant,
    ) {
        let members = match sums {
            None => self.first().into_iter().collect(),
            Some(_) => self.live(),
        };
        if members.is_empty() && sums.is_none() {
            self.refuse(xid, self.no_member());
            return;
        }
        self.next_ask += 1;
        let number = self.next_ask;
        for &dpid in &members {
            self.send(dpid, Sent::Part(number), message);
        }
        let waiting = members.into_iter().collect();
        self.asks.insert(number, Ask { xid, sums, waiting, answers: BTreeMap::new() });
        self.finish_ask(number, now);
    }

    /// A part of an answer of a member.
    pub(super) fn answer(&mut self, dpid: u64, header: Header, message: &[u8], now: Instant) {
        let body = wire::body(message);
        let Ok(more) = messages::has_more(self.wire, body) else { return };
        let entries_at = Semantics::of(self.wire).layout.statistics_entries();
        let entries = body.get(entries_at..).unwrap_or_default();
        let Some(member) = self.members.get_mut(&dpid) else { return };
        match member.sent(header.xid, !more) {
            Some(Sent::Own(purpose)) => {
                match purpose {
                    Purpose::Flows => member.learned.flows.extend_from_slice(entries),
                    Purpose::Groups => member.learned.groups.extend_from_slice(entries),
                    Purpose::Meters => member.learned.meters.extend_from_slice(entries),
                    _ => {
                        let ports = List::<Port>::parse(entries).unwrap_or_default();
                        member.ports.extend(ports.iter().map(|port| (port.port_no.0, port)));
                    }
                }
                if !more {
                    self.learned(dpid, now);
                }
            }
            Some(Sent::IdleCheck(cookie)) => {
                // On 1.0 the answer has other entries as well, perhaps in several parts.
                let counted = messages::counted(self.wire, entries);
                if !more || counted.iter().any(|it| it.cookie == cookie) {
                    self.idle_checked(cookie, dpid, entries, now);
                }
            }
            Some(Sent::Part(ask)) => self.part(ask, dpid, message, entries, more, now),
            Some(Sent::Plain(_)) | None => {}
        }
    }

    fn part(
        &mut self,
        number: u64,
        dpid: u64,
        message: &[u8],
        entries: &[u8],
        more: bool,
        now: Instant,
    ) {
        let Some(ask) = self.asks.get_mut(&number) else { return };
        if ask.sums.is_none() {
            self.front.send_changed(message, |message| frame::set_xid(message, ask.xid));
        } else if ask.answers.values().map(Vec::len).sum::<usize>() + entries.len() > LIMIT {
            self.ask_refused(number, Reason::AnswerTooLarge.with(code::BAD_REQUEST_EPERM).into());
            return;
        } else {
            ask.answers.entry(dpid).or_default().extend_from_slice(entries);
        }
        if !more {
            ask.waiting.remove(&dpid);
            self.finish_ask(number, now);
        }
    }

    /// A member is gone, perhaps before it has answered.
    pub(super) fn part_lost(&mut self, number: u64, dpid: u64, now: Instant) {
        let Some(ask) = self.asks.get_mut(&number) else { return };
        match (ask.waiting.remove(&dpid), ask.sums) {
            (true, None) => self.ask_refused(number, self.no_member().into()),
            (true, Some(_)) => self.finish_ask(number, now),
            (false, _) => {}
        }
    }

    /// A member refuses a question: then the big switch refuses it.
    pub(super) fn ask_refused(&mut self, number: u64, verdict: Verdict) {
        if let Some(ask) = self.asks.remove(&number) {
            self.refuse(ask.xid, verdict);
        }
    }

    /// A member has answered a barrier, so it has done all messages before.
    pub(super) fn barrier_reply(&mut self, dpid: u64, header: Header, now: Instant) {
        let Some(member) = self.members.get_mut(&dpid) else { return };
        let was_filling = member.is_filling();
        member.confirm(header.xid, now);
        if was_filling && !member.is_filling() {
            // The member holds all objects: its ports come up.
            self.report_ports();
            self.maybe_start(now);
        }
    }

    /// Passes an answer on unchanged.
    pub(super) fn relay(&mut self, dpid: u64, header: Header, message: &[u8], now: Instant) {
        let Some(member) = self.members.get_mut(&dpid) else { return };
        match member.sent(header.xid, false) {
            Some(Sent::Part(ask)) => {
                member.sent(header.xid, true);
                self.part(ask, dpid, message, &[], false, now);
            }
            Some(Sent::Plain(Some(xid))) => {
                self.front.send_changed(message, |message| frame::set_xid(message, xid));
            }
            _ => {}
        }
    }

    fn finish_ask(&mut self, number: u64, now: Instant) {
        if self.asks.get(&number).is_none_or(|ask| !ask.waiting.is_empty()) {
            return;
        }
        let Some(Ask { xid, sums: Some(type_), answers, .. }) = self.asks.remove(&number) else {
            return;
        };
        let entries = match type_ {
            MultipartType::FLOW => self.merged_flows(&answers, now),
            MultipartType::PORT_STATS => self.merged_ports(&answers),
            MultipartType::GROUP => merged_groups(&answers),
            _ => merged_meters(&answers),
        };
        self.reply(xid, type_, entries);
    }

    /// Each entry once, with what all its copies have counted.
    fn merged_flows(&self, answers: &BTreeMap<u64, Vec<u8>>, now: Instant) -> Vec<Vec<u8>> {
        let mut sums: BTreeMap<u64, Count> = BTreeMap::new();
        for it in answers.values().flat_map(|answers| messages::counted(self.wire, answers)) {
            let sum = sums.entry(it.cookie).or_default();
            *sum = sum.plus(it.count);
        }
        let entries = sums.into_iter().filter_map(|(cookie, count)| {
            let (flow, mut out) = (self.desired.entry(cookie)?.flow(), Vec::new());
            let (count, stood) = (count.plus(flow.past), flow.stood(now));
            messages::write_flow_statistics(self.wire, &flow, count, stood, &mut out);
            Some(out)
        });
        entries.collect()
    }

    /// Each port as its member counts it.
    fn merged_ports(&self, answers: &BTreeMap<u64, Vec<u8>>) -> Vec<Vec<u8>> {
        let mut merged: BTreeMap<u32, PortStats> = BTreeMap::new();
        for (dpid, answers) in answers {
            for port in messages::ports(self.wire, answers) {
                let number = port.port_no.0;
                if self.plan.owners.get(&number) == Some(dpid) {
                    merged.insert(number, port);
                } else {
                    merged.entry(number).or_insert(port);
                }
            }
        }
        merged.values().filter_map(|port| messages::written_port(self.wire, port)).collect()
    }

    fn reply(&mut self, xid: u32, type_: MultipartType, entries: Vec<Vec<u8>>) {
        let mut parts = Vec::new();
        match write_parts(self.version(), type_.0, xid, entries, &mut parts) {
            Ok(()) => self.front.send(&parts),
            Err(_) => self.refuse(xid, self.too_large()),
        }
    }
}

/// The type of a statistics request.
fn type_of(body: &[u8]) -> MultipartType {
    MultipartType(body.first_chunk().copied().map_or(0, u16::from_be_bytes))
}

/// Each group, with what it has counted on all members.
fn merged_groups(answers: &BTreeMap<u64, Vec<u8>>) -> Vec<Vec<u8>> {
    let mut sums = GroupSums::default();
    for answers in answers.values() {
        for it in List::<GroupStats<'_>>::parse(answers).unwrap_or_default() {
            sums.add(it, it.bucket_stats);
        }
    }
    sums.written()
}

/// Each meter, with what it has counted on all members.
fn merged_meters(answers: &BTreeMap<u64, Vec<u8>>) -> Vec<Vec<u8>> {
    let mut meters: BTreeMap<u32, (MeterStats<'_>, Vec<MeterBandCounter>)> = BTreeMap::new();
    for answers in answers.values() {
        for it in List::<MeterStats<'_>>::parse(answers).unwrap_or_default() {
            let Some((sum, bands)) = meters.get_mut(&it.meter_id) else {
                meters.insert(it.meter_id, (it, it.band_stats.iter().collect()));
                continue;
            };
            sum.flow_count = sum.flow_count.max(it.flow_count);
            sum.packet_in_count = sum.packet_in_count.saturating_add(it.packet_in_count);
            sum.byte_in_count = sum.byte_in_count.saturating_add(it.byte_in_count);
            let (mine, its) =
                ((sum.duration_sec, sum.duration_nsec), (it.duration_sec, it.duration_nsec));
            (sum.duration_sec, sum.duration_nsec) = mine.max(its);
            for (band, more) in bands.iter_mut().zip(it.band_stats) {
                band.packet_band_count =
                    band.packet_band_count.saturating_add(more.packet_band_count);
                band.byte_band_count = band.byte_band_count.saturating_add(more.byte_band_count);
            }
        }
    }
    let merged = meters.into_values().map(|(sum, bands)| {
        let bands: ListBuf<MeterBandCounter> = bands.into_iter().collect();
        written(&MeterStats { band_stats: bands.as_list(), ..sum })
    });
    merged.collect()
}
