//! Tests of many, silent, unlisted and flapping peers: no peer blocks other peers, fills the log, or is dialled without
//! need.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use crate::slices::by_port;
use crate::support::folder::Folder;
use crate::support::scripted::{
    BARRIER_REPLY, BARRIER_REQUEST, Controller, FLOW_MOD, HELLO, Message, STATS_REPLY,
    STATS_REQUEST, Switch, add_flow,
};
use crate::support::weir::{Weir, run};
use crate::support::{eventually, free_port};

const PORTS: &[u16] = &[1, 2, 3, 4];

/// Starts a controller that sends HELLO and closes each connection.
fn flapping() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind to a free port");
    let address = listener.local_addr().expect("the port");
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(&Message::new(HELLO, 1, &[]).bytes());
        }
    });
    address
}

/// Returns the state of a tenant's connection to its only controller, for the first switch.
fn contact(weir: &Weir, tenant: &str) -> Option<serde_json::Value> {
    let (_, text) = weir.get(&format!("/api/v1/tenants/{tenant}"));
    let tenant: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    tenant["switches"][0]["controllers"].get(0).cloned()
}

#[test]
fn a_controller_that_closes_after_hello_is_dialled_with_growing_delays() {
    const DIALS: u64 = 7;
    let red = Controller::listen();
    let openflow = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let api = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let config = format!(
        "[listen]\nopenflow = \"{openflow}\"\napi = \"{api}\"\n[reconnect]\nmin = \"20ms\"\nmax = \"1h\"\n{}{}",
        by_port("red", &red.name(), [1, 2]),
        by_port("blue", &format!("tcp:{}", flapping()), [3, 4])
    );
    let weir = Weir::start(Folder::new(), openflow, api, &config);
    let _switch = Switch::connect(weir.openflow, 1, PORTS);
    let red = red.switch(0);
    eventually("blue is dialled again and again, ever later", || {
        let Some(blue) = contact(&weir, "blue") else { return false };
        let (dials, retry) = (blue["dials"].as_u64(), blue["retry_after_ms"].as_u64());
        let (Some(dials), Some(retry)) = (dials, retry) else { return false };
        // The delay doubles with each dial, and is at least half of the doubled value. The counter may already include
        // one more dial.
        assert!(retry >= 10 << dials.saturating_sub(2), "after {dials} dials {retry} ms");
        assert_eq!(blue["last_error_reason"], "closed");
        dials >= DIALS
    });
    let lost = ["tenant=\"blue\"", "reason=\"closed\""];
    // The last dial may be counted before its connection has ended.
    eventually("each dial is counted as lost", || {
        weir.metric("weir_controller_lost_total", &lost) >= DIALS as f64
    });
    assert!(weir.metric("weir_controller_dials_total", &["tenant=\"blue\""]) >= DIALS as f64);
    assert!(weir.metric("weir_controller_dials_total", &["tenant=\"red\""]) < 1.5);
    let lines = weir.logged(&["tenant=\"blue\""]);
    assert_eq!(lines.len(), 2, "that it came and that it went: {lines:#?}");
    assert!(red.answers_echo(1));
}

#[test]
fn silent_connections_do_not_block_a_switch_or_fill_the_log() {
    const SILENT: usize = 300;
    let red = Controller::listen();
    let weir = Weir::serve_with_descriptors(256, &by_port("red", &red.name(), [1, 2]));
    let connect = || TcpStream::connect(weir.openflow).expect("connect to Weir");
    let silent: Vec<TcpStream> = (0..SILENT).map(|_| connect()).collect();
    let _switch = Switch::connect(weir.openflow, 1, PORTS);
    red.switch(0);
    assert_eq!(weir.get("/healthz").0, 200);
    let too_many = ["peer=\"switch\"", "reason=\"too_many\""];
    eventually("those that waited longest were turned away", || {
        weir.metric("weir_connections_rejected_total", &too_many) > 200.0
    });
    let lines = weir.logged(&["too many switches are shaking hands"]);
    assert!((1..=14).contains(&lines.len()), "{}", lines.len());
    drop(silent);
}

#[test]
fn controllers_cannot_take_file_descriptors_reserved_for_switches_and_rest() {
    const TENANTS: u16 = 10;
    const SWITCHES: u64 = 10;
    let controllers: Vec<Controller> = (0..TENANTS).map(|_| Controller::listen()).collect();
    let tenants = controllers.iter().enumerate().map(|(number, controller)| {
        let name = controller.name();
        format!(
            "[[tenants]]\nname = \"t{number}\"\ncontrollers = [\"{name}\"]\n[[tenants.flowspace]]\nmatch = \"ip,nw_src=10.{number}.0.0/16\"\n"
        )
    });
    let weir = Weir::serve_with_descriptors(160, &tenants.collect::<String>());
    let mut switches = Vec::new();
    for dpid in 1..=SWITCHES {
        switches.push(Switch::connect(weir.openflow, dpid, PORTS));
    }
    let refused = ["peer=\"controller\"", "reason=\"descriptors\""];
    eventually("some controllers are refused", || {
        weir.metric("weir_connections_rejected_total", &refused) > 20.0
    });
    let lost = ["tenant=\"t", "reason=\"descriptors\""];
    assert!(weir.metric("weir_controller_lost_total", &lost) > 20.0);
    // Weir publishes this metric a few times a second.
    eventually("three quarters of what is left are for controllers", || {
        let count = weir.metric("weir_file_descriptors", &["of=\"controllers\""]);
        (70.0..80.0).contains(&count)
    });
    weir.expect_log(0, &["WARN", "tenant=", "no file descriptor is left for this controller"]);
    // More switches can connect, and REST answers.
    for dpid in SWITCHES + 1..=SWITCHES + 5 {
        switches.push(Switch::connect(weir.openflow, dpid, PORTS));
    }
    weir.wait_for_switches(15);
    assert_eq!(weir.get("/healthz").0, 200);
}

#[test]
fn the_soft_limit_of_file_descriptors_is_raised_to_the_hard_limit() {
    let weir = Weir::serve_within("ulimit -Sn 256 && ulimit -Hn 1024", "");
    eventually("the limit is published", || {
        let limit = weir.metric("weir_file_descriptors", &["of=\"limit\""]);
        (limit - 1024.0).abs() < 0.5
    });
}

#[test]
fn an_unlisted_switch_is_disconnected_without_dialling_a_controller() {
    let (red, blue) = (Controller::listen(), Controller::listen());
    let elsewhere = format!(
        "[[tenants]]\nname = \"blue\"\ncontrollers = [\"{}\"]\n[[tenants.flowspace]]\nmatch = \"\"\npriority = 1\nswitches = [\"3\"]\n",
        blue.name()
    );
    let tenants = by_port("red", &red.name(), [1, 2]) + &elsewhere;
    let listed = |dpids: &[u64]| {
        let all = dpids.iter().map(|dpid| format!("[[switches]]\ndpid = \"{dpid:x}\"\n"));
        all.collect::<String>() + &tenants
    };
    let weir = Weir::serve(&listed(&[1]));
    let made_up = Switch::connect(weir.openflow, 2, PORTS);
    assert!(made_up.peer.is_closed());
    eventually("it is counted", || {
        weir.metric("weir_connections_rejected_total", &["reason=\"unlisted\""]) >= 1.0
    });
    weir.expect_log(0, &["WARN", "a switch is turned away", "00:02", "not among [[switches]]"]);
    assert_eq!((red.connections(), blue.connections()), (0, 0));

    let first = Switch::connect(weir.openflow, 1, PORTS);
    let red_first = red.switch(0);
    weir.write_config(&listed(&[2]));
    weir.hang_up();
    assert!(first.peer.is_closed(), "it is not listed any more");
    assert!(red_first.is_closed());
    let _second = Switch::connect(weir.openflow, 2, PORTS);
    let red_second = red.switch(1);
    red_second.send(&Message::new(BARRIER_REQUEST, 7, &[]));
    red_second.expect_reply(BARRIER_REPLY, 7);
    assert_eq!(blue.connections(), 0, "blue has nothing on these switches");
}

/// Returns a part of an endless statistics reply, with rules that have this cookie.
fn endless(question: &Message, cookie: &[u8]) -> Message {
    let mut rule = [0; 88];
    rule[1] = 88;
    rule[64..72].copy_from_slice(cookie);
    // OFPST_FLOW, and OFPSF_REPLY_MORE.
    Message::new(STATS_REPLY, question.xid, &[&[0, 1, 0, 1][..], &rule.repeat(700)].concat())
}

#[test]
fn endless_statistics_replies_share_a_memory_limit_and_block_no_new_switch() {
    let red = Controller::listen();
    let weir = Weir::serve(&by_port("red", &red.name(), [1, 2]));
    let first = Switch::connect(weir.openflow, 1, PORTS);
    // The strangers copy the cookie of one of red's rules: Weir keeps only rules with its own mark in the cookie.
    red.switch(0).send(&Message::new(FLOW_MOD, 1, &add_flow(1, 2, 5, 0)));
    let rule = first.peer.expect(FLOW_MOD);
    let cookie = &rule.body[40..48];
    let strangers: Vec<Switch> = (0x100..0x108)
        .map(|dpid| {
            let stranger = Switch::holding(weir.openflow, dpid, PORTS, STATS_REQUEST);
            let question = stranger.peer.expect(STATS_REQUEST);
            let part = endless(&question, cookie);
            // About eight thousand rules, without a last part.
            (0..12).for_each(|_| stranger.peer.send(&part));
            stranger
        })
        .collect();
    weir.expect_log(0, &["WARN", "switch disconnected", "no memory is left", "[[switches]]"]);
    let _second = Switch::connect(weir.openflow, 2, PORTS);
    assert!(red.switch(1).answers_echo(2), "a switch that comes later finds room");
    let waiting = strangers.iter().filter(|stranger| stranger.peer.answers_echo(3)).count();
    assert!((1..8).contains(&waiting), "Weir waits for the end of {waiting} answers");
}

#[test]
fn rest_changes_are_logged_with_the_peer_and_the_change() {
    let weir = Weir::serve(
        "[[tenants]]\nname = \"red\"\n[tenants.network]\naddresses = \"10.0.0.0/24\"\n\
         [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n",
    );
    let api = weir.api.to_string();
    let add = ["ctl", "--api", &api, "add", "red", "port", "0xa1 port 1", "--at", "1 port 3"];
    let dry = [&add[..], &["--dry-run"]].concat();
    assert_eq!(run(&dry).0, Some(0));
    assert_eq!(run(&add).0, Some(0));
    let changed = "a network was changed by REST";
    let line = weir.expect_log(0, &["INFO", changed, "tenant=\"red\"", "peer=127.0.0.1:"]);
    assert!(line.contains("+ port ") && line.contains("port 1"), "{line}");
    assert_eq!(weir.logged(&[changed]).len(), 1, "a dry run changes nothing");
    let wrong = ["ctl", "--api", &api, "remove", "red", "port", "0xa1 port 9"];
    assert_eq!(run(&wrong).0, Some(1));
    weir.expect_log(0, &["a change by REST was refused", "tenant=\"red\"", "peer=127.0.0.1:"]);
}
