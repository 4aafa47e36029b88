//! How long the forwarding path's steps take: cut a frame, parse it, edit it in place.
//!
//!     cargo run --release -p weir-openflow --example codec_speed

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

use openflow::{ListBuf, TooLong, frame, v10, v13};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 100_000;
const BATCHES: usize = 200;

fn main() -> Result<(), TooLong> {
    let packet = [0xab; 64];
    let mut packet_in = Vec::new();
    v10::PacketIn {
        buffer_id: 1,
        total_len: 64,
        in_port: v10::PortNo(3),
        reason: v10::PacketInReason::NO_MATCH,
        data: &packet,
    }
    .write_message(1, &mut packet_in)?;

    let mut match_ = v13::MatchBuf::new();
    match_.exact(v13::OxmField::IN_PORT, 3);
    let mut packet_in_13 = Vec::new();
    v13::PacketIn {
        buffer_id: 1,
        total_len: 64,
        reason: v13::PacketInReason::ACTION,
        table_id: 1,
        cookie: 9,
        match_: match_.as_match(),
        data: &packet,
    }
    .write_message(1, &mut packet_in_13)?;

    let actions = ListBuf::from([v10::Action::Output { port: v10::PortNo(2), max_len: 0 }]);
    let packet_out_body =
        v10::PacketOut { actions: actions.as_list(), data: &packet, ..v10::PacketOut::default() };
    let mut packet_out = Vec::new();
    packet_out_body.write_message(1, &mut packet_out)?;
    let mut out = Vec::with_capacity(4096);

    measure("1.0 PACKET_IN: cut, parse, set xid", || {
        let length = frame::next(black_box(&packet_in)).ok().flatten()?;
        let parsed = v10::PacketIn::parse(packet_in.get(8..length)?).ok()?;
        let sum = u32::from(parsed.in_port.0) + parsed.data.len() as u32;
        frame::set_xid(&mut packet_in, sum).then_some(sum)
    });
    measure("1.0 PACKET_IN: set buffer id, by type", || {
        frame::set_buffer_id(black_box(&mut packet_in), 7).then_some(1)
    });
    measure("1.3 PACKET_IN: cut, parse, set xid", || {
        let length = frame::next(black_box(&packet_in_13)).ok().flatten()?;
        let parsed = v13::PacketIn::parse(packet_in_13.get(8..length)?).ok()?;
        let sum = parsed.match_.in_port()?.0 + parsed.data.len() as u32;
        frame::set_xid(&mut packet_in_13, sum).then_some(sum)
    });
    measure("1.0 PACKET_OUT: cut, parse with its action, set xid and buffer id", || {
        let length = frame::next(black_box(&packet_out)).ok().flatten()?;
        let parsed = v10::PacketOut::parse(packet_out.get(8..length)?).ok()?;
        let sum = parsed.actions.count() as u32;
        (frame::set_xid(&mut packet_out, sum) && frame::set_buffer_id(&mut packet_out, sum))
            .then_some(sum)
    });
    measure("1.0 PACKET_OUT: write", || {
        out.clear();
        black_box(&packet_out_body).write_message(1, &mut out).ok()?;
        Some(out.len() as u32)
    });
    Ok(())
}

/// Prints the fastest of several batches: the others were disturbed.
fn measure(name: &str, mut step: impl FnMut() -> Option<u32>) {
    let mut fastest = f64::INFINITY;
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            black_box(step());
        }
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    let works = if step().is_some() { "" } else { "  (but it failed)" };
    println!("{:6.1} ns  {name}{works}", fastest / f64::from(ROUNDS) * 1e9);
}
