//! How many sampled headers one core processes: `cargo bench -p weir-agent`.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and its own data is right"
)]

use agent::sflow::{DatagramBuilder, Origin};
use agent::{Collector, Exporter, Limits};
use std::net::UdpSocket;
use std::time::Instant;

const HEADERS: usize = 4_000_000;

fn main() {
    let origin = Origin { agent: [127, 0, 0, 1].into(), sub_agent: 0, interface: 1 };
    let frames: Vec<Vec<u8>> = (0..256_u32).map(frame).collect();
    let each = || frames.iter().cycle().take(HEADERS);

    let mut builder = DatagramBuilder::new(origin, 100.0);
    let mut datagrams = Vec::new();
    timed("written as sFlow", || {
        for frame in each() {
            if builder.is_full_for(frame.len())
                && let Some(bytes) = builder.finish(0)
                && datagrams.len() < 1000
            {
                datagrams.push(bytes.to_vec());
            }
            builder.add(frame, 1514);
        }
    });

    // Nobody reads: the kernel drops what does not fit, after all the work of sending.
    let sink = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = sink.local_addr().expect("its address");
    let mut exporter = Exporter::new(address, origin, 100.0).expect("an exporter");
    timed("written and sent over UDP", || {
        each().for_each(|frame| exporter.add(frame, 1514));
        exporter.flush();
    });
    println!("  {:?}", exporter.sent());

    let mut collector = Collector::new(Vec::new(), Limits::default());
    let per_datagram = 7;
    timed("read and added up by the collector", || {
        for bytes in datagrams.iter().cycle().take(HEADERS / per_datagram) {
            collector.add(bytes).expect("our own datagrams");
        }
    });
    println!("  {} samples", collector.total().samples);
}

fn timed(what: &str, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    let rate = HEADERS as f64 / start.elapsed().as_secs_f64();
    println!("{what}: {:.2} million headers/s", rate / 1e6);
}

/// 128 bytes of a UDP frame.
fn frame(number: u32) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 5, 0xdc, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0]);
    frame.extend((number as u16).to_be_bytes());
    frame.extend([10, 9, 9, 9, 0, 9, 0, 53]);
    frame.resize(128, 7);
    frame
}
