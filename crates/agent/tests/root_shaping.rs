//! Tests of shapers on real interfaces, in comparison with the same shapers made by `tc`. The tests need root, and are
//! skipped by name without root.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests, too.

use agent::shaper::{Shape, Shaper, check_kernel};
use fabric::{Bandwidth, MacAddress};
use lab::{Lab, LabGuard, Options, Requirements, StateDirectory, Topology};
use packet::in_namespace;

/// Hosts with rated links need no Open vSwitch.
const RATED: Requirements = Requirements { switches: false, rates: true };

struct Network {
    lab: LabGuard,
}

impl Network {
    /// Two hosts on one wire.
    fn pair(name: &str, rate: Option<&str>) -> Network {
        let mut topology = Topology::builder();
        let rate = rate.map(|rate| rate.parse().unwrap());
        topology.host("h1").unwrap().host("h2").unwrap().link("h1", "h2", rate).unwrap();
        let prefix = format!("s{}-{name}", std::process::id());
        let state = StateDirectory::at(std::env::temp_dir().join(format!("weir-{prefix}")));
        let options = Options { name: Some(prefix), state, ephemeral: true, ..Options::default() };
        let lab = LabGuard::new(Lab::up(&topology.build().unwrap(), &options).unwrap());
        Network { lab }
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

    fn queueing(&self, node: &str) -> String {
        self.run(node, "tc qdisc show dev eth0; tc -d class show dev eth0; tc filter show dev eth0")
    }
}

fn shape() -> Shape {
    Shape {
        interface: "eth0".to_owned(),
        bandwidth: Bandwidth::from_megabits_per_second(8),
        destinations: (2..5).map(|last| MacAddress::new([0, 0, 0, 0, 0, last]).unwrap()).collect(),
    }
}

/// `tc` is the oracle: `tc` makes the same shaper, and shows both shapers.
#[test]
fn root_a_shaper_equals_the_same_shaper_made_by_tc() {
    if lab::testing::skip("root_a_shaper_equals_the_same_shaper_made_by_tc", RATED) {
        return;
    }
    check_kernel().unwrap();
    let network = Network::pair("same", None);
    let mut shaper = network.at("h1", || Shaper::install(shape())).unwrap();
    shaper.set_ceiling(1, Bandwidth::from_bits_per_second(2_500_000)).unwrap();
    let class = |minor: &str, rate: &str, ceil: &str, quantum: u32| {
        format!(
            "class add dev eth0 parent 5745:1 classid 5745:{minor} htb rate {rate} ceil {ceil} burst 3200 cburst 3200 quantum {quantum}\n"
        )
    };
    let queue =
        |minor: &str| format!("qdisc add dev eth0 parent 5745:{minor} bfifo limit 302800\n");
    let filter = |last: u8, minor: &str| {
        format!(
            "filter add dev eth0 parent 5745: prio 1 protocol all u32 match ether dst 00:00:00:00:00:0{last} classid 5745:{minor}\n"
        )
    };
    let mut script = String::from(
        "qdisc add dev eth0 root handle 5745: htb default 2\n\
         class add dev eth0 parent 5745: classid 5745:1 htb rate 8mbit ceil 8mbit burst 3200 cburst 3200 quantum 1514\n",
    );
    script += &class("2", "2mbit", "8mbit", 8 * 1514);
    script += &class("10", "2mbit", "8mbit", 8 * 1514);
    script += &class("11", "2mbit", "2500kbit", 2 * 1514);
    script += &class("12", "2mbit", "8mbit", 8 * 1514);
    script.extend(["2", "10", "11", "12"].map(queue));
    script.extend([filter(2, "10"), filter(3, "11"), filter(4, "12")]);
    network.tc("h2", &script);
    let lines = |text: String| {
        // The kernel chooses the numbers of the queues.
        let line = |line: &str| match line.strip_prefix("qdisc bfifo ") {
            Some(queue) => queue.split_once(' ').unwrap().1.to_owned(),
            None => match line.split_once(" leaf ") {
                Some((before, after)) => format!("{before} {}", after.split_once(' ').unwrap().1),
                None => line.to_owned(),
            },
        };
        let mut lines: Vec<String> = text.lines().map(line).collect();
        lines.sort();
        lines
    };
    let (ours, theirs) = (lines(network.queueing("h1")), lines(network.queueing("h2")));
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 21, "{ours:#?}");
    shaper.remove().unwrap();
    assert_eq!(network.queueing("h1").lines().count(), 1);
}

#[test]
fn root_qdiscs_are_unchanged_after_a_shaper_is_refused_or_removed() {
    if lab::testing::skip("root_qdiscs_are_unchanged_after_a_shaper_is_refused_or_removed", RATED) {
        return;
    }
    let network = Network::pair("back", Some("10Mbit"));
    let before = network.queueing("h1");
    let shaper = network.at("h1", || Shaper::install(shape())).unwrap();
    assert!(network.queueing("h1").contains("htb 5745: parent 1:1"), "{}", network.queueing("h1"));
    let again = network.at("h1", || Shaper::install(shape())).err().unwrap().to_string();
    assert_eq!(again, "another weir agent shapes eth0");

    // The agent is killed and does not remove its shaper. The next agent replaces the shaper.
    drop(shaper);
    assert!(network.queueing("h1").contains("5745:12"));
    let fewer = Shape { destinations: shape().destinations[..1].to_vec(), ..shape() };
    let mut shaper = network.at("h1", || Shaper::install(fewer)).unwrap();
    assert!(!network.queueing("h1").contains("5745:11"));
    assert_eq!(shaper.counters().unwrap().len(), 1);
    shaper.remove().unwrap();
    assert_eq!(network.queueing("h1"), before);
    assert!(shaper.counters().is_err());
    drop(shaper);

    for (made, expected) in [
        (
            "qdisc replace dev eth0 root handle 7: tbf rate 1mbit burst 10k latency 10ms\n",
            "tbf 7: is somebody else's",
        ),
        ("qdisc replace dev eth0 root handle 7: htb\n", "htb 7: is somebody else's"),
        (
            "qdisc replace dev eth0 root handle 7: htb default 5\n",
            "htb 7: has no free default class 5",
        ),
    ] {
        network.tc("h2", "qdisc del dev eth0 root\n");
        network.tc("h2", made);
        let before = network.queueing("h2");
        let error = network.at("h2", || Shaper::install(shape())).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(network.queueing("h2"), before);
    }
    let error = network
        .at("h1", || Shaper::install(Shape { interface: "eth7".to_owned(), ..shape() }))
        .err()
        .unwrap();
    assert!(error.to_string().contains("eth7"), "{error}");
}

#[test]
fn root_classes_count_the_bytes_to_each_destination() {
    if lab::testing::skip("root_classes_count_the_bytes_to_each_destination", RATED) {
        return;
    }
    let network = Network::pair("count", Some("10Mbit"));
    let shape = Shape { destinations: shape().destinations[..2].to_vec(), ..shape() };
    let mut shaper = network.at("h1", || Shaper::install(shape.clone())).unwrap();
    let before = network.at("h2", || {
        let mut other =
            Shaper::install(Shape { destinations: Vec::new(), ..shape.clone() }).unwrap();
        let before = other.received().unwrap();
        (other, before)
    });
    network.run("h1", "ping -c 20 -i 0.01 -s 1000 -q 10.0.0.2");
    let counters = shaper.counters().unwrap();
    // h1 sends 20 echo requests of 1,042 bytes, and perhaps an ARP reply to the same address.
    assert!((20_840..22_000).contains(&counters[0].bytes), "{counters:?}");
    assert_eq!(counters[1].bytes, 0);
    let (mut other, before) = before;
    let received = other.received().unwrap() - before;
    assert!((20_840..22_500).contains(&received), "{received}");

    // `fall_back` sets the ceiling of a throttled class back to the full rate.
    shaper.set_ceiling(0, Bandwidth::from_bits_per_second(100_000)).unwrap();
    assert!(network.queueing("h1").contains("ceil 100Kbit"));
    drop(shaper);
    assert!(network.at("h1", || Shaper::fall_back(shape.clone())).unwrap());
    assert!(!network.queueing("h1").contains("ceil 100Kbit"));
    assert_eq!(network.queueing("h1").matches("ceil 8Mbit").count(), 4);
    other.remove().unwrap();
    drop(other);
    assert!(!network.at("h2", || Shaper::fall_back(shape)).unwrap());
}
