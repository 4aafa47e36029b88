use super::*;
use crate::config::Config;

const KEY: LldpKey = LldpKey([7; 16]);

fn port(text: &str) -> PortId {
    text.parse().unwrap()
}

fn seconds(seconds: u64) -> Instant {
    Instant(seconds * 1_000_000_000)
}

fn config(text: &str) -> config::Topology {
    Config::parse("weir.toml", &format!("[topology]\n{text}")).unwrap().topology
}

const UP: Option<PortState> = Some(PortState { is_up: true, speed: 100_000 });
const DOWN: Option<PortState> = Some(PortState { is_up: false, speed: 100_000 });

/// A state, and wires that deliver each probe at once.
struct World {
    state: State,
    wires: Vec<[PortId; 2]>,
    sent: Vec<Probe>,
}

impl World {
    /// Two switches with three ports each; a wire connects the ports 1.
    fn new(text: &str) -> World {
        let wires = vec![[port("1 port 1"), port("2 port 1")]];
        let mut world = World { state: State::new(config(text), KEY), wires, sent: Vec::new() };
        for dpid in 1..=2 {
            for number in 1..=3 {
                world.state.handle_port(port(&format!("{dpid} port {number}")), UP, seconds(0));
            }
        }
        world
    }

    fn run(&mut self, until: u64) {
        loop {
            let Some(now) = self.state.next_due().filter(|due| *due <= seconds(until)) else {
                return;
            };
            self.state.handle_timeout(now);
            while let Some(probe) = self.state.poll_probe(now) {
                let far = self.wires.iter().find_map(|ends| match ends {
                    [a, b] if *a == probe.port => Some(*b),
                    [a, b] if *b == probe.port => Some(*a),
                    _ => None,
                });
                if let Some(far) = far {
                    let _ = self.state.handle_probe(far, &probe.frame, now);
                }
                self.sent.push(probe);
            }
        }
    }

    /// Links between switches that are up, as text.
    fn up(&self) -> Vec<String> {
        let is_up = |link: LinkId| self.state.network().link(link).is_up();
        let wires = self.state.wires().filter(|wire| wire.link.is_some_and(is_up));
        wires
            .map(|w| {
                let capacity = self.state.network().link(w.link.unwrap()).capacity;
                let [a, b] = w.ends.map(|end| format!("{}.{}", end.dpid.0, end.port));
                format!("{a}-{b} {capacity} {:?}", w.origin)
            })
            .collect()
    }
}

const FOUND: &str = "1.1-2.1 100Mbit Discovered";
const DECLARED: &str =
    "[[topology.links]]\nbetween = [\"1 port 1\", \"2 port 1\"]\nbandwidth = \"10Mbit\"";

#[test]
fn no_probe_is_sent_without_discovery() {
    let mut world = World::new("");
    world.run(10);
    assert_eq!((world.up(), world.sent.len()), (vec![], 0));
}

#[test]
fn links_are_discovered_and_end_by_port_status_or_without_probes() {
    let mut world = World::new("discovery = true");
    world.run(1);
    assert_eq!(world.up(), [FOUND]);
    let changed = world.state.take_changed().unwrap();
    assert_eq!(changed.len(), 2, "both directions");
    assert_eq!(world.state.take_changed(), None);

    // A PORT_STATUS of one end ends the link at once, in both directions.
    world.state.handle_port(port("2 port 1"), DOWN, seconds(2));
    assert_eq!(world.up(), [""; 0]);
    assert_eq!(world.state.take_changed().unwrap(), changed);
    world.state.handle_port(port("2 port 1"), UP, seconds(2));
    assert_eq!(world.up(), [""; 0], "a port that is back is no link yet");
    world.run(4);
    assert_eq!(world.up(), [FOUND]);
    world.state.take_changed();

    // The link ends when no probes arrive.
    world.wires.clear();
    world.run(20);
    assert_eq!(world.up(), [""; 0]);
    assert_eq!(world.state.take_changed().unwrap(), changed, "the wire keeps its number");
}

#[test]
fn links_of_a_disconnected_switch_end_and_return_with_the_switch() {
    for text in ["discovery = true", DECLARED] {
        let mut world = World::new(text);
        world.run(1);
        assert_eq!(world.up().len(), 1, "{text}");
        world.state.handle_switch_gone(Dpid(2), seconds(2));
        assert_eq!(world.up(), [""; 0]);
        assert_eq!(world.state.network().switches().count(), 1);
        world.state.handle_port(port("2 port 1"), UP, seconds(2));
        world.run(4);
        assert_eq!(world.up().len(), 1, "{text}: it is back");
    }
}

#[test]
fn declared_links_and_edge_ports_are_used_and_not_probed() {
    let mut world =
        World::new(&format!("discovery = true\nedge_ports = [\"1 port 2\"]\n{DECLARED}"));
    assert_eq!(world.up(), ["1.1-2.1 10Mbit Declared"]);
    world.wires.push([port("1 port 2"), port("2 port 2")]);
    world.run(0);
    for at in ["1 port 1", "1 port 2", "2 port 1"] {
        assert!(world.sent.iter().all(|probe| probe.port != port(at)), "{at} was probed");
    }
    assert!(world.state.network().edge(port("1 port 2")).is_ok());
    // A probe that arrives at an edge port or at the port of a declared link is refused and counted.
    let probe = world.sent.iter().find(|probe| probe.port == port("2 port 2")).unwrap().clone();
    for at in ["1 port 2", "1 port 1"] {
        let refused = world.state.handle_probe(port(at), &probe.frame, seconds(0));
        assert_eq!(refused, Err(Refusal::AtTheEdge), "{at}");
    }
    assert_eq!(world.state.refused(), 2 + 1, "and once on the wire");
    world.state.handle_port(port("1 port 1"), DOWN, seconds(1));
    assert_eq!(world.up(), [""; 0]);
    world.state.handle_port(port("1 port 1"), UP, seconds(1));
    assert_eq!(world.up().len(), 1);
}

#[test]
fn a_new_configuration_changes_only_the_links_concerned() {
    let mut world = World::new("discovery = true");
    world.wires.push([port("1 port 2"), port("2 port 2")]);
    world.run(1);
    assert_eq!(world.up(), [FOUND, "1.2-2.2 100Mbit Discovered"]);
    world.state.take_changed();

    let text = format!("discovery = true\n{DECLARED}");
    world.state.configure(config(&text), seconds(2));
    assert_eq!(world.up(), ["1.1-2.1 10Mbit Declared", "1.2-2.2 100Mbit Discovered"]);
    world.state.configure(config(&text.replace("10M", "20M")), seconds(2));
    assert_eq!(world.up(), ["1.1-2.1 20Mbit Declared", "1.2-2.2 100Mbit Discovered"]);
    world.state.configure(config("discovery = true\nbandwidth = \"1Gbit\""), seconds(2));
    assert_eq!(world.up(), ["1.2-2.2 1Gbit Discovered"]);
    world.run(4);
    assert_eq!(world.up(), ["1.1-2.1 1Gbit Discovered", "1.2-2.2 1Gbit Discovered"]);
    let edge = "discovery = true\nbandwidth = \"1Gbit\"\nedge_ports = [\"1 port 2\"]";
    world.state.configure(config(edge), seconds(5));
    assert_eq!(world.up(), ["1.1-2.1 1Gbit Discovered"]);
    world.state.configure(config(""), seconds(5));
    assert_eq!(world.up(), [""; 0]);
    assert!(world.state.network().edge(port("1 port 2")).is_err());
}

#[test]
fn a_rewired_port_has_only_the_new_link() {
    let mut world = World::new("discovery = true");
    world.run(1);
    world.wires = vec![[port("1 port 1"), port("2 port 3")]];
    world.state.handle_port(port("1 port 1"), DOWN, seconds(2));
    world.state.handle_port(port("1 port 1"), UP, seconds(2));
    world.run(4);
    assert_eq!(world.up(), ["1.1-2.3 100Mbit Discovered"]);
    assert_eq!(world.state.wires().count(), 1);
}

#[test]
fn vlan_tag_stacking_depends_on_the_openflow_version_of_the_switch() {
    let mut world = World::new("");
    let tagging = |world: &World, dpid| {
        let network = world.state.network();
        network.switch(network.switch_index(Dpid(dpid)).unwrap()).tagging()
    };
    world.state.take_changed();
    for (version, known, is_news) in [
        (Version::V1_3, Tagging::Stacked, false),
        (Version::V1_0, Tagging::Single, true),
        (Version::V1_0, Tagging::Single, false),
        (Version::V1_3, Tagging::Stacked, true),
    ] {
        world.state.handle_version(Dpid(1), version);
        assert_eq!(tagging(&world, 1), known);
        assert_eq!(world.state.take_changed().is_some(), is_news);
        assert_eq!(tagging(&world, 2), Tagging::Stacked);
    }
    // The version of a switch that is not connected changes nothing.
    world.state.handle_version(Dpid(3), Version::V1_0);
    assert_eq!(world.state.take_changed(), None);
}

#[test]
fn links_stay_up_when_only_probe_settings_change() {
    let mut world = World::new("discovery = true");
    world.run(3);
    world.state.take_changed();
    for (text, at) in [
        ("discovery = true\ninterval = \"100ms\"", 3),
        ("discovery = true\ninterval = \"20s\"", 9),
        ("discovery = true\ninterval = \"900ms\"\nlifetime = \"3500ms\"", 80),
    ] {
        world.state.configure(config(text), seconds(at));
        assert_eq!(world.up(), [FOUND], "{text}");
        world.run(at + 5);
        assert_eq!(world.up(), [FOUND], "{text}");
        assert_eq!(world.state.take_changed(), Some(vec![]), "{text}: never went");
    }
    // The new settings apply: when no probes arrive, the link ends within the new lifetime.
    world.wires.clear();
    world.run(90);
    assert_eq!(world.up(), [""; 0]);
    // Discovered links end when discovery is turned off.
    let mut world = World::new("discovery = true");
    world.run(1);
    world.state.configure(config(""), seconds(2));
    assert_eq!(world.up(), [""; 0]);
}

#[test]
fn link_capacity_follows_the_port_speed_unless_configured() {
    let says = |speed, is_up| Some(PortState { is_up, speed });
    let declared = "[[topology.links]]\nbetween = [\"1 port 1\", \"2 port 1\"]";
    for (text, known) in [("discovery = true", "Discovered"), (declared, "Declared")] {
        let mut world = World::new(&format!("edge_ports = [\"1 port 2\"]\n{text}"));
        world.run(1);
        let edge = |world: &World| {
            let network = world.state.network();
            network.link(network.edge(port("1 port 2")).unwrap().1).capacity.to_string()
        };
        let link = |capacity: &str| [format!("1.1-2.1 {capacity} {known}")];
        assert_eq!((world.up(), edge(&world)), (link("100Mbit").to_vec(), "100Mbit".to_owned()));
        world.state.take_changed();
        // The link stays up, and the capacity is the speed of the slower port.
        world.state.handle_port(port("1 port 1"), says(10_000, true), seconds(2));
        assert_eq!(world.up(), link("10Mbit"), "{text}");
        assert_eq!(world.state.take_changed().unwrap().len(), 2, "both directions");
        world.state.handle_port(port("2 port 1"), says(1_000_000, true), seconds(2));
        assert_eq!(world.up(), link("10Mbit"), "{text}");
        assert_eq!(world.state.take_changed().unwrap().len(), 0);
        // The capacity is also the new speed when the port is down and up again with another speed.
        for is_up in [false, true] {
            world.state.handle_port(port("1 port 1"), says(1_000_000, is_up), seconds(3));
        }
        world.run(5);
        assert_eq!(world.up(), link("1Gbit"), "{text}");
        world.state.handle_port(port("1 port 2"), says(10_000, true), seconds(5));
        assert_eq!(edge(&world), "10Mbit");
        // With a configured bandwidth, a new port speed does not change the capacity.
        let said = format!("bandwidth = \"40Mbit\"\nedge_ports = [\"1 port 2\"]\n{text}");
        world.state.configure(config(&said), seconds(5));
        world.state.handle_port(port("1 port 1"), says(10_000, true), seconds(6));
        assert_eq!((world.up(), edge(&world)), (link("40Mbit").to_vec(), "40Mbit".to_owned()));
    }
}
