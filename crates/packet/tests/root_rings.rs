//! Tests of generation and capture on a real veth pair. The tests need root, and are skipped by name without root.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)] // Helpers of tests, too.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lab::{Lab, LabGuard, Options, Requirements, StateDirectory, Topology};
use packet::{
    Capture, CaptureOptions, Error, Filter, GenerateOptions, Headers, Interface, Observation,
    PcapngWriter, ProbeTemplate, RandomSample, Tap, TransmitOptions, Transmitter, VlanTag,
    generate, in_namespace,
};

const TAG: u64 = 0x5e41_0d00_0000_0001;
/// Two hosts need neither Open vSwitch nor rates.
const NEEDS: Requirements = Requirements { switches: false, rates: false };

/// Two hosts with one link between them: a veth pair for one test.
struct Pair {
    lab: LabGuard,
    _alone: MutexGuard<'static, ()>,
}

/// Only one test runs at a time, because the tests measure, and share the machine's cores.
static ALONE: Mutex<()> = Mutex::new(());

impl Pair {
    fn new(name: &str) -> Pair {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let prefix = format!("p{}-{name}", std::process::id());
        let state = StateDirectory::at(std::env::temp_dir().join(format!("weir-{prefix}")));
        let mut topology = Topology::builder();
        topology.host("h1").unwrap().host("h2").unwrap().link("h1", "h2", None).unwrap();
        let options = Options {
            name: Some(prefix),
            state,
            static_arp: true,
            ephemeral: true,
            ..Options::default()
        };
        let pair = Pair {
            lab: LabGuard::new(Lab::up(&topology.build().unwrap(), &options).unwrap()),
            _alone: alone,
        };
        ["h1", "h2"].iter().for_each(|host| assert!(pair.interface(host).is_running, "{host}"));
        pair
    }

    /// The interface of a host, after it runs. The kernel notices a new carrier with a delay, and until then drops
    /// frames and counts them as sent.
    fn interface(&self, host: &str) -> Interface {
        let find = || self.at(host, || Interface::find("eth0")).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut found = find();
        while !found.is_running && Instant::now() < deadline {
            found = find();
        }
        found
    }

    /// The number of frames that have arrived at the interface of a host.
    fn arrived(&self, host: &str) -> u64 {
        let words = ["cat", "/sys/class/net/eth0/statistics/rx_packets"];
        let output = self.lab.exec(host, &words).unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
    }

    fn at<T: Send>(&self, host: &str, work: impl FnOnce() -> T + Send) -> T {
        in_namespace(&self.lab.namespace(host).unwrap(), work).unwrap()
    }

    fn capture(&self, options: &CaptureOptions) -> Capture {
        self.at("h2", || Capture::open("eth0", options)).unwrap()
    }

    fn transmitter(&self) -> Transmitter {
        self.at("h1", || Transmitter::open("eth0", &TransmitOptions::default())).unwrap()
    }

    fn run(&self, host: &str, words: &[&str]) {
        let output = self.lab.exec(host, words).unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

fn headers(vlan: Option<VlanTag>) -> Headers {
    Headers {
        source_mac: [0, 0, 0, 0, 0, 1],
        destination_mac: [0, 0, 0, 0, 0, 2],
        vlan,
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
        tos: 0x28,
        ttl: 64,
        source_port: 5000,
        destination_port: 5001,
    }
}

fn send(
    transmitter: &mut Transmitter,
    template: &mut ProbeTemplate,
    rate: f64,
    count: u32,
) -> packet::GenerateReport {
    let options = GenerateOptions { rate, count, first: 0, tolerance: Duration::ZERO };
    generate(transmitter, template, &options, &AtomicBool::new(false)).unwrap()
}

/// This time is longer than any pause of a sender or of the kernel on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// After this time a ring has delivered all frames that arrived before.
const A_WHILE: Duration = Duration::from_millis(500);

/// Reads until `count` probes are read, or until no block arrives for `patience`.
fn observe(capture: &mut Capture, count: usize, patience: Duration) -> Vec<Observation> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let Some(block) = capture.next_block(patience).unwrap() else { break };
        seen.extend(block.frames().filter_map(|frame| Observation::of(&frame, TAG)));
    }
    seen
}

#[test]
fn root_every_probe_arrives_once_in_order_and_stamped() {
    if lab::testing::skip("root_every_probe_arrives_once_in_order_and_stamped", NEEDS) {
        return;
    }
    let pair = Pair::new("count");
    for vlan in [None, Some(VlanTag { id: 7, priority: 5 })] {
        let mut capture = pair.capture(&CaptureOptions {
            filter: Some(Filter::probes(TAG)),
            // A block is also used up after this time, so the reader may pause for 512 times as long.
            block_timeout: Duration::from_millis(20),
            ..CaptureOptions::default()
        });
        let mut transmitter = pair.transmitter();
        let mut template = ProbeTemplate::new(&headers(vlan), TAG, 100).unwrap();
        let (report, seen) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| observe(&mut capture, 20_000, PATIENCE));
            (send(&mut transmitter, &mut template, 50_000.0, 20_000), reader.join().unwrap())
        });
        let statistics = capture.statistics().unwrap();
        assert_eq!((report.sent, seen.len()), (20_000, 20_000), "{report:?} {statistics:?}");
        assert_eq!((statistics.packets, statistics.drops), (20_000, 0));
        for (number, probe) in seen.iter().enumerate() {
            assert_eq!(usize::try_from(probe.sequence).unwrap(), number);
            assert_eq!(probe.headers, headers(vlan));
            assert!(probe.ip_checksum_is_right && probe.udp_checksum_is_right);
            // Both stamps are of one clock. The host of a virtual machine sets this clock back; steps of up to 0.15 ms
            // were seen.
            let plausible = -1_000_000..1_000_000_000;
            assert!(plausible.contains(&probe.latency()), "{} ns", probe.latency());
        }
        assert!(seen.is_sorted_by_key(|probe| probe.arrived));
        let median = {
            let mut all: Vec<_> = seen.iter().map(Observation::latency).collect();
            all.sort_unstable();
            all[all.len() / 2]
        };
        println!(
            "veth, 50,000/s, vlan {vlan:?}: median {median} ns from stamp to arrival; {report:?}"
        );
    }
}

#[test]
fn root_other_traffic_does_not_reach_a_filtered_capture() {
    if lab::testing::skip("root_other_traffic_does_not_reach_a_filtered_capture", NEEDS) {
        return;
    }
    let pair = Pair::new("filter");
    let mut ours = pair.capture(&CaptureOptions {
        filter: Some(Filter::probes(TAG)),
        ..CaptureOptions::default()
    });
    let mut all = pair.capture(&CaptureOptions::default());
    let mut transmitter = pair.transmitter();
    for (tag, vlan) in [
        (TAG + 1, None),
        (TAG, None),
        (TAG + 1, Some(VlanTag { id: 1, priority: 0 })),
        (TAG, Some(VlanTag { id: 2, priority: 0 })),
    ] {
        let mut template = ProbeTemplate::new(&headers(vlan), tag, 64).unwrap();
        send(&mut transmitter, &mut template, 10_000.0, 100);
    }
    transmitter.send_one(&[0xff; 60]).unwrap();
    assert_eq!(observe(&mut ours, 200, PATIENCE).len(), 200);
    assert!(ours.next_block(Duration::from_millis(20)).unwrap().is_none());
    assert_eq!(ours.statistics().unwrap().packets, 200);
    let mut frames = 0;
    while let Some(block) = all.next_block(Duration::from_millis(100)).unwrap() {
        frames += block.frames().count();
    }
    assert_eq!(frames, 401);
}

#[test]
fn root_a_full_capture_ring_counts_dropped_frames() {
    if lab::testing::skip("root_a_full_capture_ring_counts_dropped_frames", NEEDS) {
        return;
    }
    let pair = Pair::new("full");
    let small = CaptureOptions { block_size: 4096, blocks: 2, ..CaptureOptions::default() };
    let mut capture = pair.capture(&small);
    let mut template = ProbeTemplate::new(&headers(None), TAG, 100).unwrap();
    send(&mut pair.transmitter(), &mut template, 100_000.0, 1_000);
    let seen = observe(&mut capture, 1_000, A_WHILE).len();
    let statistics = capture.statistics().unwrap();
    assert_eq!(statistics.packets, 1_000);
    assert!(statistics.drops > 0 && statistics.freezes > 0, "{statistics:?}");
    assert_eq!(u64::try_from(seen).unwrap() + statistics.drops, 1_000);
    // Counters add up over calls, and a ring that was full continues. On a machine that is slow between ten frames, the
    // two blocks may be delivered before the last frame.
    send(&mut pair.transmitter(), &mut template, 1e6, 10);
    let later = observe(&mut capture, 10, A_WHILE).len();
    let statistics = capture.statistics().unwrap();
    assert!(later > 0 && statistics.packets == 1_010, "{later} {statistics:?}");
    assert_eq!(u64::try_from(seen + later).unwrap() + statistics.drops, 1_010);
}

#[test]
fn root_a_tap_receives_whole_frames_and_counts_dropped_frames() {
    if lab::testing::skip("root_a_tap_receives_whole_frames", NEEDS) {
        return;
    }
    let pair = Pair::new("tap");
    let tap = |below, memory| {
        let sample = RandomSample { below, keep: u32::MAX, except_port: None, source: None };
        let open = || Tap::open("eth0", &Filter::random(&sample), memory);
        pair.at("h2", open).unwrap()
    };
    let (mut all, mut none, mut small) = (tap(1 << 32, 4 << 20), tap(0, 4 << 20), tap(1 << 32, 1));
    let mut template = ProbeTemplate::new(&headers(None), TAG, 1000).unwrap();
    // A frame that is lost on the way reaches no tap. The kernel's count of frames at the interface is the reference.
    let mut transmitter = pair.transmitter();
    let (before, deadline) = (pair.arrived("h2"), Instant::now() + PATIENCE);
    let mut arrived = 0;
    while arrived < 500 && Instant::now() < deadline {
        send(&mut transmitter, &mut template, 100_000.0, 500);
        arrived = pair.arrived("h2") - before;
    }
    assert!(arrived >= 500, "{arrived} frames arrived");
    // A tap does not wait for frames, and the kernel delivers frames to taps with a delay. So the test waits for at
    // least `least` frames.
    let count = |tap: &mut Tap, least: u64| {
        let deadline = Instant::now() + PATIENCE;
        let (mut buffer, mut lengths) = ([0; 2048], Vec::new());
        loop {
            match tap.receive(&mut buffer).unwrap() {
                Some(frame) => lengths.push(frame.len()),
                None if lengths.len() as u64 >= least || Instant::now() >= deadline => break,
                None => std::thread::yield_now(),
            }
        }
        assert!(lengths.iter().all(|length| *length == 1000), "{lengths:?}");
        (lengths.len() as u64, tap.drops().unwrap())
    };
    // When the tap `all` has all frames, the kernel has offered all frames to the other taps.
    assert_eq!((count(&mut all, arrived), count(&mut none, 0)), ((arrived, 0), (0, 0)));
    let (received, dropped) = count(&mut small, 0);
    assert!(
        received < arrived && received + dropped == arrived,
        "{received} and {dropped} of {arrived}"
    );
    let mut buffer = [0; 14];
    send(&mut transmitter, &mut template, 100_000.0, 1);
    let deadline = Instant::now() + PATIENCE;
    let mut length = None;
    while length.is_none() && Instant::now() < deadline {
        length = all.receive(&mut buffer).unwrap().map(<[u8]>::len);
    }
    assert_eq!(length, Some(14));
}

/// The kernel removes the outermost tag of a frame. The capture adds the tag again.
#[test]
fn root_captured_frames_contain_vlan_tags_as_on_the_wire() {
    if lab::testing::skip("root_captured_frames_contain_vlan_tags_as_on_the_wire", NEEDS) {
        return;
    }
    let pair = Pair::new("tags");
    let mut ring = pair.capture(&CaptureOptions::default());
    let everything = RandomSample { below: 1 << 32, keep: 64, except_port: None, source: None };
    let filter = Filter::random(&everything);
    let mut cut =
        pair.capture(&CaptureOptions { filter: Some(filter.clone()), ..CaptureOptions::default() });
    let mut tap = pair.at("h2", || Tap::open("eth0", &filter, 4 << 20)).unwrap();
    let plain = ProbeTemplate::new(&headers(None), TAG, 90)
        .unwrap()
        .stamp(1, packet::Timestamp(1))
        .to_vec();
    let tagged = |tags: &[u8]| [&plain[..12], tags, &plain[12..]].concat();
    let sent = [
        plain.clone(),
        tagged(&[0x81, 0, 0xb0, 42]), // with the drop eligible bit
        tagged(&[0x88, 0xa8, 0x60, 7, 0x81, 0, 0, 9]),
        tagged(&[0x81, 0, 0, 0]),
    ];
    let mut transmitter = pair.transmitter();
    sent.iter().for_each(|frame| transmitter.send_one(frame).unwrap());
    let read = |capture: &mut Capture| {
        let mut seen: Vec<(Vec<u8>, usize)> = Vec::new();
        while seen.len() < sent.len() {
            let block = capture.next_block(Duration::from_secs(5)).unwrap().unwrap();
            // The frames are the same when the block is read again.
            let mut twice = [(); 2].map(|()| {
                block.frames().map(|frame| (frame.data.to_vec(), frame.length)).collect::<Vec<_>>()
            });
            assert_eq!(twice[0], twice[1]);
            seen.append(&mut twice[0]);
        }
        seen
    };
    let whole: Vec<_> = sent.iter().map(|frame| (frame.clone(), frame.len())).collect();
    assert_eq!(read(&mut ring), whole);
    let limit = |index: usize| if index == 0 { 64 } else { 68 };
    let first = |(index, frame): (usize, &Vec<u8>)| frame[..limit(index)].to_vec();
    let beginnings: Vec<Vec<u8>> = sent.iter().enumerate().map(first).collect();
    let cut = read(&mut cut);
    assert!(cut.iter().zip(&sent).all(|(seen, sent)| seen.1 == sent.len()));
    assert_eq!(cut.into_iter().map(|seen| seen.0).collect::<Vec<_>>(), beginnings);
    // A buffer that is too short cuts a frame, wherever that is.
    for (expected, room) in beginnings.iter().zip([2048, 2048, 66, 13]) {
        let mut buffer = vec![0; room];
        let frame = tap.receive(&mut buffer).unwrap().unwrap();
        assert_eq!(frame, &expected[..expected.len().min(room)]);
    }
}

#[test]
fn root_missing_down_or_removed_interfaces_are_errors() {
    if lab::testing::skip("root_missing_down_or_removed_interfaces_are_errors", NEEDS) {
        return;
    }
    let pair = Pair::new("errors");
    assert!(matches!(in_namespace("weir-none", || ()), Err(Error::NoSuchNamespace(_))));
    let found = pair.interface("h1");
    assert_eq!(
        (found.mac, found.mtu, found.is_up, found.is_running),
        ([0, 0, 0, 0, 0, 1], 1500, true, true)
    );
    for name in ["eth7", "", "a-name-longer-than-any-interface-may-have"] {
        assert!(
            matches!(
                pair.at("h1", || Capture::open(name, &CaptureOptions::default())),
                Err(Error::NoSuchInterface(_))
            ),
            "{name}"
        );
        assert!(
            matches!(
                pair.at("h1", || Transmitter::open(name, &TransmitOptions::default())),
                Err(Error::NoSuchInterface(_))
            ),
            "{name}"
        );
    }
    let (mut capture, mut transmitter) =
        (pair.capture(&CaptureOptions::default()), pair.transmitter());
    let mut longest = ProbeTemplate::new(&headers(None), TAG, 1515).unwrap();
    assert!(matches!(
        transmitter.send_one(longest.stamp(0, packet::Timestamp(0))),
        Err(Error::Invalid(_))
    ));
    assert!(matches!(transmitter.send_one(&[0; 1519]), Err(Error::Invalid(_))));

    pair.run("h1", &["ip", "link", "set", "eth0", "down"]);
    pair.run("h2", &["ip", "link", "set", "eth0", "down"]);
    assert!(matches!(pair.at("h1", || Interface::usable("eth0")), Err(Error::InterfaceDown(_))));
    assert!(matches!(transmitter.send_one(&[0xff; 60]), Err(Error::InterfaceDown(_))));
    let start = Instant::now();
    let outcome = capture.next_block(2 * PATIENCE).map(|block| block.is_some());
    assert!(matches!(outcome, Err(Error::InterfaceDown(_))), "{outcome:?}");
    assert!(start.elapsed() < PATIENCE, "a capture does not wait when it cannot go on");
    let invalid = CaptureOptions { block_size: 1000, ..CaptureOptions::default() };
    pair.run("h1", &["ip", "link", "set", "eth0", "up"]);
    assert!(matches!(pair.at("h1", || Capture::open("eth0", &invalid)), Err(Error::Invalid(_))));

    // The namespace of the caller may have another interface with this name, or none.
    pair.run("h2", &["ip", "link", "set", "eth0", "up"]);
    let mut capture = pair.capture(&CaptureOptions::default());
    pair.run("h2", &["ip", "link", "delete", "eth0"]);
    for namespace in ["h1", "h2"] {
        pair.run(namespace, &["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth1"]);
    }
    let outcome =
        pair.at("h1", || capture.next_block(Duration::from_secs(5)).map(|block| block.is_some()));
    assert!(matches!(outcome, Err(Error::InterfaceGone(_))), "{outcome:?}");
}

#[test]
fn root_captures_are_readable_by_tcpdump() {
    let test = "root_captures_are_readable_by_tcpdump";
    if lab::testing::skip(test, NEEDS)
        || lab::testing::skip_without(test, &[("tcpdump", "tcpdump")])
    {
        return;
    }
    let pair = Pair::new("pcapng");
    let mut capture = pair.capture(&CaptureOptions {
        filter: Some(Filter::probes(TAG)),
        ..CaptureOptions::default()
    });
    let mut template =
        ProbeTemplate::new(&headers(Some(VlanTag { id: 42, priority: 3 })), TAG, 101).unwrap();
    send(&mut pair.transmitter(), &mut template, 1_000.0, 3);
    let path = std::env::temp_dir().join(format!("weir-{}.pcapng", std::process::id()));
    let mut writer = PcapngWriter::new(std::fs::File::create(&path).unwrap()).unwrap();
    let eth0 = writer.add_interface("eth0").unwrap();
    let mut stamps = Vec::new();
    while stamps.len() < 3 {
        let block = capture.next_block(Duration::from_secs(5)).unwrap().unwrap();
        for frame in block.frames() {
            writer.write(eth0, &frame).unwrap();
            stamps.push(frame.timestamp.0);
        }
    }
    writer.finish().unwrap();
    let output = Command::new("tcpdump")
        .args(["-r", path.to_str().unwrap(), "-nn", "-e", "-vv", "-tt", "--nano"])
        .output()
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for expected in [
        "length 101: vlan 42, p 3, ethertype IPv4",
        "tos 0x28",
        "[udp sum ok]",
        "10.0.0.1.5000 > 10.0.0.2.5001",
    ] {
        assert_eq!(text.matches(expected).count(), 3, "{expected}: {text}");
    }
    for stamp in stamps {
        let expected = format!("{}.{:09}", stamp / 1_000_000_000, stamp % 1_000_000_000);
        assert!(text.contains(&expected), "{expected}: {text}");
    }
}

/// The time that the calling thread has run on a CPU. This includes the kernel's work during that time, on veth also
/// the work for the receiver.
fn running_time() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(statistics.split(' ').next().unwrap().parse().unwrap())
}

/// `cargo test --release -p weir-packet measure -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn measure_the_highest_rate() {
    let pair = Pair::new("rate");
    // A frame for the receiving host also costs the time of its protocol stack, in the time of the sender.
    let nobody = Headers { destination_mac: [2, 0, 0, 0, 0, 9], ..headers(None) };
    let cases = [
        ("nobody captures, to nobody", nobody, 60, false),
        ("captured, to nobody", nobody, 60, true),
        ("captured, to nobody", nobody, 1500, true),
        ("captured, to the host", headers(None), 60, true),
    ];
    for (what, headers, length, is_captured) in cases {
        let filter = if is_captured { Filter::probes(TAG) } else { Filter::nothing() };
        let mut capture =
            pair.capture(&CaptureOptions { filter: Some(filter), ..CaptureOptions::default() });
        let mut transmitter = pair.transmitter();
        let mut template = ProbeTemplate::new(&headers, TAG, length).unwrap();
        let count = 500_000;
        let reader = std::thread::spawn(move || {
            let expected = if is_captured { usize::try_from(count).unwrap() } else { 0 };
            (observe(&mut capture, expected, A_WHILE).len(), capture.statistics().unwrap())
        });
        let before = running_time();
        let report = send(&mut transmitter, &mut template, 1e9, count);
        let ran = (running_time() - before).as_secs_f64();
        let (seen, statistics) = reader.join().unwrap();
        println!(
            "{what}, {length} bytes: {:.0}/s, {:.0} per CPU second, {:.1} per call, {seen} seen, {} refusals, {} drops",
            report.rate(),
            f64::from(report.sent) / ran,
            f64::from(report.sent) / report.batches as f64,
            report.refusals,
            statistics.drops,
        );
    }
}
