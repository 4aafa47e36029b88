//! How fast one core moves frames from one connection to another: the floor under everything that
//! is built on this crate.
//!
//! ```sh
//! cargo run --release -p weir-channel --example relay_speed [SECONDS [KEY CERT CA]]
//! ```
//!
//! ```text
//!  source thread ──82-byte PACKET_INs──▶ relay thread ──▶ sink thread
//!                                        EventLoop, receive, next_frame, push, flush
//! ```
//!
//! It prints messages per second, and the relay thread's own CPU time per message, which stays
//! meaningful where the three threads share two cores. Two rates: as fast as the source can
//! (large batches), and one message per write (a wake-up each). With the three files (one
//! certificate that its own CA file vouches for) the source's side is TLS.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "an example talks, and may fail")]

use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use channel::blocking::Client;
use channel::{
    Address, Connection, Event, EventLoop, Flushed, Listener, Options, ReadState, Tls, TlsFiles,
};

const FRAME: [u8; 82] = {
    let mut frame = [0; 82];
    (frame[0], frame[1], frame[3]) = (1, 10, 82);
    frame
};
const WAIT: Duration = Duration::from_secs(10);
/// What the relay reads per turn.
const BUDGET: usize = 64 << 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seconds = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(3);
    let tls = match arguments.get(1..4) {
        Some([key, certificate, ca]) => {
            let files = TlsFiles {
                private_key: key.into(),
                certificate: certificate.into(),
                ca_certificate: ca.into(),
            };
            Some(Tls::load(&files).expect("an identity"))
        }
        _ => None,
    };
    for (name, batch, pause) in [
        ("saturation", 1000, Duration::ZERO),
        ("one message per write, 40,000/s", 1, Duration::from_micros(25)),
    ] {
        let outcome = run(Duration::from_secs(seconds), batch, pause, tls.as_ref());
        println!("{name}: {outcome}");
    }
}

fn run(length: Duration, batch: usize, pause: Duration, tls: Option<&Tls>) -> String {
    let sink = TcpListener::bind("127.0.0.1:0").expect("bind");
    let scheme = if tls.is_some() { "ssl" } else { "tcp" };
    let address: Address = format!("{scheme}:127.0.0.1:0").parse().expect("an address");
    let listener = Listener::bind(&address, tls, Options::default()).expect("listen");
    let onward = Address::tcp(sink.local_addr().expect("an address"));
    let entry = listener.address();
    let stop = Arc::new(AtomicBool::new(false));

    let source = std::thread::spawn({
        let (stop, tls) = (stop.clone(), tls.cloned());
        move || {
            let stream = Client::connect(&entry, tls.as_ref(), WAIT).expect("connect");
            send(stream, batch, pause, &stop);
        }
    });
    let sink = std::thread::spawn(move || {
        let (mut stream, _) = sink.accept().expect("accept");
        let mut buffer = vec![0; 1 << 20];
        while stream.read(&mut buffer).expect("read") > 0 {}
    });
    std::thread::spawn(move || {
        std::thread::sleep(length);
        stop.store(true, Ordering::Relaxed);
    });
    let outcome = relay(&listener, &onward);
    source.join().expect("source");
    sink.join().expect("sink");
    outcome
}

fn send(mut stream: Client, batch: usize, pause: Duration, stop: &AtomicBool) {
    let bytes = FRAME.repeat(batch);
    let start = Instant::now();
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        // Open loop: what could not be sent in time is sent late, not left out.
        if start.elapsed() < pause * sent {
            std::thread::yield_now();
            continue;
        }
        stream.send(&bytes).expect("send");
        sent += 1;
    }
}

fn relay(listener: &Listener, onward: &Address) -> String {
    let mut events = EventLoop::new().expect("an event loop");
    let mut from = loop {
        if let Some((connection, _)) = listener.accept().expect("accept") {
            break connection;
        }
    };
    let mut to = Connection::dial(onward, None, &Options::default()).expect("dial");
    let source = events.register(&mut from).expect("register");
    events.register(&mut to).expect("register");

    let (mut messages, mut turns) = (0_u64, 0_u64);
    let mut list = Vec::new();
    let (start, cpu_start) = (Instant::now(), cpu_time());
    let mut closed = false;
    while !closed {
        // In TLS the handshake's answers, too, have to be written.
        if from.wants_write() {
            from.flush().expect("flush");
        }
        events.wait(&mut list, None).expect("wait");
        for event in &list {
            let Event::Ready(ready) = event else { continue };
            if ready.token != source {
                continue;
            }
            from.note(ready);
        }
        turns += 1;
        // Only what the other side has room for is read; a full send buffer is back-pressure.
        let flushed = to.flush().expect("flush");
        if to.send_buffer().room() > BUDGET {
            match from.receive(BUDGET).state {
                ReadState::More => events.again(source),
                ReadState::Drained => {}
                ReadState::Closed(_) => closed = true,
            }
            while let Some(frame) = from.next_frame().expect("a frame") {
                to.push(frame).expect("room was checked");
                messages += 1;
            }
            to.flush().expect("flush");
        } else if flushed == Flushed::Empty {
            events.again(source);
        }
    }
    let (elapsed, cpu) = (start.elapsed(), cpu_time() - cpu_start);
    to.finish();
    format!(
        "{:.0} messages/s, {:.0} ns of CPU per message, {:.1} messages per turn, {:.1} per write",
        messages as f64 / elapsed.as_secs_f64(),
        cpu.as_nanos() as f64 / messages as f64,
        messages as f64 / turns as f64,
        messages as f64 / to.counters().writes as f64,
    )
}

/// CPU time of this thread so far, user and system (proc_pid_schedstat: the first number, in ns).
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    Duration::from_nanos(ns)
}
