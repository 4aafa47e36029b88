//! Writes and reads the messages of traffic control: an HTB with its classes, queues, filters and counters.
//!
//! The kernel measures the transmission time of bytes in ticks of 64 ns (`PSCHED_SHIFT` is 6 since Linux 2.6.31;
//! `/proc/net/psched` shows the value to programs). Therefore `buffer` and `cbuffer` in `tc_htb_opt` have this unit.

use super::message::{ASK, DUMP, Message, NEW, Received, attribute, u32_at, u64_at};
use std::os::fd::{AsRawFd, BorrowedFd};

/// The `RTM_*` constants of `linux/rtnetlink.h`.
const NEW_QDISC: u16 = 36;
const DELETE_QDISC: u16 = 37;
const GET_QDISC: u16 = 38;
const NEW_CLASS: u16 = 40;
const GET_CLASS: u16 = 42;
const NEW_FILTER: u16 = 44;
const NEW_STATS: u16 = 92;
const GET_STATS: u16 = 94;

/// `TCA_*`.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const STATS2: u16 = 7;
/// The attributes inside `TCA_STATS2`.
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
/// `TCA_HTB_*`.
const HTB_PARAMETERS: u16 = 1;
const HTB_INIT: u16 = 2;
const HTB_RATE64: u16 = 6;
const HTB_CEIL64: u16 = 7;
/// `TCA_U32_*`.
const U32_CLASSID: u16 = 1;
const U32_SELECTOR: u16 = 5;

/// `TCA_BPF_*`.
const BPF_DESCRIPTOR: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
/// `TCA_BPF_FLAG_ACT_DIRECT`.
const BPF_DIRECT_ACTION: u32 = 1;
/// `TC_H_CLSACT`.
const HOOKS: u32 = 0xffff_fff1;

/// `TC_H_MIN_INGRESS`, `TC_H_MIN_EGRESS`.
#[derive(Clone, Copy)]
pub(crate) enum Hook {
    /// Received frames.
    Ingress = 0xfff2,
    /// Sent frames, before the queue.
    Egress = 0xfff3,
}

/// The parent of a root queueing discipline.
pub(crate) const ROOT: u32 = 0xffff_ffff;

const TICK_NS: u128 = 64;
/// `TC_LINKLAYER_ETHERNET`: rates are exact, and the message needs no rate table.
const ETHERNET: u8 = 1;
/// `ETH_P_ALL`.
const EVERY_PROTOCOL: u16 = 3;
const PRIORITY: u32 = 1;

/// The rates of a class in bits per second, and the bytes that the class may send at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassRates {
    /// The guaranteed rate.
    pub(crate) rate: u64,
    /// The most that the class may send when the parent lends bandwidth.
    pub(crate) ceiling: u64,
    /// The bytes that the class sends before another class of the same parent sends.
    pub(crate) quantum: u32,
}

/// The interface, the handle and the parent of a queueing discipline or class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) interface: u32,
    pub(crate) handle: u32,
    pub(crate) parent: u32,
}

/// A queueing discipline that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Qdisc {
    pub(crate) place: Place,
    pub(crate) kind: String,
    /// For an HTB: the class for frames that no filter takes.
    pub(crate) default: Option<u32>,
}

/// The counters of a class since the creation of the class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sent bytes, with Ethernet headers.
    pub bytes: u64,
    /// Bytes that wait.
    pub backlog: u32,
    /// Frames that the full queue dropped.
    pub dropped: u32,
    /// How often the class had to wait at its ceiling; the counter wraps.
    pub throttled: u32,
}

impl Place {
    /// `struct tcmsg`.
    fn bytes(self, info: u32) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[4..8].copy_from_slice(&self.interface.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.handle.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.parent.to_ne_bytes());
        bytes[16..].copy_from_slice(&info.to_ne_bytes());
        bytes
    }

    fn read(body: &[u8]) -> Option<Place> {
        Some(Place {
            interface: u32_at(body, 4)?,
            handle: u32_at(body, 8)?,
            parent: u32_at(body, 12)?,
        })
    }
}

/// Creates an HTB; frames that no filter takes go to the class with that minor number.
pub(crate) fn new_htb(place: Place, default: u32) -> Message {
    // The fields of struct tc_htb_glob: version, rate2quantum, default, debug, direct packets.
    let init: Vec<u8> =
        [3, 10, default, 0, 0].iter().flat_map(|number: &u32| number.to_ne_bytes()).collect();
    Message::new(NEW_QDISC, ASK | NEW, &place.bytes(0))
        .text(KIND, "htb")
        .nested(OPTIONS, |options| options.attribute(HTB_INIT, &init))
}

/// Creates a queue of `limit` bytes below a class.
pub(crate) fn new_queue(place: Place, limit: u32) -> Message {
    Message::new(NEW_QDISC, ASK | NEW, &place.bytes(0))
        .text(KIND, "bfifo")
        .attribute(OPTIONS, &limit.to_ne_bytes())
}

pub(crate) fn delete_qdisc(place: Place) -> Message {
    Message::new(DELETE_QDISC, ASK, &place.bytes(0))
}

pub(crate) fn new_class(place: Place, rates: ClassRates) -> Message {
    class(ASK | NEW, place, rates)
}

/// Changes the rates of an existing class.
pub(crate) fn change_class(place: Place, rates: ClassRates) -> Message {
    class(ASK, place, rates)
}

fn class(flags: u16, place: Place, rates: ClassRates) -> Message {
    let (rate, ceiling) = (rates.rate / 8, rates.ceiling / 8);
    // The fields of struct tc_htb_opt: two struct tc_ratespec, two buffers, quantum, level, priority.
    let mut parameters = Vec::with_capacity(44);
    for bytes in [rate, ceiling] {
        // The fields of struct tc_ratespec: cell log, link layer, overhead, cell alignment, smallest packet unit, rate.
        parameters.extend_from_slice(&[0, ETHERNET, 0, 0, 0, 0, 0, 0]);
        let short = u32::try_from(bytes).unwrap_or(u32::MAX);
        parameters.extend_from_slice(&short.to_ne_bytes());
    }
    for number in [ticks(burst(rate), rate), ticks(burst(ceiling), ceiling), rates.quantum, 0, 0] {
        parameters.extend_from_slice(&number.to_ne_bytes());
    }
    Message::new(NEW_CLASS, flags, &place.bytes(0)).text(KIND, "htb").nested(OPTIONS, |options| {
        let mut options = options.attribute(HTB_PARAMETERS, &parameters);
        for (kind, bytes) in [(HTB_RATE64, rate), (HTB_CEIL64, ceiling)] {
            if u32::try_from(bytes).is_err() {
                options = options.attribute(kind, &bytes.to_ne_bytes());
            }
        }
        options
    })
}

/// The burst is two frames, or the bytes of one millisecond. A smaller burst starves a class at the timer's resolution;
/// a larger burst exceeds the rate.
fn burst(bytes_per_second: u64) -> u64 {
    (bytes_per_second / 1000).max(2 * 1600)
}

/// The transmission time of those bytes at that rate, in ticks of the kernel.
fn ticks(bytes: u64, bytes_per_second: u64) -> u32 {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    u32::try_from(ns / TICK_NS).unwrap_or(u32::MAX)
}

/// Sends frames with that destination address to a class.
///
/// The offsets of u32 count from the network header, so the destination address is at offset −14. A VLAN tag is outside
/// the frame there (in the metadata of the buffer), and the filter is for all protocols. Therefore the filter takes
/// frames with and without a tag, of IPv4 and of other protocols.
pub(crate) fn new_filter(place: Place, destination: [u8; 6], class: u32) -> Message {
    let [a, b, c, d, e, f] = destination;
    // The fields of struct tc_u32_sel: flags (1: terminal), shift, number of keys, padding, offsets and hash (all
    // unused), then the keys. The fields of a key: mask, value (both in network byte order), offset, offset mask.
    let mut selector = vec![1, 0, 2, 0];
    selector.extend_from_slice(&[0; 12]);
    for (mask, value, offset) in
        [([0, 0, 0xff, 0xff], [0, 0, a, b], -16_i32), ([0xff; 4], [c, d, e, f], -12)]
    {
        selector.extend_from_slice(&mask);
        selector.extend_from_slice(&value);
        selector.extend_from_slice(&offset.to_ne_bytes());
        selector.extend_from_slice(&[0; 4]);
    }
    filter(place, "u32", |options| {
        options.attribute(U32_CLASSID, &class.to_ne_bytes()).attribute(U32_SELECTOR, &selector)
    })
}

fn filter(place: Place, kind: &str, fill: impl FnOnce(Message) -> Message) -> Message {
    let info = (PRIORITY << 16) | u32::from(EVERY_PROTOCOL.to_be());
    Message::new(NEW_FILTER, ASK | NEW, &place.bytes(info)).text(KIND, kind).nested(OPTIONS, fill)
}

/// Creates the place of filters for frames at ingress and before the egress queue; the kernel has one such place per
/// interface.
pub(crate) fn new_hooks(interface: u32) -> Message {
    Message::new(NEW_QDISC, ASK | NEW, &hooks(interface).bytes(0)).text(KIND, "clsact")
}

fn hooks(interface: u32) -> Place {
    Place { interface, handle: HOOKS & 0xffff_0000, parent: HOOKS }
}

/// Removes the `clsact` of an interface with all its filters.
pub(crate) fn delete_hooks(interface: u32) -> Message {
    delete_qdisc(hooks(interface))
}

/// Attaches a program that decides about every frame at one of the hooks.
pub(crate) fn new_program(
    interface: u32,
    hook: Hook,
    name: &str,
    program: BorrowedFd<'_>,
) -> Message {
    let parent = HOOKS & 0xffff_0000 | hook as u32;
    filter(Place { interface, handle: 0, parent }, "bpf", |options| {
        options
            .attribute(BPF_DESCRIPTOR, &program.as_raw_fd().to_ne_bytes())
            .text(BPF_NAME, name)
            .attribute(BPF_FLAGS, &BPF_DIRECT_ACTION.to_ne_bytes())
    })
}

/// Requests every queueing discipline of the namespace.
pub(crate) fn get_qdiscs(interface: u32) -> Message {
    Message::new(GET_QDISC, DUMP, &Place { interface, handle: 0, parent: 0 }.bytes(0))
}

/// Requests the classes of that queueing discipline.
pub(crate) fn get_classes(interface: u32, qdisc: u32) -> Message {
    Message::new(GET_CLASS, DUMP, &Place { interface, handle: 0, parent: qdisc }.bytes(0))
}

/// Requests the counters of an interface.
pub(crate) fn get_counters(interface: u32) -> Message {
    // The fields of struct if_stats_msg: family and padding, interface, mask of statistics (IFLA_STATS_LINK_64).
    let mut body = [0; 12];
    body[4..8].copy_from_slice(&interface.to_ne_bytes());
    body[8..].copy_from_slice(&1_u32.to_ne_bytes());
    Message::new(GET_STATS, ASK, &body)
}

pub(crate) fn read_qdisc(message: Received<'_>) -> Option<Qdisc> {
    if message.kind != NEW_QDISC {
        return None;
    }
    let attributes = message.body.get(20..)?;
    let kind = attribute(attributes, KIND)?;
    let kind = String::from_utf8_lossy(kind.strip_suffix(&[0]).unwrap_or(kind)).into_owned();
    let init = attribute(attributes, OPTIONS).and_then(|options| attribute(options, HTB_INIT));
    let default = init.filter(|_| kind == "htb").and_then(|init| u32_at(init, 8));
    Some(Qdisc { place: Place::read(message.body)?, kind, default })
}

pub(crate) fn read_class(message: Received<'_>) -> Option<(Place, Counters)> {
    if message.kind != NEW_CLASS {
        return None;
    }
    let statistics = attribute(message.body.get(20..)?, STATS2)?;
    let queue = attribute(statistics, STATS_QUEUE)?;
    let counters = Counters {
        bytes: u64_at(attribute(statistics, STATS_BASIC)?, 0)?,
        backlog: u32_at(queue, 4)?,
        dropped: u32_at(queue, 8)?,
        throttled: u32_at(queue, 16)?,
    };
    Some((Place::read(message.body)?, counters))
}

/// The bytes that the interface received.
pub(crate) fn read_received(message: Received<'_>) -> Option<u64> {
    if message.kind != NEW_STATS {
        return None;
    }
    // The fields of struct rtnl_link_stats64: packets received, packets sent, bytes received, ...
    u64_at(attribute(message.body.get(12..)?, 1)?, 16)
}

#[cfg(test)]
mod tests {
    use super::super::message::messages;
    use super::*;

    #[track_caller]
    fn check(message: Message, expected: &str) {
        let hex: String = message.finish(7).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected.split_whitespace().collect::<String>());
    }

    /// A separate Python program made the expected bytes from the structures of `linux/pkt_sched.h`. The test
    /// `root_a_shaper_equals_the_same_shaper_made_by_tc` shows that the kernel understands the bytes as the messages of `tc`. The
    /// bytes are little-endian.
    #[test]
    #[cfg(target_endian = "little")]
    fn qdisc_class_and_filter_messages_have_the_expected_bytes() {
        let place = |handle, parent| Place { interface: 3, handle, parent };
        check(
            new_htb(place(0x5745_0000, ROOT), 2),
            "48000000 2400 0506 07000000 00000000 00000000 03000000 00004557 ffffffff 00000000
             0800 0100 68746200 1c00 0200 1800 0200 03000000 0a000000 02000000 00000000 00000000",
        );
        check(
            new_class(
                place(0x5745_0010, 0x5745_0001),
                ClassRates { rate: 2_000_000, ceiling: 8_000_000, quantum: 1514 },
            ),
            "60000000 2800 0506 07000000 00000000 00000000 03000000 10004557 01004557 00000000
             0800 0100 68746200 3400 0200 3000 0100
             00 01 0000 0000 0000 90d00300 00 01 0000 0000 0000 40420f00
             400d0300 50c30000 ea050000 00000000 00000000",
        );
        check(
            new_filter(place(0, 0x5745_0000), [0, 0, 0, 0, 0, 7], 0x5745_0010),
            "6c000000 2c00 0506 07000000 00000000 00000000 03000000 00000000 00004557 00030100
             0800 0100 75333200 4000 0200 0800 0100 10004557 3400 0500
             01 00 02 00 0000 0000 0000 0000 00000000
             0000ffff 00000000 f0ffffff 00000000 ffffffff 00000007 f4ffffff 00000000",
        );
    }

    #[test]
    fn rates_above_32_bits_get_a_64_bit_attribute() {
        let place = Place { interface: 1, handle: 1, parent: 0 };
        let rates = |bits| ClassRates { rate: 8_000, ceiling: bits, quantum: 1514 };
        for (bits, expected) in [(34_000_000_000, None), (40_000_000_000, Some(5_000_000_000))] {
            let bytes = new_class(place, rates(bits)).finish(1);
            let message = messages(&bytes).next().unwrap();
            let options = attribute(&message.body[20..], OPTIONS).unwrap();
            assert_eq!(attribute(options, HTB_CEIL64).and_then(|it| u64_at(it, 0)), expected);
            assert_eq!(attribute(options, HTB_RATE64), None);
        }
    }

    /// The expected values are those of tc: microseconds times 15.625, the factor of `/proc/net/psched`.
    #[test]
    fn times_are_converted_to_kernel_ticks() {
        for (bytes, rate, expected) in [
            (3_200, 250_000, 200_000),
            (3_200, 1_000_000, 50_000),
            (125_000, 125_000_000, 15_625),
            (3_200, 1_000, 50_000_000),
            (3_200, 0, u32::MAX),
        ] {
            assert_eq!(ticks(bytes, rate), expected, "{bytes} bytes at {rate}");
        }
        assert_eq!((burst(1_000), burst(125_000_000)), (3_200, 125_000));
    }

    #[test]
    fn truncated_kernel_messages_give_no_wrong_values() {
        let bytes = new_htb(Place { interface: 3, handle: 7 << 16, parent: ROOT }, 5).finish(1);
        let whole = messages(&bytes).next().unwrap();
        let qdisc = read_qdisc(whole).unwrap();
        assert_eq!(
            (qdisc.kind.as_str(), qdisc.default, qdisc.place.interface),
            ("htb", Some(5), 3)
        );
        for end in 0..whole.body.len() {
            let cut = Received { body: &whole.body[..end], ..whole };
            assert!(read_qdisc(cut).is_none_or(|it| it.default.is_none() || it == qdisc));
            assert_eq!(read_class(Received { kind: NEW_CLASS, ..cut }), None);
            assert_eq!(read_received(Received { kind: NEW_STATS, ..cut }), None);
        }
    }
}
