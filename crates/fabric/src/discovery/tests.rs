use super::*;
use proptest::prelude::*;
use std::vec;

const KEY: LldpKey = LldpKey([7; 16]);

fn port(dpid: u64, number: u32) -> PortId {
    PortId::new(Dpid(dpid), PortNumber::new(number).unwrap())
}

fn seconds(seconds: u64) -> Instant {
    Instant(0) + Duration::from_secs(seconds)
}

/// Discovery over wires that deliver at once. The test keeps every sent frame, as a host at the remote end could.
struct World {
    discovery: Discovery,
    wires: Vec<(PortId, PortId)>,
    sent: Vec<Probe>,
}

impl World {
    fn new(wires: &[(PortId, PortId)]) -> World {
        let discovery = Discovery::new(KEY, Settings::default());
        let mut world = World { discovery, wires: wires.to_vec(), sent: Vec::new() };
        for &(a, b) in wires {
            assert_eq!(world.discovery.set_port(a, true, seconds(0)), None);
            assert_eq!(world.discovery.set_port(b, true, seconds(0)), None);
        }
        world
    }

    /// Runs discovery until the given time, in its own steps, and returns the events.
    fn run(&mut self, from: u64, to: u64) -> Vec<Event> {
        let mut events = Vec::new();
        let mut now = seconds(from);
        while now <= seconds(to) {
            while let Some(event) = self.discovery.poll_event(now) {
                events.push(event);
            }
            while let Some(probe) = self.discovery.poll_probe(now) {
                let far = self.wires.iter().find_map(|&(a, b)| match probe.port {
                    port if port == a => Some(b),
                    port if port == b => Some(a),
                    _ => None,
                });
                if let Some(far) = far {
                    events.extend(self.discovery.handle_frame(far, &probe.frame, now).unwrap());
                }
                self.sent.push(probe);
            }
            let next = self.discovery.next_due().unwrap_or(Instant(u64::MAX));
            assert!(next > now, "it is due again at once");
            now = next;
        }
        events
    }
}

fn pair() -> World {
    World::new(&[(port(1, 1), port(2, 1)), (port(2, 2), port(3, 1))])
}

const UP: fn(u64, u32, u64, u32) -> Event = |a, p, b, q| Event::LinkUp(port(a, p), port(b, q));
const DOWN: fn(u64, u32, u64, u32) -> Event = |a, p, b, q| Event::LinkDown(port(a, p), port(b, q));

#[test]
fn a_link_is_up_when_probed_and_down_after_its_lifetime() {
    let mut world = pair();
    assert_eq!(world.run(0, 10), [UP(1, 1, 2, 1), UP(2, 2, 3, 1)]);
    assert_eq!(world.discovery.peer(port(2, 1)), Some(port(1, 1)));

    // No switch notices that a wire is cut. After the lifetime this link is down, and the other link stays up.
    world.wires.remove(0);
    assert_eq!(world.run(11, 20), [DOWN(1, 1, 2, 1)]);
    assert_eq!(world.discovery.peer(port(2, 1)), None);
    world.wires.push((port(1, 1), port(2, 1)));
    assert_eq!(world.run(21, 30), [UP(1, 1, 2, 1)]);
}

#[test]
fn links_of_a_down_port_or_removed_switch_are_down_at_once() {
    let mut world = pair();
    world.run(0, 2);
    assert_eq!(world.discovery.set_port(port(2, 1), false, seconds(2)), Some(DOWN(1, 1, 2, 1)));
    assert_eq!(world.discovery.set_port(port(2, 1), true, seconds(2)), None);
    assert_eq!(world.run(2, 5), [UP(1, 1, 2, 1)]);
    let events = world.discovery.remove_switch(Dpid(2), seconds(6));
    assert_eq!(events, [DOWN(1, 1, 2, 1), DOWN(2, 2, 3, 1)]);
    world.wires.clear();
    assert_eq!(world.run(6, 20), []);
}

#[test]
fn probes_in_one_direction_only_make_no_link() {
    let mut world = World::new(&[(port(1, 1), port(2, 1))]);
    world.wires.clear();
    for second in 0..20 {
        world.run(second, second);
        let probe = world.sent.iter().rfind(|probe| probe.port == port(1, 1)).unwrap();
        let heard = world.discovery.handle_frame(port(2, 1), &probe.frame, seconds(second));
        assert_eq!(heard, Ok(None));
    }
    assert_eq!(world.discovery.peer(port(2, 1)), None);
    // The last received probe expires without an event.
    assert_eq!(world.discovery.poll_event(seconds(60)), None);
}

#[test]
fn probes_sent_by_a_host_are_refused_and_make_no_link() {
    // Hosts are at ports 9: (2, 9) is not declared as an edge port, (3, 9) is declared.
    let mut world = pair();
    for (at, is_edge) in [(port(1, 9), false), (port(2, 9), false), (port(3, 9), true)] {
        world.discovery.set_port(at, true, seconds(0));
        world.discovery.set_edge(at, is_edge, seconds(0));
    }
    world.run(0, 5);
    assert!(world.sent.iter().all(|probe| probe.port != port(3, 9)), "an edge port is not probed");
    let now = seconds(5);
    let last = |from: PortId| world.sent.iter().rfind(|probe| probe.port == from).unwrap();
    let frame_of = |from| last(from).frame.clone();
    let with = |key: &LldpKey, from| probe::frame(key, from, Duration::from_secs(3), now);
    let mut changed = frame_of(port(2, 9));
    changed[CHASSIS_LAST_BYTE] ^= 1;
    let mut tenants = Vec::new();
    KEY.tag(&frame_of(port(2, 9)), crate::TenantId(1), now, &mut tenants);

    let cases = [
        ("no frame", port(2, 9), vec![], now, Refusal::NotAProbe),
        ("a foreign key", port(2, 9), with(&LldpKey([8; 16]), port(1, 1)), now, Refusal::NotAProbe),
        ("a changed one", port(1, 9), changed, now, Refusal::NotAProbe),
        ("a tenant's", port(1, 9), tenants, now, Refusal::NotAProbe),
        ("one that counted", port(2, 9), frame_of(port(1, 1)), now, Refusal::Replayed),
        (
            "one kept",
            port(1, 9),
            world.sent.iter().find(|it| it.port == port(2, 9)).unwrap().frame.clone(),
            now,
            Refusal::Stale,
        ),
        (
            "one from later",
            port(1, 9),
            probe::frame(&KEY, port(2, 9), Duration::ZERO, seconds(9)),
            now,
            Refusal::Replayed,
        ),
        ("one back", port(2, 9), frame_of(port(2, 9)), now, Refusal::Reflected),
        ("at an edge", port(3, 9), frame_of(port(2, 9)), now, Refusal::AtTheEdge),
        ("of an edge", port(2, 9), with(&KEY, port(3, 9)), now, Refusal::AtTheEdge),
        ("of no port", port(2, 9), with(&KEY, port(4, 1)), now, Refusal::NoSuchPort),
        ("at no port", port(4, 1), frame_of(port(2, 9)), now, Refusal::NoSuchPort),
        ("at a link's port", port(1, 1), frame_of(port(2, 9)), now, Refusal::Occupied),
    ];
    for (name, at, frame, now, refusal) in cases {
        assert_eq!(world.discovery.handle_frame(at, &frame, now), Err(refusal), "{name}");
    }
    // The existing links are not disturbed.
    assert_eq!(world.run(5, 20), []);
    assert_eq!(world.discovery.peer(port(1, 1)), Some(port(2, 1)));
}

/// The last byte of the datapath id.
const CHASSIS_LAST_BYTE: usize = 14 + 3 + 7;

#[test]
fn a_replayed_probe_is_refused() {
    let mut world = World::new(&[(port(1, 1), port(2, 1)), (port(3, 1), port(4, 1))]);
    world.wires.clear();
    world.run(0, 0);
    let frame = world.sent.iter().find(|probe| probe.port == port(1, 1)).unwrap().frame.clone();
    let now = Instant(1_000);
    assert_eq!(world.discovery.handle_frame(port(2, 1), &frame, now), Ok(None));
    for at in [port(2, 1), port(3, 1)] {
        assert_eq!(world.discovery.handle_frame(at, &frame, now), Err(Refusal::Replayed));
    }
    // A probe that is older than the newest probe is refused as well.
    let old = world.sent.iter().find(|probe| probe.port == port(3, 1)).unwrap().frame.clone();
    world.run(1, 1);
    let late = world.discovery.handle_frame(port(4, 1), &old, seconds(1));
    assert_eq!(late, Err(Refusal::Replayed));
}

#[test]
fn links_stay_up_and_probing_continues_after_the_clock_is_set_back() {
    let mut world = pair();
    world.run(1_000, 1_010);
    assert_eq!(world.run(3, 20), []);
    assert_eq!(world.discovery.peer(port(1, 1)), Some(port(2, 1)));
    world.wires.clear();
    assert_eq!(world.run(21, 30), [DOWN(1, 1, 2, 1), DOWN(2, 2, 3, 1)]);
}

#[test]
fn truncated_probes_are_refused_and_padded_probes_are_accepted() {
    let mut world = pair();
    world.wires.clear();
    world.run(0, 0);
    let frame = world.sent[0].frame.clone();
    for length in 0..frame.len() - 2 {
        let cut = world.discovery.handle_frame(port(2, 1), &frame[..length], seconds(0));
        assert_eq!(cut, Err(Refusal::NotAProbe), "{length}");
    }
    let mut padded = frame;
    padded.resize(128, 0);
    assert_eq!(world.sent[0].port, port(1, 1));
    assert_eq!(world.discovery.handle_frame(port(2, 1), &padded, seconds(0)), Ok(None));
}

/// Events for two wires and two hosts at undeclared ports. Hosts receive the frames that their ports send, keep these
/// frames, and send any of them at any time.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Run { milliseconds: u64 },
    Plug { wire: usize, is_in: bool },
    Port { at: usize, is_up: bool },
    Inject { at: usize, kept: usize },
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0_u64..2_000).prop_map(|milliseconds| Happening::Run { milliseconds }),
        (0_usize..2, any::<bool>()).prop_map(|(wire, is_in)| Happening::Plug { wire, is_in }),
        (0_usize..6, any::<bool>()).prop_map(|(at, is_up)| Happening::Port { at, is_up }),
        (4_usize..6, any::<usize>()).prop_map(|(at, kept)| Happening::Inject { at, kept }),
    ]
}

#[test]
fn a_host_probe_forwarded_by_a_tenant_does_not_hide_a_link() {
    let (a, b, host) = (port(1, 1), port(2, 1), port(1, 9));
    // In each round the host's probe arrives before or after the wire's own probe.
    for is_first in [true, false] {
        let mut discovery = Discovery::new(KEY, Settings::default());
        for at in [a, b, host] {
            discovery.set_port(at, true, seconds(0));
        }
        let mut events = vec![];
        for now in (0..20).map(seconds) {
            while let Some(event) = discovery.poll_event(now) {
                events.push(event);
            }
            let mut probes = vec![];
            while let Some(probe) = discovery.poll_probe(now) {
                probes.push(probe);
            }
            probes.sort_by_key(|probe| (probe.port == host) != is_first);
            for Probe { port, frame } in probes {
                // The wire connects a and b. A tenant's rule forwards the host's probe to b, where the probe could hide
                // the link.
                let far = if port == b { a } else { b };
                if let Ok(Some(event)) = discovery.handle_frame(far, &frame, now) {
                    events.push(event);
                }
            }
        }
        assert_eq!(events, [Event::LinkUp(a, b)], "{is_first}");
        assert_eq!(discovery.peer(host), None);
    }
}

#[test]
fn links_stay_up_when_the_probe_interval_and_lifetime_change() {
    let mut world = pair();
    assert_eq!(world.run(0, 3).len(), 2);
    for (interval, lifetime, from) in [(100, 350, 3), (20_000, 70_000, 10), (1_000, 3_500, 90)] {
        let settings = Settings {
            interval: Duration::from_millis(interval),
            lifetime: Duration::from_millis(lifetime),
            ..Settings::default()
        };
        world.discovery.set_settings(settings, seconds(from));
        world.sent.clear();
        assert_eq!(world.run(from, from + 6), [], "{interval}");
        let expected = (6_000 / interval).max(1) as usize;
        assert!(world.sent.len() / 4 >= expected, "{interval}: {}", world.sent.len());
    }
    // Silent links go down after the new lifetime.
    world.wires.clear();
    assert_eq!(world.run(96, 101).len(), 2);
}

proptest! {
    /// A port of a wire is never linked to a port other than the wire's remote end, and the events agree with `peer`.
    #[test]
    fn hosts_cannot_link_a_switch_port_to_a_wrong_port(happenings in proptest::collection::vec(happening(), 1..80)) {
        let ports = [port(1, 1), port(2, 1), port(2, 2), port(3, 1), port(1, 9), port(3, 9)];
        let wires = [(ports[0], ports[1]), (ports[2], ports[3])];
        let mut plugged = [true; 2];
        let mut discovery = Discovery::new(KEY, Settings::default());
        let mut links = BTreeSet::new();
        let mut kept: Vec<Vec<u8>> = Vec::new();
        let mut now = seconds(1);
        for port in ports {
            discovery.set_port(port, true, now);
        }
        for happening in happenings {
            let mut events = Vec::new();
            match happening {
                Happening::Run { milliseconds } => {
                    now = now + Duration::from_millis(milliseconds);
                    while let Some(event) = discovery.poll_event(now) {
                        events.push(event);
                    }
                    while let Some(Probe { port, frame }) = discovery.poll_probe(now) {
                        let wire = wires.iter().position(|(a, b)| port == *a || port == *b);
                        match wire {
                            None => kept.push(frame),
                            Some(wire) if plugged[wire] => {
                                let (a, b) = wires[wire];
                                let far = if port == a { b } else { a };
                                // A port that is down does not receive the probe.
                                events.extend(discovery.handle_frame(far, &frame, now).ok().flatten());
                            }
                            Some(_) => {}
                        }
                    }
                }
                Happening::Plug { wire, is_in } => plugged[wire] = is_in,
                Happening::Port { at, is_up } => events.extend(discovery.set_port(ports[at], is_up, now)),
                Happening::Inject { at, kept: which } => {
                    if let Some(place) = which.checked_rem(kept.len()) {
                        events.extend(discovery.handle_frame(ports[at], &kept[place], now).ok().flatten());
                    }
                }
            }
            for event in events {
                let (link, is_new) = match event {
                    Event::LinkUp(a, b) => ((a, b), links.insert((a, b))),
                    Event::LinkDown(a, b) => ((a, b), links.remove(&(a, b))),
                };
                prop_assert!(is_new, "reported twice: {:?}", link);
            }
            for at in ports {
                let peer = discovery.peer(at);
                prop_assert_eq!(peer.and_then(|peer| discovery.peer(peer)), peer.map(|_| at));
                let link = links.iter().find(|(a, b)| *a == at || *b == at);
                prop_assert_eq!(peer.map(|peer| (at.min(peer), at.max(peer))), link.copied());
                for (a, b) in wires {
                    prop_assert!(at != a || peer.is_none_or(|peer| peer == b));
                    prop_assert!(at != b || peer.is_none_or(|peer| peer == a));
                }
            }
        }
    }
}
