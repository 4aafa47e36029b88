//! Tests that a message costs no allocation in the steady state, for any number of messages per turn.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use allocation_counter::measure;
use std::time::Duration;

use channel::{Address, Connection, Event, EventLoop, Listener, Options, TimerKey, memory};

/// The number of allocations of this thread during `work`.
fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

const FRAME: [u8; 82] = {
    let mut frame = [7; 82];
    (frame[0], frame[1], frame[2], frame[3]) = (1, 10, 0, 82);
    frame
};

/// Relays messages for `turns` turns. In each turn `batch` messages and a part of the next message are relayed.
fn relay(
    from: &mut Connection,
    to: &mut Connection,
    out: &mut Connection,
    turns: usize,
    batch: usize,
) {
    for _ in 0..turns {
        for _ in 0..batch {
            from.push(&FRAME).unwrap();
        }
        from.push(&FRAME[..40]).unwrap();
        from.flush().unwrap();
        let_through(to, out);
        from.push(&FRAME[40..]).unwrap();
        from.flush().unwrap();
        let_through(to, out);
    }
}

fn let_through(to: &mut Connection, out: &mut Connection) {
    to.receive(64 << 10);
    while let Some(frame) = to.next_frame().unwrap() {
        out.push(frame).unwrap();
    }
    out.flush().unwrap();
}

#[test]
fn in_memory() {
    let options = Options::default();
    let (a, b) = memory::pair(1 << 20);
    let (c, mut sink) = memory::pair(1 << 20);
    let mut from = Connection::in_memory(a, &options);
    let mut to = Connection::in_memory(b, &options);
    let mut out = Connection::in_memory(c, &options);
    for batch in [1, 10, 500] {
        let mut drain = vec![0; 1 << 20];
        let mut turn = |turns| {
            for _ in 0..turns {
                relay(&mut from, &mut to, &mut out, 1, batch);
                let got = std::io::Read::read(&mut sink, &mut drain).unwrap();
                assert_eq!(got, (batch + 1) * FRAME.len());
            }
        };
        turn(10);
        assert_eq!(allocations(|| turn(100)), 0, "{batch} messages per turn");
    }
}

#[test]
fn event_loop_turns_allocate_no_memory() {
    let mut events = EventLoop::new().unwrap();
    let address: Address = "tcp:127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(&address, None, Options::default()).unwrap();
    let mut client = Connection::dial(&listener.address(), None, &Options::default()).unwrap();
    let mut server = loop {
        if let Some((connection, _)) = listener.accept().unwrap() {
            break connection;
        }
    };
    let token = events.register(&mut server).unwrap();
    let mut list = Vec::with_capacity(16);
    let mut echo = |turns: usize| {
        let mut frames = 0;
        for turn in 0..turns {
            client.push(&FRAME).unwrap();
            client.flush().unwrap();
            events.set_timer(TimerKey(1), events.now() + Duration::from_secs(5));
            while frames <= turn {
                events.wait(&mut list, Some(Duration::from_secs(5))).unwrap();
                for event in &list {
                    if let Event::Ready(ready) = event
                        && ready.token == token
                        && ready.readable
                    {
                        server.note(ready);
                        server.receive(64 << 10);
                        while let Some(frame) = server.next_frame().unwrap() {
                            assert_eq!(frame, FRAME);
                            frames += 1;
                        }
                    }
                }
            }
        }
    };
    echo(10);
    assert_eq!(allocations(|| echo(1000)), 0);
}
