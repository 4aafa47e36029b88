//! Tests of emulated switches over real sockets on loopback.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod common;

use std::time::{Duration, Instant};

use channel::blocking::Client;
use channel::{Address, Listener, Options};
use common::path;
use emulate::{Fault, HostIndex, Network, Runner, Seen, ServiceTime, SwitchIndex};
use openflow::v10::{Action, FlowMod, Message, PacketOut, PortNo};
use openflow::{ListBuf, Version, VersionSet};

const SECONDS: Duration = Duration::from_secs(20);
const SWITCH: SwitchIndex = SwitchIndex(0);

fn loopback() -> Address {
    "tcp:127.0.0.1:0".parse().unwrap()
}

fn send(client: &mut Client, xid: u32, message: Message<'_>) {
    let mut frame = Vec::new();
    message.write(xid, &mut frame).unwrap();
    client.send(&frame).unwrap();
}

fn greet(client: &mut Client) {
    let mut hello = Vec::new();
    openflow::Hello::write_message(VersionSet::only(Version::V1_0), 1, &mut hello).unwrap();
    client.send(&hello).unwrap();
    assert_eq!(client.receive().unwrap()[1], 0, "HELLO");
}

/// Connects a 1.0 controller to a listening switch.
fn controller(running: &emulate::Running) -> Client {
    let address = running.listening_on(SWITCH).unwrap();
    let mut client = Client::connect(&address, None, SECONDS).unwrap();
    greet(&mut client);
    client
}

/// Sends a message and waits for the answer with its xid.
fn ask(client: &mut Client, xid: u32, message: Message<'_>) -> Vec<u8> {
    send(client, xid, message);
    loop {
        let frame = client.receive().unwrap();
        if openflow::frame::xid(&frame) == Some(xid) {
            return frame;
        }
    }
}

fn running(network: Network, service: ServiceTime) -> emulate::Running {
    Runner::new(network).listen(SWITCH, loopback()).service(SWITCH, service).start().unwrap()
}

#[test]
fn a_switch_that_listens_serves_several_controllers() {
    let running = running(Network::single(2, |_| {}), ServiceTime::default());
    let mut first = controller(&running);
    let mut second = controller(&running);
    for (xid, client) in [(7, &mut first), (8, &mut second)] {
        let answer = ask(client, xid, Message::EchoRequest(b"hello"));
        assert_eq!(Message::parse(&answer).unwrap().1, Message::EchoReply(b"hello"));
    }
    let packet = path(1, 2).udp(1, 2, b"to both");
    let frame = packet.clone();
    let journey = running.call(move |n, now| n.inject(now, HostIndex(0), &frame)).unwrap();
    assert_eq!(journey.packet_ins, [SWITCH, SWITCH]);
    for client in [&mut first, &mut second] {
        let frame = client.receive().unwrap();
        let (_, Message::PacketIn(packet_in)) = Message::parse(&frame).unwrap() else { panic!() };
        assert_eq!(packet_in.data, packet);
    }
    drop(second);
    let counters = loop {
        let counters = running.counters(SWITCH).unwrap();
        if counters.disconnections == 1 {
            break counters;
        }
        std::thread::yield_now();
    };
    assert_eq!((counters.connections, counters.received[2], counters.sent[10]), (2, 2, 2));
    assert_eq!(ask(&mut first, 9, Message::BarrierRequest)[1], 19, "the other stays");
    let network = running.stop().unwrap();
    assert_eq!(network.switch(SWITCH).unwrap().port(1).unwrap().counters.rx_packets, 1);
}

#[test]
fn many_switches_connect_and_reconnect_after_a_close() {
    let mut listener = Listener::bind(&loopback(), None, Options::default()).unwrap();
    let running =
        Runner::new(Network::linear(16, |_| {})).dial_all(listener.address()).start().unwrap();
    let mut clients: Vec<Client> = (0..16)
        .map(|_| {
            let mut client = Client::accept(&mut listener, SECONDS).unwrap();
            greet(&mut client);
            client
        })
        .collect();
    running.wait_connected(SECONDS).unwrap();
    let mut dpids: Vec<u64> = clients
        .iter_mut()
        .map(|client| {
            let answer = ask(client, 5, Message::FeaturesRequest);
            match Message::parse(&answer).unwrap().1 {
                Message::FeaturesReply(features) => features.datapath_id,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    dpids.sort_unstable();
    assert_eq!(dpids, (1..=16).collect::<Vec<u64>>());
    clients.truncate(15);
    let mut again = Client::accept(&mut listener, SECONDS).unwrap();
    greet(&mut again);
    running.wait_connected(SECONDS).unwrap();
}

#[test]
fn a_packet_out_reaches_the_host_and_the_reply_is_a_packet_in() {
    let running = running(Network::single(2, |_| {}), ServiceTime::default());
    let mut client = controller(&running);
    let actions = ListBuf::from([Action::Output { port: PortNo(2), max_len: 0 }]);
    let ping = path(1, 2).icmp_echo(false, 1, 1, b"ping");
    let body = PacketOut { actions: actions.as_list(), data: &ping, ..PacketOut::default() };
    send(&mut client, 1, Message::PacketOut(body));
    let frame = client.receive().unwrap();
    let (_, Message::PacketIn(packet_in)) = Message::parse(&frame).unwrap() else { panic!() };
    assert_eq!(
        (packet_in.in_port, packet_in.data),
        (PortNo(2), &path(2, 1).icmp_echo(true, 1, 1, b"ping")[..])
    );
}

/// The test asserts only lower bounds: a busy machine can make a switch slower, but not faster.
#[test]
fn a_slow_switch_spends_the_service_time_on_every_message() {
    const MESSAGES: u32 = 100;
    let running = running(Network::single(2, |_| {}), ServiceTime::per_second(2_000));
    let mut client = controller(&running);
    ask(&mut client, 1000, Message::BarrierRequest);
    let before = running.counters(SWITCH).unwrap();
    let start = Instant::now();
    for xid in 0..MESSAGES {
        send(&mut client, xid, Message::EchoRequest(b""));
    }
    for xid in 0..MESSAGES {
        assert_eq!(openflow::frame::xid(&client.receive().unwrap()), Some(xid), "in order");
    }
    let least = Duration::from_micros(500) * MESSAGES;
    assert!(start.elapsed() >= least, "{:?}", start.elapsed());
    let after = running.counters(SWITCH).unwrap();
    assert!(after.busy - before.busy >= least, "{after:?}");
    assert!(after.busy_fraction_since(&before) <= 1.0, "{after:?}");
}

#[test]
fn messages_to_a_controller_that_never_reads_are_dropped_at_a_bound() {
    let running = running(Network::single(1, |_| {}), ServiceTime::default());
    let client = controller(&running);
    let frame = path(1, 2).udp(1, 2, &[0; 1000]);
    let deadline = Instant::now() + SECONDS;
    while running.counters(SWITCH).unwrap().dropped == 0 {
        assert!(Instant::now() < deadline);
        let frame = frame.clone();
        let flood = move |n: &mut Network, now: u64| {
            (0..1000).for_each(|_| drop(n.inject(now, HostIndex(0), &frame)));
        };
        running.call(flood).unwrap();
    }
    let counters = running.counters(SWITCH).unwrap();
    assert!(counters.backlog < 5 << 20, "{counters:?}");
    drop(client);
}

#[test]
fn a_switch_that_never_reads_stays_silent_and_can_be_stopped() {
    let running = running(Network::single(1, |_| {}), ServiceTime::never());
    let address = running.listening_on(SWITCH).unwrap();
    let mut client = Client::connect(&address, None, SECONDS).unwrap();
    greet(&mut client);
    send(&mut client, 1, Message::EchoRequest(b""));
    assert_eq!(client.receive_within(Duration::from_millis(20)).unwrap(), None);
    running.stop().unwrap();
}

#[test]
fn injected_faults_are_visible_to_the_controller() {
    let network = |fault: Fault| Network::single(1, move |config| config.faults = vec![fault]);
    let on = |fault: Fault| running(network(fault), ServiceTime::default());

    let swallowing = on(Fault::NeverAnswers { message_type: 18 });
    let mut client = controller(&swallowing);
    send(&mut client, 1, Message::BarrierRequest);
    let answer = ask(&mut client, 2, Message::EchoRequest(b""));
    assert_eq!(answer[1], 3, "the echo is answered, the barrier before it never was");

    let cutting = on(Fault::DisconnectInReply { message: 2 });
    let mut client = controller(&cutting);
    send(&mut client, 1, Message::EchoRequest(&[0; 100]));
    assert!(client.receive().is_err(), "half an answer is no message");

    let lying = on(Fault::BarrierLies { by: 50_000_000 });
    let mut client = controller(&lying);
    send(&mut client, 1, Message::FlowMod(FlowMod::default()));
    let start = Instant::now();
    ask(&mut client, 2, Message::BarrierRequest);
    let at_once = lying.call(|network, _| network.switch(SWITCH).unwrap().flow_count()).unwrap();
    if start.elapsed() < Duration::from_millis(40) {
        assert_eq!(at_once, 0, "the barrier lied");
    }
    let is_there = |network: &mut Network| network.switch(SWITCH).unwrap().flow_count() == 1;
    lying.wait_for("the entry", SECONDS, is_there).unwrap();
}

#[test]
fn a_peer_without_openflow_does_not_disturb_other_controllers() {
    let running = running(Network::single(1, |_| {}), ServiceTime::default());
    let mut good = controller(&running);
    let address = running.listening_on(SWITCH).unwrap();
    for bytes in [
        &[4, 0, 0, 3, 0, 0, 0, 0][..],
        b"GET / HTTP/1.1\r\n\r\n--------",
        &[1, 2, 0, 8, 0, 0, 0, 1],
    ] {
        let mut bad = Client::connect(&address, None, SECONDS).unwrap();
        bad.send(bytes).unwrap();
        let pause = Duration::from_millis(1);
        // The last message is an ECHO_REQUEST before any HELLO. The HTTP message has a length field of 21,536 bytes, so
        // the switch waits for more bytes.
        if bytes[0] != b'G' {
            bad.wait_closed().unwrap();
        } else {
            assert!(bad.receive_within(pause).is_ok());
        }
        assert_eq!(ask(&mut good, 3, Message::EchoRequest(b""))[1], 3);
    }
}

/// The events that a tap reported, as short texts, without HELLO and other messages of the handshake.
type Story = std::sync::Arc<std::sync::Mutex<Vec<(u64, String)>>>;

#[test]
fn a_tap_reports_events_in_order() {
    use emulate::controller::{Behaviour, ControllerRunner};
    let controller = ControllerRunner::new(Behaviour::Hub)
        .versions(VersionSet::only(Version::V1_0))
        .start(loopback())
        .unwrap();
    let story = Story::default();
    let tapped = std::sync::Arc::clone(&story);
    let running = Runner::new(Network::single(2, |_| {}))
        .dial_all(controller.address())
        .tap(move |at, seen| {
            let text = match seen {
                Seen::Opened { dialled, .. } => format!("opened {dialled:?}"),
                Seen::Closed { .. } => "closed".to_owned(),
                Seen::Received { frame, .. } => format!("received {}", frame[1]),
                Seen::Sent { frame, .. } => format!("sent {}", frame[1]),
                Seen::Delivered { host, .. } => format!("delivered to {}", host.0),
            };
            tapped.lock().unwrap().push((at, text));
        })
        .start()
        .unwrap();
    controller.wait_for("the switch", SECONDS, |counters| counters.switches == 1).unwrap();
    let frame = path(1, 2).udp(1, 2, b"");
    running.call(move |network, now| network.inject(now, HostIndex(0), &frame)).unwrap();
    running
        .wait_for("the packet", SECONDS, |n| n.host(HostIndex(1)).unwrap().packets == 1)
        .unwrap();

    running.set_powered(SWITCH, false).unwrap();
    controller.wait_for("the switch to go", SECONDS, |counters| counters.switches == 0).unwrap();
    running.set_powered(SWITCH, true).unwrap();
    controller.wait_for("the switch again", SECONDS, |counters| counters.switches == 1).unwrap();
    assert!(running.now() > 0);
    running.stop().unwrap();

    let story = story.lock().unwrap();
    let received = |event: &(u64, String)| event.1.starts_with("received");
    assert!(story.iter().filter(|event| !received(event)).is_sorted_by_key(|event| event.0));
    let mut words = story.iter().map(|(_, text)| text.as_str());
    let expected = [
        "opened Some(0)",
        "received 0",
        "received 5",
        "sent 6",
        "sent 10",
        "received 13",
        "delivered to 1",
        "closed",
        "opened Some(0)",
        "sent 6",
    ];
    for word in expected {
        assert!(words.any(|text| text == word), "no {word} (in its place) in {story:?}");
    }
}

#[test]
fn a_switch_with_a_short_queue_drops_and_counts_excess_messages() {
    const QUEUE: usize = 8;
    // The switch never completes the BARRIER_REQUEST during the test, so the ECHO_REQUESTs wait behind it.
    let never = ServiceTime { default: 0, by_type: vec![(18, u64::MAX)] };
    let running = Runner::new(Network::single(2, |_| {}))
        .listen(SWITCH, loopback())
        .service(SWITCH, never)
        .queue(SWITCH, QUEUE)
        .start()
        .unwrap();
    let mut client = controller(&running);
    assert_eq!(ask(&mut client, 2, Message::EchoRequest(b""))[1], 3);
    send(&mut client, 3, Message::BarrierRequest);
    for xid in 0..20 {
        send(&mut client, 100 + xid, Message::EchoRequest(b""));
    }
    let counters = loop {
        let counters = running.counters(SWITCH).unwrap();
        if counters.overflowed + counters.longest_queue >= 20 {
            break counters;
        }
        std::thread::yield_now();
    };
    // The BARRIER_REQUEST also has a place in the queue if the ECHO_REQUESTs arrive before the switch begins with it.
    assert_eq!(counters.longest_queue, QUEUE as u64);
    let least = 20 - QUEUE as u64;
    assert!((least..=least + 1).contains(&counters.overflowed), "{}", counters.overflowed);
}
