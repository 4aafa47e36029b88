//! Tests of peers that misbehave: Weir responds to each in a defined manner.
//!
//! In each test a tenant that behaves well shares the switch or the program, and is served all the time.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::slices::by_port;
use crate::support::scripted::{
    BARRIER_REPLY, BARRIER_REQUEST, Controller, ECHO_REPLY, ECHO_REQUEST, ERROR, FEATURES_REPLY,
    FEATURES_REQUEST, FLOW_MOD, HELLO, Message, PACKET_IN, PACKET_OUT, Peer, Switch, add_flow,
    frame, packet_out, read_message,
};
use crate::support::weir::Weir;
use crate::support::{PATIENCE, eventually};

const PORTS: &[u16] = &[1, 2, 3, 4];
const MEBIBYTE: u64 = 1 << 20;

/// Type and code of ERRORs (OpenFlow 1.0 section 5.4.4).
const INCOMPATIBLE: (u16, u16) = (0, 0);
const BAD_VERSION: (u16, u16) = (1, 0);
const BAD_TYPE: (u16, u16) = (1, 1);
const BAD_LENGTH: (u16, u16) = (1, 6);
const BAD_PORT: (u16, u16) = (2, 4);

/// A switch that two tenants share: red behaves well, and blue may misbehave.
struct Scene {
    weir: Weir,
    switch: Switch,
    red: Peer,
    blue: Peer,
    _controllers: [Controller; 2],
}

impl Scene {
    fn new() -> Scene {
        let controllers = [Controller::listen(), Controller::listen()];
        let [red, blue] = &controllers;
        let weir = Weir::serve(
            &(by_port("red", &red.name(), [1, 2]) + &by_port("blue", &blue.name(), [3, 4])),
        );
        let switch = Switch::connect(weir.openflow, 1, PORTS);
        let (red, blue) = (red.switch(0), blue.switch(0));
        Scene { weir, switch, red, blue, _controllers: controllers }
    }

    /// Asserts that red's requests are answered, and that red gets PACKET_INs.
    fn red_is_well(&self) {
        self.red.send(&Message::new(BARRIER_REQUEST, 0x600d, &[]));
        self.red.expect_reply(BARRIER_REPLY, 0x600d);
        self.switch.packet_in(1, &a_frame());
        self.red.expect(PACKET_IN);
        assert_eq!(self.red.count(ERROR), 0);
    }
}

fn a_frame() -> Vec<u8> {
    frame(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2))
}

/// Each case has a message that a controller may not send, and the expected ERROR. The ERROR has the xid and the first
/// bytes of the message.
#[test]
fn a_bad_message_gets_its_error_and_the_connection_stays() {
    const UNKNOWN_TYPE: u8 = 99;
    const FOREIGN_PORT: u16 = 1;
    let scene = Scene::new();
    let short = |kind, length| Message::new(kind, 0, &vec![0; length]);
    let cases = [
        ("unknown type", short(UNKNOWN_TYPE, 4), BAD_TYPE),
        ("a type that only switches send", short(PACKET_IN, 20), BAD_TYPE),
        ("another version", Message { version: 4, ..short(ECHO_REQUEST, 0) }, BAD_VERSION),
        ("a PACKET_OUT cut short", short(PACKET_OUT, 3), BAD_LENGTH),
        ("a FLOW_MOD cut short", short(FLOW_MOD, 63), BAD_LENGTH),
        (
            "a PACKET_OUT to another's port",
            Message::new(PACKET_OUT, 0, &packet_out(3, FOREIGN_PORT, &a_frame())),
            BAD_PORT,
        ),
        (
            "a FLOW_MOD to another's port",
            Message::new(FLOW_MOD, 0, &add_flow(3, FOREIGN_PORT, 1, 0)),
            BAD_PORT,
        ),
    ];
    let before = (scene.switch.peer.count(FLOW_MOD), scene.switch.peer.count(PACKET_OUT));
    for (number, (name, message, expected)) in cases.into_iter().enumerate() {
        let xid = 0xbad0 + u32::try_from(number).expect("a small number");
        let message = Message { xid, ..message };
        scene.blue.send(&message);
        let error = scene.blue.expect_reply(ERROR, xid);
        assert_eq!(error.error(), expected, "{name}");
        assert!(message.bytes().starts_with(&error.body[4..]), "{name}: {:?}", error.body);
        assert!(error.body.len() >= 4 + 8, "{name}: at least the header");
    }
    assert!(scene.blue.answers_echo(1));
    let after = (scene.switch.peer.count(FLOW_MOD), scene.switch.peer.count(PACKET_OUT));
    assert_eq!(after, before, "the switch never heard of it");
    scene.red_is_well();
}

/// The log has the controller's address, its OpenFlow version and the version of Weir. The other tenant is served.
#[test]
fn a_controller_of_another_openflow_version_is_logged_with_its_address() {
    let red = Controller::listen();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let blue = format!("tcp:{}", listener.local_addr().expect("its address"));
    let weir =
        Weir::serve(&(by_port("red", &red.name(), [1, 2]) + &by_port("blue", &blue, [3, 4])));
    let _switch = Switch::connect(weir.openflow, 1, PORTS);
    let says = |hello: &[u8], more: &[u8]| {
        let (mut stream, _) = listener.accept().expect("Weir");
        let hello = Message { version: 4, ..Message::new(HELLO, 1, hello) };
        stream.write_all(&[&hello.bytes(), more].concat()).expect("sent");
        stream
    };
    // The bitmap of this HELLO has only OpenFlow 1.3. Weir dials the controller twice, gets the same HELLO twice, and
    // logs the failure once.
    for _ in 0..2 {
        let _ = says(&[0, 1, 0, 8, 0, 0, 0, 0x10], &[]).read_to_end(&mut Vec::new());
    }
    let words = [
        "WARN",
        "no connection to a controller",
        "must speak the switch's OpenFlow version",
        &blue,
    ];
    let line = weir.expect_log(0, &words);
    assert!(line.contains("we speak 1.0") && line.contains("the peer 1.3"), "{line}");
    assert_eq!(weir.logged(&words).len(), 1);
    // With a HELLO without a bitmap, Weir uses OpenFlow 1.0. The controller then refuses this version by an ERROR.
    let refusal = Message::new(ERROR, 1, &[0; 4]);
    drop(says(&[], &refusal.bytes()));
    let words =
        ["WARN", "controller disconnected; it must speak the switch's OpenFlow version", &blue];
    weir.expect_log(0, &words);
    assert!(red.switch(0).answers_echo(1));
}

#[test]
fn garbage_bytes_end_only_the_connection_of_their_sender() {
    let scene = Scene::new();
    scene.blue.send_bytes(b"\x01\x0e\x00\x03then a length that cannot be");
    assert!(scene.blue.is_closed(), "there is no next message to find");
    scene.red_is_well();

    let mut stranger = TcpStream::connect(scene.weir.openflow).expect("connect to Weir");
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("send");
    assert_hangs_up(&mut stranger);
    // These bytes are the header of a message of 21,536 bytes. The rest of the message does not arrive.
    let late = ["WARN", "did not complete the handshake", "peer=127.0.0.1"];
    scene.weir.expect_log(0, &late);
    let mut stranger = TcpStream::connect(scene.weir.openflow).expect("connect to Weir");
    stranger.write_all(&Message::new(ECHO_REQUEST, 1, &[]).bytes()).expect("send");
    assert_hangs_up(&mut stranger);
    let failed = ["WARN", "a switch failed the handshake", "peer=127.0.0.1", "reason="];
    scene.weir.expect_log(0, &failed);
    scene.red_is_well();
}

#[test]
fn a_switch_of_an_unsupported_version_gets_hello_failed_incompatible() {
    const OPENFLOW_11: u8 = 2;
    let scene = Scene::new();
    let mut stream = TcpStream::connect(scene.weir.openflow).expect("connect to Weir");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
        .write_all(&Message { version: OPENFLOW_11, ..Message::new(HELLO, 1, &[]) }.bytes())
        .expect("send");
    let refusal = loop {
        let message = read_message(&stream).expect("an ERROR before the end");
        if message.kind == ERROR {
            break message;
        }
    };
    assert_eq!(refusal.error(), INCOMPATIBLE);
    assert_hangs_up(&mut stream);
    scene.red_is_well();
}

#[test]
fn a_switch_that_sends_single_bytes_slowly_is_served() {
    let weir = Weir::serve("");
    let mut stream = TcpStream::connect(weir.openflow).expect("connect to Weir");
    stream.set_nodelay(true).expect("TCP_NODELAY");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    drip(&mut stream, &Message::new(HELLO, 1, &[]).bytes());
    let mut features = 9u64.to_be_bytes().to_vec();
    features.extend([0; 16]);
    loop {
        let request = read_message(&stream).expect("the handshake goes on");
        if request.kind == FEATURES_REQUEST {
            drip(&mut stream, &Message::new(FEATURES_REPLY, request.xid, &features).bytes());
            break;
        }
    }
    drip(&mut stream, &Message::new(ECHO_REQUEST, 77, b"slowly").bytes());
    loop {
        let message = read_message(&stream).expect("an ECHO_REPLY");
        if message.kind == ECHO_REPLY {
            assert_eq!((message.xid, message.body.as_slice()), (77, b"slowly".as_slice()));
            break;
        }
    }
    weir.wait_for_switches(1);
}

fn drip(stream: &mut TcpStream, bytes: &[u8]) {
    for byte in bytes {
        stream.write_all(&[*byte]).expect("send a byte");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_controller_that_never_reads_loses_only_packet_ins_of_its_own_tenant() {
    const PACKETS: usize = 60_000;
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind to a free port");
    let red = Controller::listen();
    let deaf = format!("tcp:{}", listener.local_addr().expect("the port"));
    let weir =
        Weir::serve(&(by_port("red", &red.name(), [1, 2]) + &by_port("blue", &deaf, [3, 4])));
    let switch = Switch::connect(weir.openflow, 1, PORTS);
    let red = red.switch(0);
    let (mut blue, _) = listener.accept().expect("Weir connects");
    blue.write_all(&Message::new(HELLO, 1, &[]).bytes()).expect("send HELLO");
    blue.write_all(&Message::new(FEATURES_REQUEST, 2, &[]).bytes()).expect("send a request");

    let frame = vec![0; 1400];
    for _ in 0..PACKETS {
        switch.packet_in(3, &frame);
    }
    switch.packet_in(1, &a_frame());
    red.expect(PACKET_IN);
    eventually("what blue does not read is dropped and counted", || {
        weir.metric("weir_packet_in_dropped_total", &["tenant=\"blue\"", "reason=\"queue_full\""])
            > 1000.0
    });
    assert!(weir.memory() < 64 * MEBIBYTE, "{} bytes resident", weir.memory());
    assert!(red.answers_echo(3));
}

/// A controller sends requests, and reads no replies. When the buffer for its replies is full, Weir disconnects the
/// controller and logs its address.
#[test]
fn a_controller_that_does_not_read_its_replies_is_disconnected() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind to a free port");
    let red = Controller::listen();
    let deaf = format!("tcp:{}", listener.local_addr().expect("the port"));
    let scheduler = "[scheduler]\ncontroller_buffer = 131072\ncontroller_buffer_limit = 131072\n";
    let tenants = by_port("red", &red.name(), [1, 2]) + &by_port("blue", &deaf, [3, 4]);
    let weir = Weir::serve(&(scheduler.to_owned() + &tenants));
    let _switch = Switch::connect(weir.openflow, 1, PORTS);
    let (mut blue, _) = listener.accept().expect("Weir connects");
    blue.write_all(&Message::new(HELLO, 1, &[]).bytes()).expect("send HELLO");
    let echo = Message::new(ECHO_REQUEST, 2, &[0; 60_000]).bytes();
    // The socket buffers of the kernel hold some megabytes of replies.
    let sent = (0..2_000).take_while(|_| blue.write_all(&echo).is_ok()).count();
    assert!((3..2_000).contains(&sent), "{sent} requests");
    let line = weir.expect_log(0, &["WARN", "controller disconnected", "tenant=\"blue\"", &deaf]);
    assert!(line.contains("does not read its replies"), "{line}");
    let lost = ["tenant=\"blue\"", "reason=\"fault\""];
    assert!(weir.metric("weir_controller_lost_total", &lost) >= 1.0);
    assert!(red.switch(0).answers_echo(3));
}

#[test]
fn a_switch_that_never_reads_does_not_block_another_switch() {
    let controller = Controller::listen();
    let weir = Weir::serve(&by_port("red", &controller.name(), [1, 2]));
    let well = Switch::connect(weir.openflow, 1, PORTS);
    let at_well = controller.switch(0);
    let stuck = Switch::connect(weir.openflow, 2, PORTS);
    let at_stuck = controller.switch(1);
    stuck.peer.stop_reading();

    let flood = at_stuck.clone();
    let flooder = thread::spawn(move || {
        let message = Message::new(PACKET_OUT, 1, &packet_out(1, 2, &[0; 1400]));
        // Weir stops reading, so `send` blocks. The end of the connection ends this thread.
        for _ in 0..40_000 {
            flood.send(&message);
        }
    });
    for xid in 0..50 {
        at_well.send(&Message::new(BARRIER_REQUEST, xid, &[]));
        at_well.expect_reply(BARRIER_REPLY, xid);
    }
    well.packet_in(1, &a_frame());
    at_well.expect(PACKET_IN);
    assert!(weir.memory() < 64 * MEBIBYTE, "{} bytes resident", weir.memory());
    stuck.peer.close();
    at_stuck.close();
    flooder.join().expect("the flooder ends with its connection");
    // PACKET_OUTs that wait for the switch are lost with the connection of the switch.
    let lost = ["tenant=\"red\"", "direction=\"lost\"", "type=\"packet_out\""];
    eventually("what waited is counted", || weir.metric("weir_messages_total", &lost) >= 1.0);
}

#[test]
fn a_switch_that_disconnects_in_the_middle_of_a_message_can_reconnect() {
    let scene = Scene::new();
    let second = Switch::connect(scene.weir.openflow, 2, PORTS);
    scene.weir.wait_for_switches(2);
    let half = &Message::new(PACKET_IN, 0, &[0; 100]).bytes()[..50];
    second.peer.send_bytes(half);
    second.peer.close();
    scene.weir.wait_for_switches(1);
    let back = Switch::connect(scene.weir.openflow, 2, PORTS);
    scene.weir.wait_for_switches(2);
    assert!(back.peer.answers_echo(5));
    scene.red_is_well();
}

#[test]
fn a_second_switch_with_the_same_dpid_is_disconnected() {
    let scene = Scene::new();
    let impostor = Switch::connect(scene.weir.openflow, 1, PORTS);
    assert!(impostor.peer.is_closed());
    eventually("it is counted", || {
        scene.weir.metric("weir_connections_rejected_total", &["reason=\"duplicate_dpid\""]) >= 1.0
    });
    scene.red_is_well();
}

#[test]
fn a_silent_switch_is_disconnected_after_the_handshake_timeout() {
    let scene = Scene::new();
    let began = Instant::now();
    let mut silent = TcpStream::connect(scene.weir.openflow).expect("connect to Weir");
    assert_hangs_up(&mut silent);
    // The timeout of the handshake is 10 s. The disconnection is not earlier, and no longer timeout causes it.
    let lasted = began.elapsed().as_secs();
    assert!((9..20).contains(&lasted), "{lasted} s");
    let timeout = ["peer=\"switch\"", "reason=\"timeout\""];
    eventually("the silent connection is counted", || {
        scene.weir.metric("weir_connections_rejected_total", &timeout) >= 1.0
    });
    scene.weir.expect_log(0, &["WARN", "did not complete the handshake", "peer=127.0.0.1"]);
    scene.red_is_well();
}

fn assert_hangs_up(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        // The kernel resets the connection if Weir has not read all received bytes.
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
}
