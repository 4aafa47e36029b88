//! A slow switch is evaluated, and tenants that share such a switch are held to what its data sheet says.
//!
//! The switch is emulated: `weir evaluate` measures it in virtual time, `weir serve` meets the same model over a socket.

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

/// Messages per second that the switch can do, of whatever kind.
const ABLE: u32 = 300;
/// Rules that its table holds. The experiment with statistics needs 1,024.
const TABLE: usize = 1_500;
/// Messages that it can keep while it is busy.
const QUEUE: usize = 128;
const SWITCH: SwitchIndex = SwitchIndex(0);
/// More than the half of the table.
const FLOWS: u16 = 900;

/// What `weir evaluate all` says of the switch.
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

/// The same switch over a socket.
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

/// Two tenants with half of the switch each, and how they are served.
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

    /// The quiet tenant asks for something now and then, until the hostile one has had its answer; how many answers it got.
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

/// All that a hostile tenant has to say, in one go, and a barrier behind.
fn send_all(peer: &Peer, messages: impl Iterator<Item = Message>, xid: u32) {
    let mut bytes: Vec<u8> = messages.flat_map(|message| message.bytes()).collect();
    bytes.extend(Message::new(BARRIER_REQUEST, xid, &[]).bytes());
    let peer = peer.clone();
    // Weir does not read what it cannot pass on, so this waits.
    thread::spawn(move || peer.send_bytes(&bytes));
}

/// FLOW_MODs for more entries than there is room for.
fn flows() -> impl Iterator<Item = Message> {
    (0..FLOWS).map(|n| Message::new(FLOW_MOD, 1, &add_flow(3, 4, n + 1, 2)))
}

/// PACKET_OUTs, questions for the description of all ports, barriers, changes.
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

    // More entries than there is room for, as fast as they are taken.
    let begin = Instant::now();
    let before = scene.counters();
    send_all(&scene.hostile, flows(), 0xf1);
    let asked = scene.ask_until(0xf1);
    let (after, took) = (scene.counters(), begin.elapsed().as_secs_f64());
    assert!(asked > 3, "the quiet tenant was served beside: {asked}");
    let done = (after.received[14] - before.received[14]) as f64 - f64::from(asked);
    // Half of what the switch can do, and a tenth of a second's worth at once.
    let share = f64::from(ABLE) / 2.0;
    assert!(done <= share * (took + 0.1) + 2.0, "{done} in {took} s");
    assert_eq!(done, TABLE as f64 / 2.0, "half of the table");
    assert_eq!(scene.hostile.count(ERROR), usize::from(FLOWS) - TABLE / 2);
    assert_eq!(scene.quiet.count(ERROR), 0);

    // Everything at once.
    let (begin, before) = (Instant::now(), scene.counters());
    send_all(&scene.hostile, mixture(600), 0xf2);
    let asked = scene.ask_until(0xf2);
    let (after, took) = (scene.counters(), begin.elapsed().as_secs_f64());
    assert!(asked > 3, "the quiet tenant was served beside: {asked}");
    let done = after.received[13] - before.received[13];
    assert_eq!(done, 150);
    // A PACKET_OUT is a quarter of the mixture.
    assert!(done as f64 <= (share * (took + 0.1) + 2.0) / 4.0, "{done} in {took} s");

    // By the switch's own account nothing was lost and nothing refused.
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
    // The switch says a million, which is no figure.
    let scene = Scene::new(&named, 1_000_000);
    // What a tenant may send, by the figure that it comes from.
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

    // Another measurement: a reload takes it.
    let mut sheet: Value = serde_json::from_str(&text).expect("JSON");
    sheet["safe_rates"]["barrier"] = 100.0.into();
    write(&sheet.to_string());
    scene.weir.hang_up();
    let changed = Some((50.0, "safe_rates.barrier".into()));
    eventually("a reload takes another sheet", || other() == changed);
    let (_, stdout, _) = run(&["ctl", "--api", &scene.weir.api.to_string(), "limits"]);
    // Long reasons are broken into lines.
    let stdout = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        stdout.contains("of 100 per second (safe_rates.barrier by the experiment barrier"),
        "{stdout}"
    );
    assert!(stdout.contains("rules that a table holds by the data sheet"), "{stdout}");

    // A damaged one: the reload is refused, and what was stays.
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

    // One of another switch is not used.
    sheet["switch"]["software"] = "another".into();
    write(&sheet.to_string());
    let mark = scene.weir.log_mark();
    scene.weir.hang_up();
    scene.weir.expect_log(mark, &["the data sheet is not used", "another"]);
    eventually("limits are gone", || other().is_none());
    assert_eq!(scene.limits()["datasheets"][0]["used"], false);
    let (_, stdout, _) = run(&["ctl", "--api", &scene.weir.api.to_string(), "limits"]);
    assert!(stdout.contains("is not used: the switch describes itself as"), "{stdout}");

    // What the file comes to, without a switch.
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
