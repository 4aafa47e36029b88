//! Questions and barriers: asked of all members, answered once.

use super::operation::{Ask, Asked};
use super::wire::{Sent, seconds};
use super::{BigSwitch, wire};
use crate::parts::write_parts;
use crate::refusals::Verdict;
use crate::time::Instant;
use crate::v13::statistics::GroupSums;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::Reason;
use flowspace::port_from_v10;
use openflow::v13::{GroupStats, MeterBandCounter, MeterStats, MultipartType};
use openflow::{Encode, Header, List, ListBuf, Version, frame, v10, v13};

/// Bytes of answers that are kept for one question.
const LIMIT: usize = 16 << 20;

impl BigSwitch {
    /// A statistics request of the front's.
    pub(super) fn question(&mut self, xid: u32, message: &[u8], now: Instant) {
        let Some((type_, ..)) = wire::answer(self.version, message) else {
            self.refuse(xid, self.codes().bad_request);
            return;
        };
        if self.version == Version::V1_3 && type_ == MultipartType::PORT_DESC.0 {
            let ports: Vec<Vec<u8>> = self.front.shown().values().cloned().collect();
            self.reply(xid, type_, &ports);
            return;
        }
        let asked = match (self.version, type_) {
            (_, 1) => Asked::Flows,
            (_, 4) => Asked::Ports,
            (Version::V1_3, 6) => Asked::Groups,
            (Version::V1_3, 9) => Asked::Meters,
            _ => Asked::One,
        };
        self.ask(xid, asked, message, now);
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
        let number = self.take_number();
        for &dpid in &members {
            self.send(dpid, Sent::Part(number), message);
        }
        let waiting = members.into_iter().map(|dpid| (dpid, 1)).collect();
        self.asks.insert(number, Ask { xid, asked, waiting, answers: BTreeMap::new() });
        self.finish_ask(number, now);
    }

    /// A member gets one more barrier for all that are waited for: something has to be behind it that was sent late.
    pub(super) fn barrier_again(&mut self, dpid: u64) {
        let mut last = None;
        for (&number, ask) in self.asks.iter_mut().filter(|(_, ask)| ask.asked == Asked::Barrier) {
            *ask.waiting.entry(dpid).or_default() += 1;
            last = Some(number);
        }
        if let Some(last) = last {
            self.send(dpid, Sent::TakenBack(last), &wire::barrier(self.version));
        }
    }

    /// What a member took back is done, which all barriers up to this one have waited for.
    pub(super) fn taken_back(&mut self, last: u64, dpid: u64, now: Instant) {
        let waiting = self.asks.range(..=last).filter(|(_, ask)| ask.asked == Asked::Barrier);
        let waiting: Vec<u64> = waiting.map(|(&number, _)| number).collect();
        waiting.into_iter().for_each(|number| self.part_done(number, dpid, now));
    }

    /// A part of an answer of a member.
    pub(super) fn answer(&mut self, dpid: u64, header: Header, message: &[u8], now: Instant) {
        let Some((_, entries, more)) = wire::answer(self.version, message) else { return };
        let Some(member) = self.members.get_mut(&dpid) else { return };
        let number = member.number(header.xid);
        let Some(&what) = member.sent.get(&number) else { return };
        if !more {
            member.sent.remove(&number);
        }
        match what {
            Sent::Flows => member.learned.flows.extend_from_slice(entries),
            Sent::Groups => member.learned.groups.extend_from_slice(entries),
            Sent::Meters => member.learned.meters.extend_from_slice(entries),
            Sent::Ports => {
                for port in List::<v13::Port>::parse(entries).unwrap_or_default() {
                    let mut wire = Vec::new();
                    port.write(&mut wire);
                    member.ports.insert(port.port_no.0, wire);
                }
            }
            Sent::IdleCheck(cookie) => {
                let asked = wire::held(self.version, entries);
                // On 1.0 the answer has others as well, perhaps in several parts.
                if !more || asked.iter().any(|held| held.cookie == cookie) {
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
        if let Some(ask) = self.asks.get_mut(&number)
            && let Some(due) = ask.waiting.get_mut(&dpid)
        {
            *due -= 1;
            if *due == 0 {
                ask.waiting.remove(&dpid);
            }
            self.finish_ask(number, now);
        }
    }

    /// A member is gone that was to answer.
    pub(super) fn part_lost(&mut self, number: u64, dpid: u64, now: Instant) {
        let Some(ask) = self.asks.get_mut(&number) else { return };
        if ask.waiting.remove(&dpid).is_none() {
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

    /// A member would not answer: neither does the whole.
    pub(super) fn ask_refused(&mut self, number: u64, dpid: u64, verdict: Verdict, now: Instant) {
        let Some(ask) = self.asks.get(&number) else { return };
        if ask.asked == Asked::Barrier {
            self.part_done(number, dpid, now);
            return;
        }
        let xid = ask.xid;
        self.asks.remove(&number);
        self.refuse(xid, verdict);
    }

    /// A member's barrier is done, and with it all before.
    pub(super) fn barrier_reply(&mut self, dpid: u64, header: Header, now: Instant) {
        let Some(member) = self.members.get_mut(&dpid) else { return };
        let number = member.number(header.xid);
        let Some(what) = member.sent.remove(&number) else { return };
        for done in member.confirm(number) {
            if let Sent::Change(operation) = done {
                self.change_confirmed(operation, dpid, now);
            }
        }
        match what {
            Sent::Part(ask) => self.part_done(ask, dpid, now),
            Sent::TakenBack(last) => self.taken_back(last, dpid, now),
            Sent::Filled => self.filled(dpid, now),
            Sent::Settled => self.settled(dpid, now),
            _ => {}
        }
    }

    /// An answer that goes on as it is.
    pub(super) fn relay(&mut self, dpid: u64, header: Header, message: &[u8], now: Instant) {
        let Some(member) = self.members.get_mut(&dpid) else { return };
        let number = member.number(header.xid);
        match member.sent.get(&number) {
            Some(&Sent::Part(ask)) => {
                member.sent.remove(&number);
                self.part(ask, dpid, message, &[], false, now);
            }
            Some(&Sent::Plain(xid)) => {
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
            Asked::One => {}
            Asked::Barrier => {
                let reply = wire::barrier_reply(self.version, xid);
                self.front.send(&reply);
            }
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
        let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for answers in answers.values() {
            for held in wire::held(self.version, answers) {
                let sum = sums.entry(held.cookie).or_default();
                *sum = (sum.0.saturating_add(held.packets), sum.1.saturating_add(held.bytes));
            }
        }
        let told = sums.into_iter().filter_map(|(cookie, sum)| {
            let entry = self.entries.get(&cookie)?;
            let counts = (sum.0.saturating_add(entry.past.0), sum.1.saturating_add(entry.past.1));
            let mut wire = Vec::new();
            let lived = seconds(now - entry.installed);
            wire::write_held(self.version, &entry.add, counts, lived, &mut wire);
            Some(wire)
        });
        told.collect()
    }

    /// Each port as its member counts it.
    fn merged_ports(&self, answers: &BTreeMap<u64, Vec<u8>>) -> Vec<Vec<u8>> {
        let mut merged: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for (dpid, answers) in answers {
            for (number, told) in ports_told(self.version, answers) {
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

/// The ports that a member tells of, by number.
fn ports_told(version: Version, answers: &[u8]) -> Vec<(u32, Vec<u8>)> {
    match version {
        Version::V1_0 => {
            let ports = List::<v10::PortStats>::parse(answers).unwrap_or_default();
            ports.iter().map(|it| (port_from_v10(it.port_no.0), written(&it))).collect()
        }
        _ => {
            let ports = List::<v13::PortStats>::parse(answers).unwrap_or_default();
            ports.iter().map(|it| (it.port_no.0, written(&it))).collect()
        }
    }
}

pub(super) fn written(entry: &impl Encode) -> Vec<u8> {
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
