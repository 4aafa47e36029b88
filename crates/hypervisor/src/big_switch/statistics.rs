//! Statistics requests and other questions: asked of all members, answered once.

use super::change::Ask;
use super::wire::{Asked, Sent, seconds};
use super::{BigSwitch, wire};
use crate::parts::write_parts;
use crate::refusals::Verdict;
use crate::time::Instant;
use crate::v13::statistics::GroupSums;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::Reason;
use openflow::v13::{GroupStats, MeterBandCounter, MeterStats};
use openflow::{Encode, Header, List, ListBuf, frame};

/// Bytes of answers that are kept for one question.
const LIMIT: usize = 16 << 20;

impl BigSwitch {
    /// The front sends a statistics request.
    pub(super) fn question(&mut self, xid: u32, message: &[u8], now: Instant) {
        let Some((type_, ..)) = wire::answer(self.version, message) else {
            self.refuse(xid, self.codes().bad_request);
            return;
        };
        match wire::asked(self.version, type_) {
            Asked::PortDescriptions => {
                let ports: Vec<Vec<u8>> = self.front.shown().values().cloned().collect();
                self.reply(xid, type_, &ports);
            }
            asked => self.ask(xid, asked, message, now),
        }
    }

    /// Asks all members, or one.
    pub(super) fn ask(&mut self, xid: u32, asked: Asked, message: &[u8], now: Instant) {
        let members = match asked {
            Asked::One => self.first().into_iter().collect(),
            _ => self.live(),
        };
        if members.is_empty() && asked == Asked::One {
            self.refuse(xid, self.no_member());
            return;
        }
        self.next_ask += 1;
        let number = self.next_ask;
        for &dpid in &members {
            self.send(dpid, Sent::Part(number), message);
        }
        let waiting = members.into_iter().collect();
        self.asks.insert(number, Ask { xid, asked, waiting, answers: BTreeMap::new() });
        self.finish_ask(number, now);
    }

    /// A part of an answer of a member.
    pub(super) fn answer(&mut self, dpid: u64, header: Header, message: &[u8], now: Instant) {
        let Some((_, entries, more)) = wire::answer(self.version, message) else { return };
        let Some(member) = self.members.get_mut(&dpid) else { return };
        let Some(what) = member.sent(header.xid, !more) else { return };
        match what {
            Sent::Flows => member.learned.flows.extend_from_slice(entries),
            Sent::Groups => member.learned.groups.extend_from_slice(entries),
            Sent::Meters => member.learned.meters.extend_from_slice(entries),
            Sent::Ports => {
                let ports = entries.chunks_exact(64).map(<[u8]>::to_vec);
                member
                    .ports
                    .extend(ports.map(|port| (wire::port_number(self.version, &port), port)));
            }
            Sent::IdleCheck(cookie) => {
                // On 1.0 the answer has other entries as well, perhaps in several parts.
                let mut asked = wire::held(self.version, entries);
                if !more || asked.any(|held| held.cookie == cookie) {
                    self.idle_checked(cookie, dpid, entries, now);
                }
                return;
            }
            Sent::Part(ask) => {
                self.part(ask, dpid, message, entries, more, now);
                return;
            }
            _ => return,
        }
        if !more {
            self.learned(dpid, now);
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
        if ask.asked == Asked::One {
            let xid = ask.xid;
            self.front.send_changed(message, |message| frame::set_xid(message, xid));
        } else {
            let kept: usize = ask.answers.values().map(Vec::len).sum();
            if kept + entries.len() > LIMIT {
                let xid = ask.xid;
                self.asks.remove(&number);
                self.refuse(xid, Reason::AnswerTooLarge.with(self.codes().not_now));
                return;
            }
            ask.answers.entry(dpid).or_default().extend_from_slice(entries);
        }
        if !more {
            self.part_done(number, dpid, now);
        }
    }

    fn part_done(&mut self, number: u64, dpid: u64, now: Instant) {
        if let Some(ask) = self.asks.get_mut(&number) {
            ask.waiting.remove(&dpid);
            self.finish_ask(number, now);
        }
    }

    /// A member is gone, perhaps before it has answered.
    pub(super) fn part_lost(&mut self, number: u64, dpid: u64, now: Instant) {
        let Some(ask) = self.asks.get_mut(&number) else { return };
        if !ask.waiting.remove(&dpid) {
            return;
        }
        if ask.asked == Asked::One {
            let xid = ask.xid;
            self.asks.remove(&number);
            self.refuse(xid, self.no_member());
            return;
        }
        self.finish_ask(number, now);
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
            self.filled(now);
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
        let Some(Ask { xid, asked, answers, .. }) = self.asks.remove(&number) else { return };
        match asked {
            Asked::One | Asked::PortDescriptions => {}
            Asked::Flows => {
                let entries = self.merged_flows(&answers, now);
                self.reply(xid, 1, &entries);
            }
            Asked::Ports => {
                let ports = self.merged_ports(&answers);
                self.reply(xid, 4, &ports);
            }
            Asked::Groups => self.reply(xid, 6, &merged_groups(&answers)),
            Asked::Meters => self.reply(xid, 9, &merged_meters(&answers)),
        }
    }

    /// Each entry once, with what all its copies have counted.
    fn merged_flows(&self, answers: &BTreeMap<u64, Vec<u8>>, now: Instant) -> Vec<Vec<u8>> {
        let mut sums = BTreeMap::new();
        for held in answers.values().flat_map(|answers| wire::held(self.version, answers)) {
            let (_, packets, bytes) = sums.entry(held.cookie).or_insert((held, 0_u64, 0_u64));
            *packets = packets.saturating_add(held.packets);
            *bytes = bytes.saturating_add(held.bytes);
        }
        let told = sums.into_iter().filter_map(|(cookie, (held, packets, bytes))| {
            let mut entry = self.desired.entry(cookie)?.clone();
            entry.count(packets, bytes);
            let (counts, lived) = ((entry.packets, entry.bytes), seconds(now - entry.since));
            Some(held.with_counts(self.version, entry.spec.hard, counts, lived))
        });
        told.collect()
    }

    /// Each port as its member counts it.
    fn merged_ports(&self, answers: &BTreeMap<u64, Vec<u8>>) -> Vec<Vec<u8>> {
        let mut merged: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for (dpid, answers) in answers {
            for (number, told) in wire::ports_told(self.version, answers) {
                if self.plan.owners.get(&number) == Some(dpid) {
                    merged.insert(number, told);
                } else {
                    merged.entry(number).or_insert(told);
                }
            }
        }
        merged.into_values().collect()
    }

    fn reply(&mut self, xid: u32, type_: u16, entries: &[Vec<u8>]) {
        let mut parts = Vec::new();
        let entries = entries.iter().map(Vec::as_slice);
        match write_parts(self.version, type_, xid, entries, &mut parts) {
            Ok(()) => self.front.send(&parts),
            Err(_) => self.refuse(xid, self.too_large()),
        }
    }
}

fn written(entry: &impl Encode) -> Vec<u8> {
    let mut out = Vec::new();
    entry.write(&mut out);
    out
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
    let told = meters.into_values().map(|(sum, bands)| {
        let mut list = ListBuf::<MeterBandCounter>::new();
        bands.into_iter().for_each(|band| list.push(band));
        written(&MeterStats { band_stats: list.as_list(), ..sum })
    });
    told.collect()
}
