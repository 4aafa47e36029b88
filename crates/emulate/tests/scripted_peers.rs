//! Tests of scripted peers with each other and with the runner.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod common;

use std::time::Duration;

use common::path;
use emulate::scripted::{Controller, Switch};
use emulate::{Config, Error, Network, Runner, ServiceTime, SwitchIndex};
use openflow::v10::{Action, FlowMod, Match, Message, PacketOut, PortNo};
use openflow::{ListBuf, Version, VersionSet, v13};

const SECONDS: Duration = Duration::from_secs(20);
const MOMENT: Duration = Duration::from_millis(10);
const V10: VersionSet = VersionSet::only(Version::V1_0);

fn controller(timeout: Duration) -> Controller {
    Controller::listen(&"tcp:127.0.0.1:0".parse().unwrap(), None, timeout).unwrap()
}

/// A scripted switch and the scripted controller that it is connected to.
fn pair() -> (Switch, emulate::scripted::Connected) {
    let mut controller = controller(SECONDS);
    let address = controller.address();
    let switch = std::thread::spawn(move || {
        let mut switch = Switch::dial(&address, None, Config::new(5, 3), SECONDS).unwrap();
        switch.shake_hands().unwrap();
        switch
    });
    let connected = controller.accept(V10).unwrap();
    (switch.join().unwrap(), connected)
}

#[test]
fn a_scripted_switch_and_a_scripted_controller_exchange_messages() {
    let (mut switch, mut controller) = pair();
    assert_eq!((controller.version, controller.dpid), (Version::V1_0, 5));
    let packet = path(1, 2).udp(1, 2, b"hello");
    switch.inject(1, &packet).unwrap();
    let packet_in = controller.expect(10).unwrap();
    let Message::PacketIn(body) = Message::parse(&packet_in).unwrap().1 else { panic!() };
    assert_eq!(body.data, packet);

    let actions = ListBuf::from([Action::Output { port: PortNo(2), max_len: 0 }]);
    let out =
        PacketOut { buffer_id: body.buffer_id, actions: actions.as_list(), ..PacketOut::default() };
    controller.say(&Message::PacketOut(out)).unwrap();
    switch.expect(13).unwrap();
    assert_eq!(switch.last_outcome().sent[0].frame, packet);

    // The switch holds the BARRIER_REQUEST and answers it late. The messages that arrive before the answer are kept in
    // order.
    let xid = controller.say(&Message::BarrierRequest).unwrap();
    let barrier = switch.hold(18).unwrap();
    controller.expect_nothing(MOMENT).unwrap();
    switch.with_model(|model, out| model.set_port_up(3, false, out)).unwrap();
    switch.handle(&barrier).unwrap();
    assert_eq!(controller.expect_answer(xid).unwrap()[1], 19);
    assert_eq!(controller.next_message().unwrap()[1], 12);

    let body = FlowMod { match_: Match::ANY, actions: actions.as_list(), ..FlowMod::default() };
    controller.say(&Message::FlowMod(body)).unwrap();
    assert_eq!(switch.serve_until_quiet(MOMENT).unwrap().len(), 1);
    assert_eq!(switch.model().flow_count(), 1);
    drop(controller);
    switch.peer().expect_closed().unwrap();
}

#[test]
fn a_missing_message_is_an_error_with_the_messages_received_instead() {
    let mut controller = controller(Duration::from_millis(100));
    let network = Network::single(1, |_| {});
    let running = Runner::new(network).dial_all(controller.address()).start().unwrap();
    let mut connected = controller.accept(VersionSet::SUPPORTED).unwrap();
    assert_eq!(connected.version, Version::V1_3);
    running
        .call(|network, _| network.switch_mut(SwitchIndex(0)).unwrap().set_link(1, false))
        .unwrap();
    let error = connected.expect(10).unwrap_err();
    let Error::TimedOut { what, instead } = &error else { panic!("{error}") };
    assert_eq!((what.as_str(), instead.len()), ("a message of type 10", 1));
    assert!(instead[0].contains("PortStatus"), "{error}");
    assert!(matches!(connected.expect_nothing(MOMENT), Err(Error::Unexpected { .. })));
    connected.expect_nothing(MOMENT).unwrap();
    let answer = connected.ask(&v13::Message::BarrierRequest).unwrap();
    assert_eq!(answer[1], 21);
    let refused = controller.accept(V10);
    assert!(refused.is_err(), "nobody else connects");
}

#[test]
fn a_slow_switch_answers_a_scripted_controller_after_the_service_time() {
    let mut controller = controller(SECONDS);
    let switch = SwitchIndex(0);
    let running = Runner::new(Network::single(1, |_| {}))
        .dial(switch, controller.address())
        .service(switch, ServiceTime { default: 0, by_type: vec![(18, 20_000_000)] })
        .start()
        .unwrap();
    let mut connected = controller.accept(V10).unwrap();
    let before = running.counters(switch).unwrap();
    connected.ask(&Message::BarrierRequest).unwrap();
    let after = running.counters(switch).unwrap();
    assert!(after.busy - before.busy >= Duration::from_millis(20));
    assert!(after.elapsed - before.elapsed >= Duration::from_millis(20));
}
