//! Tests of data sheets: `weir evaluate` measures a slow switch, and Weir limits the tenants of such a switch by its
//! data sheet.
//!
//! The switch is emulated: `weir evaluate` measures the switch in virtual time, and `weir serve` uses the same model
//! over a socket.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;
use std::time::Instant;

use emulate::{Network, Runner, Running, ServiceTime, SwitchIndex};
use openflow::{Version, VersionSet};
use serde_json::Value;

use crate::slices::by_port;
use crate::support::browser::Browser;
use crate::support::eventually;
use crate::support::folder::Folder;
use crate::support::requirements::{Needs, needs};
use crate::support::scripted::{
    BARRIER_REPLY, BARRIER_REQUEST, Controller, ERROR, FLOW_MOD, Message, PACKET_OUT, Peer,
    STATS_REQUEST, add_flow, frame, packet_out,
};
use crate::support::weir::{Weir, run};

/// Messages of any type that the switch can process per second.
const ABLE: u32 = 300;
/// Rules that the switch's table holds. The experiment with statistics needs 1,024 rules.
const TABLE: usize = 1_500;
/// Messages that a busy switch can queue.
const QUEUE: usize = 128;
const SWITCH: SwitchIndex = SwitchIndex(0);
/// FLOW_MODs of the hostile tenant: more than half of the table holds.
const FLOWS: u16 = 900;

/// Runs `weir evaluate all` on the switch. Returns the path of the data sheet.
fn evaluate(folder: &Path) -> String {
    let out = folder.join("sheet").display().to_string();
    let (slow, capacity) = (format!("slow={ABLE}"), format!("capacity={TABLE}"));
    let arguments = [
        "evaluate", "all", "--switch", "emulated", "--fault", &slow, "--fault", &capacity,
        "--quick", "--out", &out,
    ];
    let (code, _, talk) = run(&arguments);
    assert!(matches!(code, Some(0 | 1)), "{code:?} {talk}");
    format!("{out}/datasheet.json")
}

/// Connects the same emulated switch over a socket.
fn switch(weir: &Weir, max_flows: usize) -> Running {
    let network = Network::single(4, |config| {
        config.versions = VersionSet::only(Version::V1_0);
        config.max_flows = max_flows;
        config.n_buffers = 0;
    });
    let address = format!("tcp:{}", weir.openflow).parse().expect("an address");
    let running = Runner::new(network)
        .dial(SWITCH, address)
        .service(SWITCH, ServiceTime::per_second(ABLE))
        .queue(SWITCH, QUEUE)
        .start();
    running.expect("an emulated switch")
}

/// A quiet tenant and a hostile tenant, each with half of the ports of a switch.
struct Scene {
    weir: Weir,
    switch: Running,
    quiet: Peer,
    hostile: Peer,
    _controllers: [Controller; 2],
}

impl Scene {
    fn new(more: &str, max_flows: usize) -> Scene {
        let controllers = [Controller::listen(), Controller::listen()];
        let [quiet, hostile] = &controllers;
        let tenants =
            by_port("quiet", &quiet.name(), [1, 2]) + &by_port("hostile", &hostile.name(), [3, 4]);
        let weir = Weir::serve(&format!("{more}{tenants}"));
        let switch = switch(&weir, max_flows);
        let (quiet, hostile) = (quiet.switch(0), hostile.switch(0));
        Scene { weir, switch, quiet, hostile, _controllers: controllers }
    }

    fn counters(&self) -> emulate::Counters {
        self.switch.counters(SWITCH).expect("counters")
    }

    /// The quiet tenant sends a FLOW_MOD and a BARRIER_REQUEST again and again, until the hostile tenant has its
    /// BARRIER_REPLY. Returns the number of BARRIER_REPLYs of the quiet tenant.
    fn ask_until(&self, xid: u32) -> u32 {
        let mut asked = 0;
        while !self.hostile.has_reply(BARRIER_REPLY, xid) {
            asked += 1;
            self.quiet.send(&Message::new(FLOW_MOD, 0, &add_flow(1, 2, (asked % 500) as u16, 1)));
            self.quiet.send(&Message::new(BARRIER_REQUEST, asked, &[]));
            self.quiet.expect_reply(BARRIER_REPLY, asked);
        }
        asked
    }

    fn limits(&self) -> Value {
        let (status, text) = self.weir.get("/api/v1/limits");
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).expect("JSON")
    }
}

/// Sends all messages of the hostile tenant at once, and then a BARRIER_REQUEST.
fn send_all(peer: &Peer, messages: impl Iterator<Item = Message>, xid: u32) {
    let mut bytes: Vec<u8> = messages.flat_map(|message| message.bytes()).collect();
    bytes.extend(Message::new(BARRIER_REQUEST, xid, &[]).bytes());
    let peer = peer.clone();
    // Weir does not read messages that it cannot forward, so `send_bytes` blocks.
    thread::spawn(move || peer.send_bytes(&bytes));
}

/// FLOW_MODs for more entries than the tenant's share of the table.
fn flows() -> impl Iterator<Item = Message> {
    (0..FLOWS).map(|n| Message::new(FLOW_MOD, 1, &add_flow(3, 4, n + 1, 2)))
}

/// PACKET_OUTs, STATS_REQUESTs for the statistics of all ports, FLOW_MODs and BARRIER_REQUESTs, in turn.
fn mixture(count: u16) -> impl Iterator<Item = Message> {
    let packet = frame(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let ports = [&[0, 4, 0, 0], &[0xff, 0xff, 0, 0, 0, 0, 0, 0][..]].concat();
    (0..count).map(move |n| match n % 4 {
        0 => Message::new(PACKET_OUT, 2, &packet_out(0xffff, 4, &packet)),
        1 => Message::new(STATS_REQUEST, 2, &ports),
        2 => Message::new(FLOW_MOD, 2, &add_flow(3, 4, 1, 3)),
        _ => Message::new(BARRIER_REQUEST, 2, &[]),
    })
}

#[test]
fn data_sheet_limits_keep_a_hostile_tenant_from_overflowing_a_slow_switch() {
    let folder = Folder::new();
    let sheet = evaluate(folder.path());
    let scene = Scene::new(&format!("[switches]\ndatasheet = \"{sheet}\"\n"), TABLE);
    eventually("limits come from the sheet", || {
        let limits = scene.limits();
        limits["datasheets"][0]["used"] == true
            && limits["rates"].as_array().is_some_and(|it| it.len() == 10)
    });

    // The hostile tenant sends FLOW_MODs for more entries than its share of the table.
    let begin = Instant::now();
    let before = scene.counters();
    send_all(&scene.hostile, flows(), 0xf1);
    let asked = scene.ask_until(0xf1);
    let (after, took) = (scene.counters(), begin.elapsed().as_secs_f64());
    assert!(asked > 3, "the quiet tenant was served beside: {asked}");
    let done = (after.received[14] - before.received[14]) as f64 - f64::from(asked);
    // The hostile tenant may use half of the switch's rate, and a burst of a tenth of a second.
    let share = f64::from(ABLE) / 2.0;
    assert!(done <= share * (took + 0.1) + 2.0, "{done} in {took} s");
    assert_eq!(done, TABLE as f64 / 2.0, "half of the table");
    assert_eq!(scene.hostile.count(ERROR), usize::from(FLOWS) - TABLE / 2);
    assert_eq!(scene.quiet.count(ERROR), 0);

    // The hostile tenant sends messages of all types at once.
    let (begin, before) = (Instant::now(), scene.counters());
    send_all(&scene.hostile, mixture(600), 0xf2);
    let asked = scene.ask_until(0xf2);
    let (after, took) = (scene.counters(), begin.elapsed().as_secs_f64());
    assert!(asked > 3, "the quiet tenant was served beside: {asked}");
    let done = after.received[13] - before.received[13];
    assert_eq!(done, 150);
    // Each fourth message of the mixture is a PACKET_OUT.
    assert!(done as f64 <= (share * (took + 0.1) + 2.0) / 4.0, "{done} in {took} s");

    // By the counters of the switch, no message was lost, and the switch sent no ERROR.
    let counters = scene.counters();
    assert_eq!((counters.overflowed, counters.sent[1]), (0, 0), "{counters:?}");
}

#[test]
fn a_slow_switch_overflows_without_a_data_sheet() {
    let scene = Scene::new("", TABLE);
    send_all(&scene.hostile, flows(), 0xf1);
    eventually("the switch's queue overflows", || scene.counters().overflowed > 0);
}

#[test]
fn the_web_page_shows_the_data_sheet_as_source_of_limits() {
    needs!(the_web_page_shows_the_data_sheet_as_source_of_limits:
        Needs::Program("chromium"), Needs::Program("chromedriver"));
    let folder = Folder::new();
    let sheet = evaluate(folder.path());
    let scene = Scene::new(&format!("[switches]\ndatasheet = \"{sheet}\"\n"), 1_000_000);
    let browser = Browser::start();
    browser.resize(1440, 900);
    browser.go(&format!("http://{}/#/tenants/quiet", scene.weir.api));
    browser.click("details.limits summary");
    browser.shows("of 1500 rules that a table holds by the data sheet");
    browser.shows("by the experiment packet-out");
    browser.shows("weight 1 of 2");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_data_sheet_is_set_per_switch_reloaded_and_refused_when_damaged() {
    let folder = Folder::new();
    let path = evaluate(folder.path());
    let text = fs::read_to_string(&path).expect("a data sheet");
    let write = |text: &str| fs::write(&path, text).expect("a data sheet");
    let named = format!(
        "[[switches]]\ndpid = \"any\"\ndatasheet = \"{path}\"\n[[switches]]\ndpid = \"1\"\n"
    );
    // The switch reports a table of 1,000,000 entries, which Weir does not use as a limit.
    let scene = Scene::new(&named, 1_000_000);
    // Returns the quiet tenant's rate for a message class, and the figure of the data sheet that gives this rate.
    let rate = |class: &str| {
        let limits = scene.limits();
        let rates = limits["rates"].as_array().cloned().unwrap_or_default();
        let found = rates.into_iter().find(|it| it["tenant"] == "quiet" && it["messages"] == class);
        found.map(|it| {
            (it["per_second"].as_f64().unwrap_or(0.0).round(), it["measured"]["figure"].clone())
        })
    };
    let echo = Some((f64::from(ABLE) / 2.0, "safe_rates.echo".into()));
    let barrier = Some((f64::from(ABLE) / 2.0, "safe_rates.barrier".into()));
    let other = || rate("other");
    eventually("limits come from the sheet", || [&echo, &barrier].contains(&&other()));
    assert!(
        rate("packet_out")
            .is_some_and(|(rate, _)| (0.95..=1.0).contains(&(rate * 2.0 / f64::from(ABLE))))
    );

    // A reload takes over the figures of a new measurement.
    let mut sheet: Value = serde_json::from_str(&text).expect("JSON");
    sheet["safe_rates"]["barrier"] = 100.0.into();
    write(&sheet.to_string());
    scene.weir.hang_up();
    let changed = Some((50.0, "safe_rates.barrier".into()));
    eventually("a reload takes another sheet", || other() == changed);
    let (_, stdout, _) = run(&["ctl", "--api", &scene.weir.api.to_string(), "limits"]);
    // `weir ctl` breaks long reasons into lines.
    let stdout = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        stdout.contains("of 100 per second (safe_rates.barrier by the experiment barrier"),
        "{stdout}"
    );
    assert!(stdout.contains("rules that a table holds by the data sheet"), "{stdout}");

    // With a damaged data sheet the reload is refused, and the earlier limits stay.
    for (wrong, why) in [
        (text.replace("\"schema\": 2", "\"schema\": 3"), "schema 3"),
        (text[..text.len() / 2].to_owned(), "damaged"),
        (String::new(), "damaged"),
    ] {
        write(&wrong);
        let mark = scene.weir.log_mark();
        scene.weir.hang_up();
        scene.weir.expect_log(mark, &["the data sheet", why]);
        scene.weir.expect_log(mark, &["the configuration was refused"]);
        assert_eq!(other(), changed);
        let (code, _, error) = run(&["check", &scene.weir.folder.join("weir.toml")]);
        assert!(code == Some(2) && error.contains(why), "{code:?} {error}");
    }

    // Weir does not use a data sheet of another switch.
    sheet["switch"]["software"] = "another".into();
    write(&sheet.to_string());
    let mark = scene.weir.log_mark();
    scene.weir.hang_up();
    scene.weir.expect_log(mark, &["the data sheet is not used", "another"]);
    eventually("limits are gone", || other().is_none());
    assert_eq!(scene.limits()["datasheets"][0]["used"], false);
    let (_, stdout, _) = run(&["ctl", "--api", &scene.weir.api.to_string(), "limits"]);
    assert!(stdout.contains("is not used: the switch describes itself as"), "{stdout}");

    // `weir check --limits` prints the limits without a switch.
    write(&text);
    let (code, stdout, error) = run(&["check", "--limits", &scene.weir.folder.join("weir.toml")]);
    assert_eq!(code, Some(0), "{error}");
    for line in [
        "limits come from the data sheet",
        "emulated switch",
        "  quiet: 1 of 2 of each table",
        "750 of the 1500",
        "    flow_mod: 14",
    ] {
        assert!(stdout.contains(line), "{line}: {stdout}");
    }
}
