//! Tests of control-plane isolation on a slow switch. The switch handles 8,000 messages per second. One tenant sends
//! 1,000 requests per second, and its neighbour sends 16,000. Time is virtual, so the percentiles are exact.

use crate::support::*;

const SERVICE: u64 = 125_000;
const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    PortStats,
    PacketOut,
    Barrier,
}

impl Load {
    fn words(self, n: u64, tenant: u16) -> String {
        match self {
            // Requests for different ports cannot share a reply.
            Load::PortStats => format!("stats port port={}", n % 60 + 1),
            Load::PacketOut => {
                format!("out actions=output:{tenant} data=10.{tenant}.0.1>10.9.0.1")
            }
            Load::Barrier => "barrier".to_owned(),
        }
    }
}

struct Measured {
    p50: u64,
    p99: u64,
    unanswered: usize,
    busy: f64,
    neighbour: u64,
    longest_queue: usize,
}

/// The load of the light tenant, and the properties of the switch.
#[derive(Clone, Copy, Debug)]
struct Case {
    version: Version,
    load: Load,
    /// The delay of messages to the switch, in ns.
    delay: u64,
    /// The number of requests that the light tenant sends at once.
    burst: u64,
    /// The number of tokens in the switch's bucket; 0 for a switch that handles one message at a time.
    bucket: u32,
}

/// Measures the light tenant's requests for two seconds. The neighbour sends `neighbour_rate` requests per second; with
/// rate 0 the light tenant is alone. The first half second is a warm-up and is not measured.
fn measure(case: Case, neighbour_rate: u64) -> Measured {
    let Case { version, load, delay, burst, bucket } = case;
    let mut setup = Setup::new(
        version,
        "
        light: ip,nw_src=10.1.0.0/16
        heavy: ip,nw_src=10.2.0.0/16
    ",
    );
    setup.per_second = Some(8_000);
    setup.bucket = bucket;
    setup.ports = 60;
    setup.delay = delay;
    let mut world = World::new(setup);
    let (light, heavy) = (world.connect("light"), world.connect("heavy"));
    let (begin, warm, end) = (world.now, world.now + SECOND / 2, world.now + 2 * SECOND);
    let mut sent = Vec::new();
    let mut busy_from = 0;
    let mut answered = 0;
    let mut longest_queue = 0;
    let (mut next_light, mut next_heavy) = (begin, begin);
    // The period is not a multiple of the service time.
    let period = burst * (SECOND / 1_000 + 7_919);
    let interval = SECOND.checked_div(neighbour_rate).unwrap_or(u64::MAX);
    while world.now < end {
        let next = next_light.min(next_heavy);
        world.advance(next - world.now);
        if world.now < warm {
            busy_from = world.switch.busy(world.now);
        }
        if next == next_light {
            for _ in 0..burst {
                let n = sent.len() as u64;
                sent.push(next);
                world.say(light, n as u32 + 1, &load.words(n, 1));
            }
            next_light += period;
        } else {
            world.say(heavy, 1, &load.words(next / interval, 2));
            next_heavy = next_heavy.saturating_add(interval);
        }
        answered += world.controllers[heavy.0].inbox.len() as u64;
        world.controllers[heavy.0].inbox.clear();
        longest_queue =
            longest_queue.max(world.core.tenants().map(|t| t.waiting_south).max().unwrap());
    }
    let busy = (world.switch.busy(world.now) - busy_from) as f64 / (world.now - warm) as f64;
    let stopped = world.now;
    world.controllers[heavy.0].outgoing.clear();
    world.advance(SECOND);
    let done: Vec<u64> = match load {
        Load::PacketOut => {
            answered = world.left.iter().filter(|l| l.port == 2 && l.at <= stopped).count() as u64;
            world.left.iter().filter(|left| left.port == 1).map(|left| left.at).collect()
        }
        _ => world.controllers[light.0].inbox.iter().map(|(at, _)| *at).collect(),
    };
    let mut latencies: Vec<u64> = sent
        .iter()
        .zip(&done)
        .filter(|(sent, _)| **sent >= warm)
        .map(|(sent, done)| done - sent)
        .collect();
    latencies.sort_unstable();
    let percentile = |p: usize| latencies[(latencies.len() * p).div_ceil(100) - 1];
    Measured {
        p50: percentile(50),
        p99: percentile(99),
        unanswered: sent.len() - done.len(),
        busy,
        neighbour: answered / 2,
        longest_queue,
    }
}

/// Compares the light tenant beside a flood with the light tenant alone. `more` is the largest permitted increase of
/// p50, in ns.
fn check(case: Case, more: u64) {
    let alone = measure(case, 0);
    let beside = measure(case, 16_000);
    let measured = format!(
        "{case:?}: alone {}/{} us, beside {}/{} us, busy {:.3}, neighbour {}/s",
        alone.p50 / 1_000,
        alone.p99 / 1_000,
        beside.p50 / 1_000,
        beside.p99 / 1_000,
        beside.busy,
        beside.neighbour
    );
    assert_eq!((alone.unanswered, beside.unanswered), (0, 0), "{measured}");
    assert!(beside.p50 <= alone.p50 + more, "{measured}");
    assert!(beside.p99 <= alone.p99 + 8 * SERVICE, "{measured}");
    assert!(beside.busy >= 0.9, "{measured}");
    // If the switch sends no reply to the messages, every third message to the switch is a barrier of Weir's own.
    assert!(beside.neighbour >= 4_000, "{measured}");
    assert!(beside.longest_queue <= 256, "{measured}");
}

/// Checks a switch that handles one message at a time, with several delays to the switch.
fn check_served_singly(load: Load, burst: u64) {
    // Requests in a burst also wait for Weir's own barriers. If the light tenant is alone, Weir sends no barriers of
    // its own.
    let more = if burst == 1 { 3 } else { 6 };
    for (version, delay) in
        VERSIONS.into_iter().flat_map(|v| [0, 30_000, 60_000, 100_000].map(|delay| (v, delay)))
    {
        check(Case { version, load, delay, burst, bucket: 0 }, more * SERVICE);
    }
}

/// The switch has a bucket of 17 tokens, which fills at 8,000 tokens per second. If Weir permitted as many messages in
/// flight as a full bucket has tokens, the flood would queue at the switch as soon as the bucket is empty.
#[test]
fn light_tenant_latency_stays_low_beside_a_flood_on_a_token_bucket_switch() {
    for load in [Load::PortStats, Load::PacketOut, Load::Barrier] {
        for version in VERSIONS {
            check(Case { version, load, delay: 30_000, burst: 1, bucket: 17 }, 17 * SERVICE);
        }
    }
}

#[test]
fn port_statistics_latency_of_a_light_tenant_stays_low_beside_a_flood() {
    check_served_singly(Load::PortStats, 1);
}

#[test]
fn packet_out_latency_of_a_light_tenant_stays_low_beside_a_flood() {
    check_served_singly(Load::PacketOut, 1);
}

#[test]
fn barrier_latency_of_a_light_tenant_stays_low_beside_a_flood() {
    check_served_singly(Load::Barrier, 1);
}

/// The light tenant sends bursts of 8 requests, for instance after the tenant or the machine has paused for some
/// milliseconds.
#[test]
fn burst_latency_of_a_light_tenant_stays_low_beside_a_flood() {
    for load in [Load::PortStats, Load::PacketOut] {
        check_served_singly(load, 8);
    }
}

#[test]
fn packet_outs_are_sent_by_tenant_weight_and_back_pressure_loses_no_message() {
    for version in VERSIONS {
        let mut setup = Setup::new(
            version,
            "
            one: ip,nw_src=10.1.0.0/16
            three weight=3: ip,nw_src=10.2.0.0/16
        ",
        );
        setup.per_second = Some(8_000);
        let mut world = World::new(setup);
        let seats = [world.connect("one"), world.connect("three")];
        for xid in 1..=8_000 {
            for (tenant, seat) in (1..).zip(seats) {
                let words = format!("out actions=output:{tenant} data=10.{tenant}.0.1>10.9.0.1");
                world.controllers[seat.0].outgoing.push_back(request(version, xid, &words));
            }
        }
        let left = |world: &World, port| world.left.iter().filter(|l| l.port == port).count();
        // The start is not measured, because at the start only the first tenant sends.
        world.advance(SECOND / 10);
        let [one, three] = [1, 2].map(|port| left(&world, port));
        world.advance(SECOND);
        let [one, three] = [(1, one), (2, three)].map(|(port, before)| left(&world, port) - before);
        assert!((2.8..3.2).contains(&(three as f64 / one as f64)), "{one} {three}");
        assert!(seats.iter().any(|seat| world.controllers[seat.0].paused));
        world.advance(2 * SECOND);
        assert_eq!((left(&world, 1), left(&world, 2)), (8_000, 8_000));
        assert_eq!(seats.map(|seat| world.heard(seat).len()), [0, 0]);
    }
}

#[test]
fn the_packet_out_rate_limit_delays_messages_and_loses_no_message() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, "red packet_out=100/10: any"));
        let red = world.connect("red");
        for xid in 1..=200 {
            world.say(red, xid, "out actions=output:1 data=10.1.0.1>10.9.0.1");
        }
        assert_eq!(world.left.len(), 10);
        world.advance(SECOND);
        assert!((108..=111).contains(&world.left.len()), "{}", world.left.len());
        world.advance(10 * SECOND);
        assert_eq!(world.left.len(), 200);
    }
}
