//! How fast the emulated switch is, and how exact a slow one: `cargo run --release --example speed`.
#![allow(clippy::print_stdout, reason = "this is a program for a terminal")]

use std::error::Error;
use std::time::{Duration, Instant};

use channel::blocking::Client;
use emulate::frame::build::{Path, host_mac};
use emulate::{Config, Network, Runner, ServiceTime, Switch, SwitchIndex};
use openflow::v10::{Action, FlowMod, Match, Message, PacketOut, PortNo, Wildcards};
use openflow::{ListBuf, Version, VersionSet};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    in_memory()?;
    slow_switch(8_000, 2)?;
    slow_switch(1_000, 2)
}

fn hello() -> Result<Vec<u8>> {
    let mut hello = Vec::new();
    openflow::Hello::write_message(VersionSet::only(Version::V1_0), 1, &mut hello)?;
    Ok(hello)
}

fn frame(message: Message<'_>) -> Result<Vec<u8>> {
    let mut frame = Vec::new();
    message.write(1, &mut frame)?;
    Ok(frame)
}

fn packet(n: u32) -> Vec<u8> {
    let path = Path { eth_src: host_mac(1), eth_dst: host_mac(2), ip_src: n, ip_dst: 2 };
    path.udp(1, 2, b"")
}

/// Repeats something for half a second and prints how often per second it can be done.
fn rate(what: &str, mut work: impl FnMut(u64)) {
    let start = Instant::now();
    let mut count = 0u64;
    while start.elapsed() < Duration::from_millis(500) {
        for _ in 0..1000 {
            work(count);
            count += 1;
        }
    }
    println!("{what:<44}{:>12.0} /s", count as f64 / start.elapsed().as_secs_f64());
}

fn in_memory() -> Result<()> {
    let mut out = Vec::new();
    let mut switch = Switch::new(Config::new(1, 4));
    switch.connect(&mut out);
    switch.handle_message(0, &hello()?, &mut out);
    let mut run = |what: &str, message: &[u8]| {
        rate(what, |now| {
            switch.handle_message(now, message, &mut out);
            out.clear();
        });
    };
    run("ECHO", &frame(Message::EchoRequest(&[]))?);
    let actions = ListBuf::from([Action::Output { port: PortNo(2), max_len: 0 }]);
    let data = packet(1);
    let body = PacketOut { actions: actions.as_list(), data: &data, ..PacketOut::default() };
    run("PACKET_OUT", &frame(Message::PacketOut(body))?);
    rate("PACKET_IN (table miss, buffered)", |now| {
        switch.receive_packet(now, 1, &data, &mut out);
        out.clear();
    });
    let wildcards = Wildcards::ALL.without(Wildcards::DL_TYPE).with_nw_src_prefix(32);
    let mut add = |switch: &mut Switch, n: u32| -> Result<()> {
        let match_ = Match { wildcards, dl_type: 0x0800, nw_src: n, ..Match::ANY };
        let body = FlowMod { match_, actions: actions.as_list(), ..FlowMod::default() };
        switch.handle_message(0, &frame(Message::FlowMod(body))?, &mut out);
        Ok(())
    };
    let start = Instant::now();
    for n in 0..100_000 {
        add(&mut switch, n)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{:<44}{:>12.0} /s", "FLOW_MOD (100,000 different)", 1e5 / seconds);
    let packets: Vec<Vec<u8>> = (0..100_000).map(packet).collect();
    rate("forwarding among 100,000 entries", |now| {
        if let Some(packet) = packets.get(now as usize % packets.len()) {
            switch.receive_packet(now, 1, packet, &mut out);
        }
    });
    Ok(())
}

/// Asks a slow switch for more than it can do, and looks at when the answers come.
fn slow_switch(per_second: u32, seconds: u32) -> Result<()> {
    let switch = SwitchIndex(0);
    let running = Runner::new(Network::single(1, |_| {}))
        .listen(switch, "tcp:127.0.0.1:0".parse()?)
        .service(switch, ServiceTime::per_second(per_second))
        .start()?;
    let address = running.listening_on(switch).ok_or("it listens")?;
    let mut client = Client::connect(&address, None, Duration::from_secs(60))?;
    client.send(&hello()?)?;
    client.receive()?;
    let count = (per_second * seconds) as usize;
    let all = frame(Message::EchoRequest(&[]))?.repeat(count);
    client.send(&all)?;
    let before = running.counters(switch).ok_or("it counts")?;
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        client.receive()?;
        times.push(Instant::now());
    }
    let after = running.counters(switch).ok_or("it counts")?;
    let mut gaps: Vec<f64> = times
        .windows(2)
        .map(|pair| match pair {
            [a, b] => (*b - *a).as_secs_f64() * 1e6,
            _ => 0.0,
        })
        .collect();
    gaps.sort_by(f64::total_cmp);
    let at = |share: f64| gaps.get((gaps.len() as f64 * share) as usize).copied().unwrap_or(0.0);
    let took = (times[count - 1] - times[0]).as_secs_f64();
    println!(
        "slow switch, {per_second}/s asked: {:.0}/s, gaps p1 {:.0} p50 {:.0} p99 {:.0} us, busy {:.1} %",
        (count - 1) as f64 / took,
        at(0.01),
        at(0.5),
        at(0.99),
        100.0 * after.busy_fraction_since(&before)
    );
    Ok(())
}
