//! What an idle connection costs: opens many, lets a message through each, and looks at the
//! process's memory.
//!
//! ```sh
//! cargo run --release -p weir-channel --example idle_memory COUNT [KEY CERT CA]
//! ```
//!
//! Both ends live in this process, so the figure per end is half of the growth. With the three
//! files (one certificate that its own CA file vouches for) the connections are TLS.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "an example talks, and may fail")]

use channel::{Address, Connection, Event, EventLoop, Listener, Options, Scheme, Tls, TlsFiles};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(1000);
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
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("a higher limit");

    let mut address: Address = "tcp:127.0.0.1:0".parse().expect("an address");
    if tls.is_some() {
        address.scheme = Scheme::Ssl;
    }
    let listener = Listener::bind(&address, tls.as_ref(), Options::default()).expect("listen");
    let mut events = EventLoop::new().expect("an event loop");
    let mut list: Vec<Event> = Vec::new();
    let before = resident();
    let mut ends: Vec<Connection> = Vec::new();
    for _ in 0..count {
        let dialled = Connection::dial(&listener.address(), tls.as_ref(), &Options::default());
        let mut dialled = dialled.expect("dial");
        let mut accepted = loop {
            if let Some((connection, _)) = listener.accept().expect("accept") {
                break connection;
            }
        };
        events.register(&mut dialled).expect("register");
        events.register(&mut accepted).expect("register");
        dialled.push(&[1, 0, 0, 8, 0, 0, 0, 1]).expect("room");
        let mut greeted = false;
        while !greeted {
            for end in [&mut dialled, &mut accepted] {
                end.flush().expect("flush");
                end.receive(4096);
                while end.next_frame().expect("a frame").is_some() {
                    greeted = true;
                }
            }
            events.wait(&mut list, Some(std::time::Duration::from_millis(1))).expect("wait");
        }
        ends.extend([dialled, accepted]);
    }
    let grown = resident() - before;
    let buffers: usize = ends.iter().map(Connection::memory).sum();
    println!(
        "{} ends, {:?}: {} KiB resident in all, {:.1} KiB per end, {buffers} bytes in our buffers",
        ends.len(),
        listener.address().scheme,
        grown >> 10,
        grown as f64 / 1024.0 / ends.len() as f64,
    );
}

/// Resident memory of this process, in bytes (proc_pid_statm: the second number, in pages).
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0) * 4096
}
