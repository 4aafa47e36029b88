//! Tests of sampling and mirroring on real interfaces and with a real Open vSwitch. The tests need root, and are
//! skipped by name without root.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests, too.

use agent::mirror::{Destination, script};
use agent::ovsdb::{Database, LARGEST_HEADER, OvsSampling};
use agent::{Collector, Exporter, Limits, Sampler, SamplerOptions};
use lab::{Lab, LabGuard, Options, Requirements, StateDirectory, Topology};
use packet::{
    Capture, CaptureOptions, Filter, GenerateOptions, Headers, Observation, ProbeTemplate,
    TransmitOptions, Transmitter, generate, in_namespace,
};
use sampling::{Costs, Entry, Problem, Server, Solver, solve};
use std::collections::HashMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const TAG: u64 = 0x5e41_0d00_0000_0007;
const PROBES: u32 = 100_000;
/// Hosts alone need neither Open vSwitch nor rates.
const HOSTS: Requirements = Requirements { switches: false, rates: false };
const SWITCH: Requirements = Requirements { switches: true, rates: false };

/// A lab for one test.
struct Network {
    lab: LabGuard,
    _alone: MutexGuard<'static, ()>,
}

/// Only one test runs at a time: the tests share the machine's cores, and a sampler must not starve.
static ALONE: Mutex<()> = Mutex::new(());

impl Network {
    fn new(name: &str, topology: &Topology) -> Network {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let prefix = format!("a{}-{name}", std::process::id());
        let state = StateDirectory::at(std::env::temp_dir().join(format!("weir-{prefix}")));
        let options = Options {
            name: Some(prefix),
            state,
            static_arp: true,
            ephemeral: true,
            ..Options::default()
        };
        Network { lab: LabGuard::new(Lab::up(topology, &options).unwrap()), _alone: alone }
    }

    fn pair(name: &str) -> Network {
        let mut topology = Topology::builder();
        topology.host("h1").unwrap().host("h2").unwrap().link("h1", "h2", None).unwrap();
        Network::new(name, &topology.build().unwrap())
    }

    fn at<T: Send>(&self, node: &str, work: impl FnOnce() -> T + Send) -> T {
        in_namespace(&self.lab.namespace(node).unwrap(), work).unwrap()
    }

    fn run(&self, node: &str, line: &str) -> String {
        let output = self.lab.exec(node, &["sh", "-c", line]).unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn tc(&self, node: &str, script: &str) {
        self.run(node, &format!("tc -batch - <<'END'\n{script}END"));
    }

    /// Sends `count` probes from h1 to h2, slowly enough that no ring overflows.
    fn send(&self, count: u32) {
        self.send_from("h1", "eth0", 0..count, 50_000.0);
    }

    fn send_from(&self, host: &str, interface: &str, numbers: Range<u32>, rate: f64) {
        let headers = Headers {
            source_mac: [0, 0, 0, 0, 0, 1],
            destination_mac: [0, 0, 0, 0, 0, 2],
            vlan: None,
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
            tos: 0,
            ttl: 64,
            source_port: 5000,
            destination_port: 5001,
        };
        let mut transmitter =
            self.at(host, || Transmitter::open(interface, &TransmitOptions::default())).unwrap();
        let mut probes = ProbeTemplate::new(&headers, TAG, 64).unwrap();
        let options = GenerateOptions {
            rate,
            count: numbers.end - numbers.start,
            first: numbers.start,
            tolerance: Duration::ZERO,
        };
        generate(&mut transmitter, &mut probes, &options, &AtomicBool::new(false)).unwrap();
    }
}

/// The largest allowed difference between a count of sampled frames and its mean: six standard deviations.
fn slack(count: u32, rate: f64) -> f64 {
    6.0 * (f64::from(count) * rate * (1.0 - rate)).sqrt()
}

/// This time is longer than the timeout of a block: after a silence of this length no more frames arrive.
const SILENCE: Duration = Duration::from_secs(1);

/// The sequence numbers of all probes that arrive before a silence of the given length.
fn sequences(capture: &mut Capture, silence: Duration) -> Vec<u32> {
    let mut found = Vec::new();
    while let Some(block) = capture.next_block(silence).unwrap() {
        for frame in block.frames() {
            found.extend(
                Observation::parse(frame.data, TAG, frame.timestamp).map(|one| one.sequence),
            );
        }
    }
    found
}

#[test]
fn root_the_sampler_takes_the_configured_share_of_packets() {
    if lab::testing::skip("root_the_sampler_takes_the_configured_share_of_packets", HOSTS) {
        return;
    }
    let network = Network::pair("share");
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    let origin = agent::sflow::Origin { agent: [10, 0, 0, 2].into(), sub_agent: 0, interface: 1 };
    for rate in [0.25, 0.03, 1.0, 0.0] {
        // The test reads nothing while it sends probes. The longer the sending takes, the more blocks are closed by
        // their timeout, so the ring has to be large.
        let options = SamplerOptions { rate, memory: 64 << 20, ..SamplerOptions::default() };
        let mut sampler = network.at("h2", || Sampler::open("eth0", &options)).unwrap();
        let before = sampler.taken().unwrap();
        network.send(PROBES);
        let mut exporter =
            Exporter::new(collector.local_addr().unwrap(), origin, 1.0 / f64::max(rate, 1e-9))
                .unwrap();
        let mut count = 0_u64;
        while sampler
            .read(Duration::from_millis(300), |header, length| {
                assert!(header.len() <= 128 && length >= header.len());
                exporter.add(header, length);
                count += 1;
            })
            .unwrap()
            > 0
        {}
        let after = sampler.taken().unwrap();
        assert_eq!(after.dropped, before.dropped, "the ring is too small for this machine");
        assert_eq!(after.chosen - before.chosen, count);
        let expected = f64::from(PROBES) * rate;
        assert!((count as f64 - expected).abs() <= slack(PROBES, rate) + 5.0, "{rate}: {count}");
    }
}

/// An sFlow sample shows the frame as the frame was on the wire, although the kernel removes the VLAN tag.
#[test]
fn root_a_sample_contains_the_vlan_tag_of_the_frame() {
    if lab::testing::skip("root_a_sample_contains_the_vlan_tag_of_the_frame", HOSTS) {
        return;
    }
    let network = Network::pair("tag");
    let options = SamplerOptions { header: 60, ..SamplerOptions::default() };
    let mut sampler = network.at("h2", || Sampler::open("eth0", &options)).unwrap();
    let mut frame = vec![2; 12];
    frame.extend([0x81, 0, 0x60, 42, 8, 0, 0x45, 0, 0, 72, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 1, 0, 1, 10, 1, 0, 2, 0x13, 0x88, 0, 53]);
    frame.resize(90, 7);
    let open = || Transmitter::open("eth0", &TransmitOptions::default());
    network.at("h1", open).unwrap().send_one(&frame).unwrap();
    let origin = agent::sflow::Origin { agent: [10, 0, 0, 2].into(), sub_agent: 0, interface: 1 };
    let mut builder = agent::sflow::DatagramBuilder::new(origin, 1.0);
    let deadline = Instant::now() + Duration::from_secs(5);
    let is_ours = |header: &[u8]| header.starts_with(&[2; 12]);
    let mut has_come = false;
    while !has_come && Instant::now() < deadline {
        let take = |header: &[u8], length| {
            if is_ours(header) {
                has_come = true;
                builder.add(header, length);
            }
        };
        sampler.read(Duration::from_millis(300), take).unwrap();
    }
    let bytes = builder.finish(1).expect("a sample");
    let sample = agent::sflow::Datagram::parse(bytes).unwrap().flow_samples().next();
    let sample = sample.unwrap().unwrap();
    // sFlow counts the frame check sequence in the length.
    assert_eq!((sample.length, sample.header), (94, &frame[..60]));
    assert_eq!(sample.flow.unwrap().to_string(), "udp 10.1.0.1:5000 > 10.1.0.2:53");
}

#[test]
fn root_each_frame_is_mirrored_to_exactly_one_destination() {
    if lab::testing::skip("root_each_frame_is_mirrored_to_exactly_one_destination", HOSTS) {
        return;
    }
    let network = Network::pair("once");
    let shares = [0.3, 0.5, 0.2];
    let mut places = Vec::new();
    for index in 0..shares.len() {
        network.run("h2", &format!("ip link add to{index} type veth peer name at{index}"));
        network.run("h2", &format!("ip link set to{index} up; ip link set at{index} up"));
        // The test reads nothing while it sends probes. With the long timeout a block is full before it is closed.
        let options = CaptureOptions {
            filter: Some(Filter::probes(TAG)),
            block_timeout: Duration::from_millis(500),
            ..CaptureOptions::default()
        };
        places.push(network.at("h2", || Capture::open(&format!("at{index}"), &options)).unwrap());
    }
    let destination = |(index, share): (usize, &f64)| Destination {
        share: *share,
        tenant: None,
        interface: format!("to{index}"),
    };
    let destinations: Vec<_> = shares.iter().enumerate().map(destination).collect();
    network.tc("h2", &script("eth0", &destinations, &[]).unwrap());
    network.send(PROBES);
    let mut seen: HashMap<u32, usize> = HashMap::new();
    // All captures fill at the same time, so one wait is enough for all.
    std::thread::sleep(2 * SILENCE);
    for (capture, share) in places.iter_mut().zip(shares) {
        let found = sequences(capture, Duration::ZERO);
        assert_eq!(
            capture.statistics().unwrap().drops,
            0,
            "the ring is too small for this machine"
        );
        let expected = f64::from(PROBES) * share;
        assert!((found.len() as f64 - expected).abs() <= slack(PROBES, share), "{}", found.len());
        found.into_iter().for_each(|sequence| *seen.entry(sequence).or_default() += 1);
    }
    let twice = seen.values().filter(|times| **times > 1).count();
    assert_eq!(twice, 0, "of {PROBES} frames");
    // The sum of the shares is one, so each frame has a destination.
    assert_eq!(seen.len(), PROBES as usize);
    network.tc("h2", &agent::mirror::clear("eth0").unwrap());
    network.send(10);
    assert_eq!(sequences(&mut places[0], SILENCE).len(), 0);
}

/// Two servers mirror all frames to each other over the same interfaces that they sample.
#[test]
fn root_mirrored_frames_are_not_mirrored_again() {
    if lab::testing::skip("root_mirrored_frames_are_not_mirrored_again", HOSTS) {
        return;
    }
    const SENT: u32 = 1000;
    let network = Network::pair("loop");
    for (host, own, other) in [("h1", 1, 2), ("h2", 2, 1)] {
        network.run(
            host,
            &format!(
                "ip link add vxlan0 type vxlan id 7 local 10.0.0.{own} remote 10.0.0.{other} dstport {} dev eth0 && ip link set vxlan0 up",
                agent::mirror::VXLAN_PORT
            ),
        );
        let all = Destination { share: 1.0, tenant: None, interface: "vxlan0".to_owned() };
        network.tc(host, &script("eth0", &[all], &["eth0"]).unwrap());
    }
    let options = CaptureOptions { filter: Some(Filter::probes(TAG)), ..CaptureOptions::default() };
    let mut capture = network.at("h1", || Capture::open("vxlan0", &options)).unwrap();
    network.send(SENT);
    let found = sequences(&mut capture, SILENCE);
    assert_eq!(found.len(), SENT as usize, "each is mirrored back, and only once");
    let counter = |host: &str| -> u32 {
        let text = network.run(host, "cat /sys/class/net/vxlan0/statistics/tx_packets");
        text.trim().parse().unwrap()
    };
    assert!((SENT..SENT + 50).contains(&counter("h2")), "{}", counter("h2"));
    // h1 mirrors at most the unreachable messages of h2, and not the frames that h2 mirrored to h1.
    assert!(counter("h1") < 50, "{}", counter("h1"));
}

/// The test solves a plan for a traffic matrix. Three servers, each with the interface of a virtual machine, sample,
/// mirror and process frames according to the plan. The test compares the numbers of sampled frames with the plan.
#[test]
fn ovs_an_enacted_plan_samples_at_the_planned_rates() {
    if lab::testing::skip("ovs_an_enacted_plan_samples_at_the_planned_rates", SWITCH) {
        return;
    }
    const SERVERS: usize = 3;
    const SENT: u32 = 34_000;
    let network = Network::new("plan", &Topology::builtin("single,3").unwrap());
    let server =
        |(index, capacity)| Server::new(format!("h{}", index + 1), capacity, Costs::PUBLISHED);
    let servers = [11_000.0, 40_000.0, 19_000.0].into_iter().enumerate().map(server).collect();
    let entry = |from| Entry { from, to: from, tenant: None, volume: 10_000.0 };
    let traffic: Vec<Entry> = (0..SERVERS).map(entry).collect();
    let problem = Problem::new(servers, Vec::new(), &traffic, Vec::new()).unwrap();
    let plan = solve(&problem, Solver::best_for(&problem)).unwrap();
    assert!(
        plan.flows.iter().filter(|flow| flow.origin != flow.processor).count() >= 2,
        "{plan:?}"
    );

    let options = CaptureOptions {
        filter: Some(Filter::probes(TAG)),
        block_timeout: Duration::from_millis(500),
        ..CaptureOptions::default()
    };
    let mut captures = Vec::new();
    for own in 0..SERVERS {
        let host = format!("h{}", own + 1);
        for (name, other) in [("vm", "guest"), ("here", "sampler")] {
            network.run(&host, &format!("ip link add {name} type veth peer name {other}; ip link set {name} up; ip link set {other} up"));
        }
        captures.push((
            own,
            own,
            network.at(&host, || Capture::open("sampler", &options)).unwrap(),
        ));
        for other in (0..SERVERS).filter(|other| *other != own) {
            let id = 100 + own.min(other) * SERVERS + own.max(other);
            network.run(&host, &format!(
                "ip link add to{other} type vxlan id {id} remote 10.0.0.{} dstport 4789 dev eth0; ip link set to{other} up",
                other + 1
            ));
            let capture =
                network.at(&host, || Capture::open(&format!("to{other}"), &options)).unwrap();
            captures.push((other, own, capture));
        }
        let way =
            |processor| if processor == own { "here".to_owned() } else { format!("to{processor}") };
        let flows = plan.flows.iter().filter(|flow| flow.origin == own);
        let destination = |flow: &sampling::Flow| Destination {
            share: flow.rate,
            tenant: None,
            interface: way(flow.processor),
        };
        let destinations: Vec<_> = flows.map(destination).collect();
        network.tc(&host, &script("vm", &destinations, &["vm"]).unwrap());
    }
    for own in 0..SERVERS as u32 {
        network.send_from(
            &format!("h{}", own + 1),
            "guest",
            own * SENT..(own + 1) * SENT,
            10_000.0,
        );
    }

    let mut seen: HashMap<u32, usize> = HashMap::new();
    let mut sampled = 0;
    // All captures fill at the same time, so one wait is enough for all.
    std::thread::sleep(2 * SILENCE);
    for (origin, processor, capture) in &mut captures {
        let found = sequences(capture, Duration::ZERO);
        assert_eq!(capture.statistics().unwrap().drops, 0);
        let flow =
            plan.flows.iter().find(|flow| (flow.origin, flow.processor) == (*origin, *processor));
        let expected = f64::from(SENT) * flow.map_or(0.0, |flow| flow.rate);
        let count = found.len() as f64;
        assert!(
            (count - expected).abs() <= expected * 0.03 + 5.0,
            "{origin} at {processor}: {count}, not {expected}"
        );
        sampled += found.len();
        found.into_iter().for_each(|sequence| *seen.entry(sequence).or_default() += 1);
    }
    let planned = plan.sampled() / problem.total() * f64::from(SENT) * SERVERS as f64;
    assert!((sampled as f64 - planned).abs() <= planned * 0.03, "{sampled}, not {planned}");
    assert_eq!(seen.values().filter(|times| **times > 1).count(), 0, "of {} frames", SENT * 3);
}

#[test]
fn ovs_a_bridge_samples_when_sflow_is_set_in_the_database() {
    if lab::testing::skip("ovs_a_bridge_samples_when_sflow_is_set_in_the_database", SWITCH) {
        return;
    }
    let network = Network::new("sflow", &Topology::builtin("single,2").unwrap());
    let switches = network.lab.open_vswitch().unwrap();
    let here = network.lab.controller_address().unwrap();
    let socket = UdpSocket::bind((here, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut database = Database::connect(&switches.folder().join("db.sock")).unwrap();
    let sampling = OvsSampling { collector: socket.local_addr().unwrap(), one_in: 1, header: 128 };
    database.set_sampling("s1", &sampling).unwrap();

    let mut collector = Collector::new(Vec::new(), Limits::default());
    let deadline = Instant::now() + Duration::from_secs(60);
    while collector.total().samples < 20 && Instant::now() < deadline {
        network.run("h1", "ping -c 5 -i 0.002 -q 10.0.0.2");
        let mut buffer = [0; 2048];
        while let Ok(count) = socket.recv(&mut buffer) {
            collector.add(&buffer[..count]).unwrap();
        }
    }
    assert!(collector.total().samples >= 20);
    assert!(collector.flows(1)[0].name.contains("ip 1 10.0.0."), "{:?}", collector.flows(1));

    // A header of the largest allowed size is accepted; a larger header is refused.
    let large = OvsSampling { header: LARGEST_HEADER, ..sampling };
    database.set_sampling("s1", &large).unwrap();
    let mut samples = 0;
    while samples < 20 && Instant::now() < deadline {
        network.run("h1", "ping -c 5 -i 0.002 -s 1400 -q 10.0.0.2");
        let mut buffer = [0; 2048];
        while let Ok(count) = socket.recv(&mut buffer) {
            // A sample with a large header has its own datagram.
            samples += u32::from(count > 500);
        }
    }
    assert!(samples >= 20, "{samples}");
    let larger = OvsSampling { header: LARGEST_HEADER + 1, ..sampling };
    let error = database.set_sampling("s1", &larger).unwrap_err().to_string();
    assert!(error.contains("at most 512 bytes"), "{error}");

    let error = database.set_sampling("s9", &sampling).unwrap_err().to_string();
    assert!(error.contains("no bridge \"s9\""), "{error}");
    database.clear_sampling("s1").unwrap();
    let rows = switches.vsctl(["--bare", "--columns=_uuid", "list", "sFlow"]).unwrap();
    assert_eq!(rows.trim(), "", "nothing is left behind");
}
