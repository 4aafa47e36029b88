//! Socket filters (classic BPF): which frames wake a capture at all, or are taken by a traffic filter of `tc`.

use std::net::Ipv4Addr;
use std::os::fd::AsFd;

use nix::libc::sock_filter;

use crate::error::{Error, Result};
use crate::probe::{ETHERNET, ETHERTYPE_IPV4, ETHERTYPE_VLAN, PROTOCOL_UDP, UDP, VLAN};
use crate::system;

/// A classic BPF program for [`crate::Capture`], or for `cls_bpf`.
#[derive(Clone, Debug)]
pub struct Filter {
    program: Vec<sock_filter>,
}

/// Which frames a random filter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomSample {
    /// A frame is taken if the kernel's random 32-bit number for the frame is below this: 2³² takes every frame, 0 none.
    /// [`RandomSample::limit`] computes this number from a share.
    pub below: u64,
    /// How many bytes of a taken frame to keep, from the Ethernet header on.
    pub keep: u32,
    /// UDP datagrams to this port are never taken, over IPv4: what carries samples is no sample. With at most one VLAN
    /// tag, which the kernel takes out of a frame before a filter sees it.
    pub except_port: Option<u16>,
    /// Only IPv4 from this network, with at most one VLAN tag: its address and the prefix's length, 0 to 32.
    pub source: Option<(Ipv4Addr, u8)>,
}

impl RandomSample {
    /// The limit by which a filter takes this share (0 to 1) of the frames.
    pub fn limit(share: f64) -> u64 {
        const NUMBERS: u64 = 1 << 32;
        (share * NUMBERS as f64).round() as u64
    }
}

// Codes of linux/bpf_common.h, as they are combined here.
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD_INDEXED: u16 = 0x40;
const LOAD_INDEX_IP_LENGTH: u16 = 0xb1;
const LOAD_WORD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const LOAD_HALF_INDEXED: u16 = 0x48;
const AND: u16 = 0x54;
/// Where a load means a random number (linux/filter.h: SKF_AD_OFF + SKF_AD_RANDOM).
const RANDOM: u32 = 0xffff_f000 + 56;
const RETURN: u16 = 0x06;

/// How much of a frame to keep: all of it.
const WHOLE: u32 = 0x0004_0000;

impl Filter {
    /// Lets only UDP probes with that tag through, with at most two VLAN tags.
    pub fn probes(tag: u64) -> Filter {
        let mut program = Vec::new();
        // One attempt per number of tags in the frame; each ends in a verdict or goes on.
        for tags in 0..=2 {
            let ethertype = (ETHERNET - 2 + tags * VLAN) as u32;
            let ip = ethertype + 2;
            let body = [
                statement(LOAD_BYTE, ip + 9),
                jump(u32::from(PROTOCOL_UDP), 0, 6),
                statement(LOAD_INDEX_IP_LENGTH, ip),
                statement(LOAD_WORD_INDEXED, ip + UDP as u32),
                jump((tag >> 32) as u32, 0, 3),
                statement(LOAD_WORD_INDEXED, ip + UDP as u32 + 4),
                jump(tag as u32, 0, 1),
                statement(RETURN, WHOLE),
                statement(RETURN, 0),
            ];
            program.push(statement(LOAD_HALF, ethertype));
            program.push(jump(u32::from(ETHERTYPE_IPV4), 0, body.len() as u8));
            program.extend(body);
            // Past the body the accumulator still holds the ethertype.
            program.push(jump(u32::from(ETHERTYPE_VLAN), 1, 0));
            program.push(statement(RETURN, 0));
        }
        program.push(statement(RETURN, 0));
        Filter { program }
    }

    /// Lets a random sample through: the kernel decides frame by frame, and copies nothing of the others.
    pub fn random(sample: &RandomSample) -> Filter {
        if sample.below == 0 {
            return Filter::nothing();
        }
        let mut program = Vec::new();
        // Above 2³² − 1 there is no number to leave out.
        if let Ok(below) = u32::try_from(sample.below) {
            program.push(statement(LOAD_WORD, RANDOM));
            program.push(sock_filter { code: JUMP_AT_LEAST, jt: 0, jf: 1, k: below });
            program.push(statement(RETURN, 0));
        }
        if let Some((network, prefix)) = sample.source {
            let ip = ETHERNET as u32;
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            program.extend([
                statement(LOAD_HALF, ip - 2),
                jump(u32::from(ETHERTYPE_IPV4), 0, 3),
                statement(LOAD_WORD, ip + 12),
                statement(AND, mask),
                jump(network.to_bits() & mask, 1, 0),
                statement(RETURN, 0),
            ]);
        }
        if let Some(port) = sample.except_port {
            let ip = ETHERNET as u32;
            program.extend([
                statement(LOAD_HALF, ip - 2),
                jump(u32::from(ETHERTYPE_IPV4), 0, 6),
                statement(LOAD_BYTE, ip + 9),
                jump(u32::from(PROTOCOL_UDP), 0, 4),
                statement(LOAD_INDEX_IP_LENGTH, ip),
                statement(LOAD_HALF_INDEXED, ip + 2),
                jump(u32::from(port), 0, 1),
                statement(RETURN, 0),
            ]);
        }
        program.push(statement(RETURN, sample.keep));
        Filter { program }
    }

    /// The program as `tc filter … bpf bytecode` takes it: `COUNT,CODE JT JF K,…`.
    pub fn bytecode(&self) -> String {
        let instruction =
            |one: &sock_filter| format!("{} {} {} {}", one.code, one.jt, one.jf, one.k);
        let instructions: Vec<String> = self.program.iter().map(instruction).collect();
        format!("{},{}", self.program.len(), instructions.join(","))
    }

    /// For a UDP socket: lets only datagrams through whose payload begins with that byte.
    pub fn first_byte(byte: u8) -> Filter {
        let program = vec![
            // Here the UDP header is the beginning.
            statement(LOAD_BYTE, UDP as u32),
            jump(u32::from(byte), 1, 0),
            statement(RETURN, 0),
            statement(RETURN, WHOLE),
        ];
        Filter { program }
    }

    /// From now on the socket receives only what the filter lets through.
    pub fn attach(&self, socket: &impl AsFd) -> Result<()> {
        let attach = |error| Error::system("attach a socket filter", error);
        system::set_filter(socket.as_fd(), self.program()).map_err(attach)
    }

    /// Lets nothing through: for a socket that only sends, or one that must not see anything yet.
    pub fn nothing() -> Filter {
        Filter { program: vec![statement(RETURN, 0)] }
    }

    pub(crate) fn program(&self) -> &[sock_filter] {
        &self.program
    }
}

fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

fn jump(k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: JUMP_EQUAL, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Observation;
    use crate::probe::{Headers, ProbeTemplate, VlanTag};
    use crate::timestamp::Timestamp;
    use proptest::prelude::*;

    /// The kernel's rules for the codes used here: a load outside the frame rejects it.
    fn run(program: &[sock_filter], frame: &[u8]) -> u32 {
        run_with(program, frame, 0)
    }

    fn run_with(program: &[sock_filter], frame: &[u8], random: u32) -> u32 {
        let load = |at: u32, size: usize| -> Option<u32> {
            let bytes = frame.get(at as usize..at as usize + size)?;
            Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
        };
        let (mut at, mut accumulator, mut index) = (0, 0, 0);
        loop {
            let instruction = program[at];
            let k = instruction.k;
            let loaded = match instruction.code {
                LOAD_HALF => load(k, 2),
                LOAD_BYTE => load(k, 1),
                LOAD_WORD if k == RANDOM => Some(random),
                LOAD_WORD => load(k, 4),
                AND => Some(accumulator & k),
                LOAD_HALF_INDEXED => load(index + k, 2),
                JUMP_AT_LEAST => {
                    at +=
                        usize::from(if accumulator >= k { instruction.jt } else { instruction.jf });
                    Some(accumulator)
                }
                LOAD_WORD_INDEXED => load(index + k, 4),
                LOAD_INDEX_IP_LENGTH => {
                    let Some(byte) = load(k, 1) else { return 0 };
                    index = (byte & 0x0f) * 4;
                    Some(accumulator)
                }
                JUMP_EQUAL => {
                    at +=
                        usize::from(if accumulator == k { instruction.jt } else { instruction.jf });
                    Some(accumulator)
                }
                RETURN => return k,
                code => panic!("{code:#x}"),
            };
            let Some(loaded) = loaded else { return 0 };
            accumulator = loaded;
            at += 1;
        }
    }

    #[test]
    fn filter_bytecode_has_the_text_format_of_tc() {
        let sample =
            RandomSample { below: 1 << 31, keep: u32::MAX, except_port: None, source: None };
        let expected = "4,32 0 0 4294963256,53 0 1 2147483648,6 0 0 0,6 0 0 4294967295";
        assert_eq!(Filter::random(&sample).bytecode(), expected);
    }

    proptest! {
        /// Exactly the numbers below the limit, and never the port that carries samples.
        #[test]
        fn random_samples(limit in 0..=1_u64 << 32, random: u32, near in -2..=2_i64, except in 4788..4791_u16, udp: bool) {
            let headers = Headers {
                source_mac: [2; 6], destination_mac: [4; 6], vlan: None,
                source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), tos: 0, ttl: 64,
                source_port: 1, destination_port: 4789,
            };
            let mut frame = ProbeTemplate::new(&headers, 7, 64).unwrap().stamp(1, Timestamp(1)).to_vec();
            if !udp {
                frame[23] = 6;
            }
            for number in [random, (limit as i64 + near).clamp(0, i64::from(u32::MAX)) as u32] {
                let take = |except_port| {
                    let sample = RandomSample { below: limit, keep: 128, except_port, source: None };
                    run_with(Filter::random(&sample).program(), &frame, number)
                };
                let expected = if u64::from(number) < limit { 128 } else { 0 };
                prop_assert_eq!(take(None), expected);
                prop_assert_eq!(take(Some(except)), if udp && except == 4789 { 0 } else { expected });
            }
        }

        /// Only what a network's hosts send.
        #[test]
        fn sources(source: u32, network: u32, prefix in 0..=32_u8, near: bool, ip: bool) {
            // Half the networks have the source in them.
            let network = if near { source ^ 1_u32.checked_shl(32 - u32::from(prefix)).unwrap_or(0) } else { network };
            let headers = Headers {
                source_mac: [2; 6], destination_mac: [4; 6], vlan: None,
                source: source.into(), destination: [10, 0, 0, 2].into(), tos: 0, ttl: 64,
                source_port: 1, destination_port: 2,
            };
            let mut frame = ProbeTemplate::new(&headers, 7, 64).unwrap().stamp(1, Timestamp(1)).to_vec();
            if !ip {
                frame[13] = 6;
            }
            for network in [network, source] {
                let sample = RandomSample { below: 1 << 32, keep: 128, except_port: None, source: Some((network.into(), prefix)) };
                let shift = 32 - u32::from(prefix);
                let is_in = ip && u64::from(source) >> shift == u64::from(network) >> shift;
                prop_assert_eq!(run(Filter::random(&sample).program(), &frame), if is_in { 128 } else { 0 });
            }
        }

        /// The filter lets a probe through exactly when it can be read back.
        #[test]
        fn the_probe_filter_passes_every_frame_that_parses_as_a_probe(tags in 0..3_usize, at in 0..68_usize, value: u8, cut in 40..=68_usize, other: u64) {
            let headers = Headers {
                source_mac: [2; 6], destination_mac: [4; 6], vlan: Some(VlanTag { id: 1, priority: 0 }),
                source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), tos: 0, ttl: 64,
                source_port: 1, destination_port: 2,
            };
            let tag = 0x8899_aabb_ccdd_eeff;
            let filter = Filter::probes(tag);
            let mut frame = ProbeTemplate::new(&headers, tag, 64).unwrap().stamp(1, Timestamp(1)).to_vec();
            match tags {
                0 => drop(frame.drain(12..16)),
                1 => {}
                _ => drop(frame.splice(12..12, [0x81, 0, 0, 5])),
            }
            prop_assert_eq!(run(filter.program(), &frame), WHOLE);
            prop_assert_eq!(run(Filter::probes(other).program(), &frame), if other == tag { WHOLE } else { 0 });
            prop_assert_eq!(run(Filter::nothing().program(), &frame), 0);
            if let Some(byte) = frame.get_mut(at) {
                *byte = value;
            }
            frame.truncate(cut);
            if Observation::parse(&frame, tag, Timestamp(1)).is_some() {
                prop_assert_eq!(run(filter.program(), &frame), WHOLE);
            }
        }
    }
}
