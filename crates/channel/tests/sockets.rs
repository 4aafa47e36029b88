//! Tests with real sockets on loopback: event loop, dialling, closing, fairness, memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use channel::blocking::Client;
use channel::{
    Address, Backoff, CloseReason, Connection, Dialer, Error, Event, EventLoop, Flushed, Handshake,
    Listener, Options, ReadState, Readiness, TimerKey, Token,
};
use openflow::{Version, VersionSet};

const WAIT: Duration = Duration::from_secs(30);

fn loopback() -> Address {
    "tcp:127.0.0.1:0".parse().unwrap()
}

fn listen() -> Listener {
    Listener::bind(&loopback(), None, Options::default()).unwrap()
}

/// A plain client of the standard library, and our end of its connection in an event loop.
struct Pair {
    events: EventLoop,
    ours: Connection,
    token: Token,
    /// `None` after the client is dropped.
    peer: Option<TcpStream>,
}

impl Pair {
    fn new() -> Self {
        let mut events = EventLoop::new().unwrap();
        let listener = listen();
        let peer = TcpStream::connect(listener.address().addr).unwrap();
        peer.set_nodelay(true).unwrap();
        let mut ours = accept(&listener);
        let token = events.register(&mut ours).unwrap();
        Pair { events, ours, token, peer: Some(peer) }
    }

    fn peer(&mut self) -> &mut TcpStream {
        self.peer.as_mut().unwrap()
    }

    /// The next event that reports our connection as readable.
    fn readable(&mut self) -> Readiness {
        readable(&mut self.events, self.token)
    }
}

fn accept(listener: &Listener) -> Connection {
    let deadline = Instant::now() + WAIT;
    loop {
        if let Some((connection, _)) = listener.accept().unwrap() {
            return connection;
        }
        assert!(Instant::now() < deadline, "no connection came");
        std::thread::yield_now();
    }
}

/// An address that refuses connections, and that no other test can use at the same time.
fn bound_but_not_listening() -> (OwnedFd, Address) {
    use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrIn};
    let flags = SockFlag::SOCK_CLOEXEC;
    let fd = socket::socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
    socket::bind(fd.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
    let name: SockaddrIn = socket::getsockname(fd.as_raw_fd()).unwrap();
    (fd, Address::tcp(SocketAddr::from((name.ip(), name.port()))))
}

fn readable(events: &mut EventLoop, token: Token) -> Readiness {
    let deadline = Instant::now() + WAIT;
    let mut list = Vec::new();
    while Instant::now() < deadline {
        events.wait(&mut list, Some(WAIT)).unwrap();
        for event in &list {
            if let Event::Ready(readiness) = event
                && readiness.token == token
                && readiness.readable
            {
                return *readiness;
            }
        }
    }
    panic!("nothing became readable");
}

#[test]
fn dialling_a_closed_port_is_refused() {
    let (_holder, address) = bound_but_not_listening();
    let backoff = Backoff::new(Duration::from_millis(100), WAIT, 1);
    let mut dialer = Dialer::new(address, None, Options::default(), backoff).unwrap();
    let mut connection = dialer.dial().unwrap();
    let mut events = EventLoop::new().unwrap();
    let token = events.register(&mut connection).unwrap();
    connection.push(&[1, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    readable(&mut events, token);
    let reason = CloseReason::ConnectFailed(ErrorKind::ConnectionRefused);
    assert_eq!(connection.receive(100).state, ReadState::Closed(reason.clone()));
    assert_eq!(connection.flush(), Err(reason.clone()));
    assert_eq!(reason.to_string(), "cannot connect: connection refused");
    let first = dialer.failed();
    assert!(Duration::from_millis(50) <= first && first <= Duration::from_millis(100));
    assert!(dialer.failed() >= Duration::from_millis(100));
    dialer.succeeded();
    assert!(dialer.failed() <= Duration::from_millis(100));
}

#[test]
fn bytes_pushed_before_the_connection_is_open_are_received() {
    let mut listener = listen();
    let mut events = EventLoop::new().unwrap();
    let listening = events.register(&mut listener).unwrap();
    let mut dialled = Connection::dial(&listener.address(), None, &Options::default()).unwrap();
    let token = events.register(&mut dialled).unwrap();
    dialled.push(&[1, 0, 0, 8, 0, 0, 0, 1]).unwrap();

    let mut accepted = None;
    let mut list = Vec::new();
    let deadline = Instant::now() + WAIT;
    while accepted.is_none() || dialled.wants_write() {
        assert!(Instant::now() < deadline);
        events.wait(&mut list, Some(WAIT)).unwrap();
        for event in &list {
            match event {
                Event::Ready(ready) if ready.token == listening => {
                    while let Some((connection, peer)) = listener.accept().unwrap() {
                        assert_eq!(Some(peer), connection.peer_address());
                        accepted = Some(connection);
                    }
                }
                Event::Ready(ready) if ready.token == token && ready.writable => {
                    assert_eq!(dialled.flush(), Ok(Flushed::Empty));
                    assert!(dialled.is_connected());
                }
                _ => {}
            }
        }
    }
    let mut accepted = accepted.unwrap();
    let token = events.register(&mut accepted).unwrap();
    readable(&mut events, token);
    assert_eq!(accepted.receive(100).bytes, 8);
    assert_eq!(accepted.next_frame().unwrap().unwrap(), [1, 0, 0, 8, 0, 0, 0, 1]);
    assert_eq!(dialled.local_address(), accepted.peer_address());
}

#[test]
fn listening_on_a_port_in_use_is_an_error_with_the_address() {
    let holder = listen();
    let taken = holder.address();
    let error = Listener::bind(&taken, None, Options::default()).unwrap_err();
    assert!(error.to_string().starts_with(&format!("listen on {taken}: ")), "{error}");
}

#[test]
fn tls_without_an_identity_is_an_error() {
    let address = "ssl:127.0.0.1:0".parse().unwrap();
    let is_missing = |error| matches!(error, Error::TlsMissing(a) if a == address);
    assert!(is_missing(Listener::bind(&address, None, Options::default()).unwrap_err()));
    assert!(is_missing(Connection::dial(&address, None, &Options::default()).unwrap_err()));
    let backoff = Backoff::new(WAIT, WAIT, 1);
    let dialer = Dialer::new(address, None, Options::default(), backoff);
    assert!(is_missing(dialer.unwrap_err()));
}

/// The close is detected whether the close and the last bytes arrive together or not, although `note` saves a read.
#[test]
fn a_close_by_the_peer_with_or_after_the_last_bytes_is_detected() {
    for pause in [false, true] {
        for _ in 0..50 {
            let mut pair = Pair::new();
            pair.peer().write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).unwrap();
            if pause {
                let readiness = pair.readable();
                assert!(!readiness.read_closed);
                pair.ours.note(&readiness);
                // The peer closes between the event and the read.
                pair.peer().shutdown(std::net::Shutdown::Write).unwrap();
                let received = pair.ours.receive(4096);
                assert_eq!((received.bytes, received.state), (8, ReadState::Drained));
            } else {
                pair.peer().shutdown(std::net::Shutdown::Write).unwrap();
            }
            let deadline = Instant::now() + WAIT;
            loop {
                assert!(Instant::now() < deadline);
                let readiness = pair.readable();
                pair.ours.note(&readiness);
                match pair.ours.receive(4096).state {
                    ReadState::Closed(reason) => {
                        assert_eq!(reason, CloseReason::PeerClosed);
                        break;
                    }
                    state => assert_eq!(state, ReadState::Drained),
                }
            }
            assert_eq!(pair.ours.next_frame().unwrap().map(|frame| frame.len()), Some(8));
            // The connection is half-closed: our direction still works.
            pair.ours.push(&[4, 0, 0, 8, 0, 0, 0, 2]).unwrap();
            assert_eq!(pair.ours.flush(), Ok(Flushed::Empty));
            let mut answer = [0; 8];
            pair.peer().read_exact(&mut answer).unwrap();
            assert_eq!(answer, [4, 0, 0, 8, 0, 0, 0, 2]);
        }
    }
}

#[test]
fn a_tcp_reset_is_reported_as_close_reason() {
    let mut pair = Pair::new();
    pair.ours.push(&[0; 64]).unwrap();
    pair.ours.flush().unwrap();
    // Closing with unread bytes makes the kernel send RST.
    drop(pair.peer.take());
    pair.readable();
    let state = pair.ours.receive(100).state;
    assert_eq!(state, ReadState::Closed(CloseReason::Reset(ErrorKind::ConnectionReset)));
}

/// A controller sends its last frame and closes its connection while we write to the controller.
#[test]
fn frames_received_before_a_tcp_reset_are_not_lost() {
    let mut pair = Pair::new();
    pair.ours.push(&[0; 64]).unwrap();
    pair.ours.flush().unwrap();
    pair.peer().write_all(&[1, 1, 0, 8, 0, 0, 0, 1]).unwrap();
    drop(pair.peer.take());
    let deadline = Instant::now() + WAIT;
    let reason = loop {
        assert!(Instant::now() < deadline);
        pair.ours.push(&[0; 64]).unwrap();
        if let Err(reason) = pair.ours.flush() {
            break reason;
        }
    };
    assert!(matches!(reason, CloseReason::Reset(_)), "{reason}");
    assert_eq!(pair.ours.flush(), Err(reason.clone()), "and again");
    let received = pair.ours.receive(100);
    assert_eq!((received.bytes, received.state), (8, ReadState::Closed(reason)));
    assert_eq!(pair.ours.next_frame().unwrap().unwrap(), [1, 1, 0, 8, 0, 0, 0, 1]);
}

/// Connections of an event loop, and their peers.
fn connections<const N: usize>(events: &mut EventLoop) -> [(Token, Connection, TcpStream); N] {
    let listener = listen();
    std::array::from_fn(|_| {
        let peer = TcpStream::connect(listener.address().addr).unwrap();
        let mut ours = accept(&listener);
        (events.register(&mut ours).unwrap(), ours, peer)
    })
}

/// A reader that stops early calls `again`, and gets another turn without new bytes, after the turns of the other
/// connections. A connection without unread bytes gets no turn.
#[test]
fn a_connection_with_unread_bytes_gets_turns_without_new_events() {
    let mut events = EventLoop::new().unwrap();
    let mut sides = connections::<3>(&mut events);
    sides[0].2.write_all(&[0; 4000]).unwrap();
    readable(&mut events, sides[0].0);
    assert_eq!(sides[0].1.receive(1000).state, ReadState::More);
    events.again(sides[0].0);
    events.again(sides[0].0);

    sides[1].2.write_all(&[0; 10]).unwrap();
    let mut list = Vec::new();
    let mut order = Vec::new();
    let deadline = Instant::now() + WAIT;
    while !order.contains(&1) || order.iter().filter(|who| **who == 0).count() < 4 {
        assert!(Instant::now() < deadline, "{order:?}");
        events.wait(&mut list, Some(Duration::ZERO)).unwrap();
        for event in &list {
            let Event::Ready(ready) = event else { panic!("{event:?}") };
            let who = sides.iter().position(|side| side.0 == ready.token).unwrap();
            if !ready.readable {
                continue;
            }
            order.push(who);
            if sides[who].1.receive(1000).state == ReadState::More {
                events.again(ready.token);
            }
        }
    }
    // 4,000 bytes with a budget of 1,000 bytes need three more turns, and a fourth turn finds nothing.
    assert_eq!(order.iter().filter(|who| **who == 0).count(), 4, "{order:?}");
    assert_eq!(sides[0].1.counters().received_bytes, 4000);
    events.wait(&mut list, Some(Duration::ZERO)).unwrap();
    assert_eq!(list, []);
}

/// A connection that has asked for another turn comes behind the others, also if the kernel reports it first.
#[test]
fn a_connection_that_asked_for_another_turn_comes_last() {
    let mut events = EventLoop::new().unwrap();
    let mut sides = connections::<2>(&mut events);
    sides[0].2.write_all(&[0; 2000]).unwrap();
    readable(&mut events, sides[0].0);
    assert_eq!(sides[0].1.receive(1000).state, ReadState::More);
    events.again(sides[0].0);
    sides[0].2.write_all(&[0; 10]).unwrap();
    sides[1].2.write_all(&[0; 10]).unwrap();
    let mut list = Vec::new();
    let deadline = Instant::now() + WAIT;
    loop {
        assert!(Instant::now() < deadline, "{list:?}");
        events.wait(&mut list, Some(Duration::ZERO)).unwrap();
        let turns: Vec<(Token, bool)> = list
            .iter()
            .map(|event| match event {
                Event::Ready(ready) => (ready.token, ready.again),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(turns.last(), Some(&(sides[0].0, true)));
        if turns.len() > 1 {
            assert_eq!(turns, [(sides[1].0, false), (sides[0].0, true)]);
            break;
        }
        // The kernel has not reported the other connection yet.
        events.again(sides[0].0);
    }
}

/// A requested turn starts at once, also when the kernel reports another event of the same connection.
#[test]
fn a_requested_turn_starts_without_sleep() {
    let mut pair = Pair::new();
    let readiness = |list: &[Event]| match list {
        [Event::Ready(ready)] => (ready.readable, ready.writable),
        other => panic!("{other:?}"),
    };
    let mut list = Vec::new();
    // The first event of the kernel for a new connection is "writable".
    pair.events.again(pair.token);
    pair.events.wait(&mut list, Some(WAIT)).unwrap();
    assert_eq!(readiness(&list), (true, true));

    let start = Instant::now();
    pair.events.again(pair.token);
    pair.events.wait(&mut list, Some(WAIT)).unwrap();
    assert_eq!(readiness(&list), (true, false));
    assert!(start.elapsed() < WAIT / 2, "it slept");
    pair.events.wait(&mut list, Some(Duration::ZERO)).unwrap();
    assert_eq!(list, []);
}

/// With an interval the loop sleeps until the interval after the last turn has passed, unless a turn is requested.
#[test]
fn turns_keep_the_set_interval_unless_a_turn_is_requested() {
    const INTERVAL: Duration = Duration::from_millis(20);
    let mut pair = Pair::new();
    let mut list = Vec::new();
    pair.events.set_interval(INTERVAL);
    pair.events.wait(&mut list, Some(Duration::ZERO)).unwrap();
    let last = pair.events.now();
    // An event is ready at once.
    pair.events.waker().wake().unwrap();
    pair.events.wait(&mut list, Some(WAIT)).unwrap();
    assert!(list.contains(&Event::Woken), "{list:?}");
    assert!(pair.events.now() - last >= INTERVAL);

    pair.events.set_interval(WAIT * 10);
    let start = Instant::now();
    pair.events.again(pair.token);
    pair.events.wait(&mut list, Some(WAIT)).unwrap();
    assert!(start.elapsed() < WAIT, "it slept");
}

/// An event for a deregistered connection does not reach the next connection with the same index.
#[test]
fn an_event_for_a_deregistered_connection_is_dropped() {
    let mut events = EventLoop::new().unwrap();
    let listener = listen();
    let mut peer = TcpStream::connect(listener.address().addr).unwrap();
    let mut first = accept(&listener);
    let old = events.register(&mut first).unwrap();
    peer.write_all(&[0; 8]).unwrap();
    readable(&mut events, old);
    events.again(old);
    events.deregister(old, &mut first).unwrap();

    let _other = TcpStream::connect(listener.address().addr).unwrap();
    let mut second = accept(&listener);
    let new = events.register(&mut second).unwrap();
    assert_eq!(new.index(), old.index(), "the index is used again");
    assert_ne!(new, old);
    let mut list = Vec::new();
    for _ in 0..3 {
        events.again(old);
        events.wait(&mut list, Some(Duration::from_millis(1))).unwrap();
        for event in &list {
            match event {
                Event::Ready(ready) => assert!(ready.token == new && !ready.readable, "{ready:?}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_connection_can_move_to_another_event_loop() {
    let mut pair = Pair::new();
    let mut other = EventLoop::new().unwrap();
    pair.events.deregister(pair.token, &mut pair.ours).unwrap();
    pair.peer().write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let mut ours = pair.ours;
    let length = std::thread::spawn(move || {
        let token = other.register(&mut ours).unwrap();
        readable(&mut other, token);
        ours.receive(100);
        ours.next_frame().unwrap().map(|frame| frame.len())
    })
    .join()
    .unwrap();
    assert_eq!(length, Some(8));
}

#[test]
fn timers_and_wakers_produce_events() {
    let mut events = EventLoop::new().unwrap();
    let mut list = Vec::new();
    let start = Instant::now();
    events.set_timer(TimerKey(1), start + Duration::from_millis(20));
    events.set_timer(TimerKey(2), start);
    events.set_timer(TimerKey(3), start);
    events.cancel_timer(TimerKey(3));
    events.wait(&mut list, None).unwrap();
    assert_eq!(list, [Event::Timer(TimerKey(2))]);
    events.wait(&mut list, Some(WAIT)).unwrap();
    assert_eq!(list, [Event::Timer(TimerKey(1))]);
    assert!(events.now() >= start + Duration::from_millis(20));

    let waker = events.waker();
    std::thread::spawn(move || waker.wake().unwrap());
    events.wait(&mut list, Some(WAIT)).unwrap();
    assert_eq!(list, [Event::Woken]);
    events.wait(&mut list, Some(Duration::ZERO)).unwrap();
    assert_eq!(list, []);
}

/// The peer is a real slow reader: first the buffers of the kernel are full, then our buffer is full, then frames are
/// refused.
#[test]
fn frames_to_a_tcp_peer_that_never_reads_are_refused_at_the_send_limit() {
    let options =
        Options { send_buffer: 50_000, socket_send_buffer: Some(16 << 10), ..Options::default() };
    let listener = Listener::bind(&loopback(), None, options).unwrap();
    let mut peer = TcpStream::connect(listener.address().addr).unwrap();
    let mut ours = accept(&listener);
    let frame = [4; 1000];
    let mut accepted = 0_usize;
    while ours.send_buffer().refused_frames() < 100 {
        accepted += usize::from(ours.push(&frame).is_ok());
        ours.flush().unwrap();
        assert!(ours.unsent_bytes() <= 50_000 && ours.memory() <= 200_000);
        assert!(accepted < 100_000, "the kernel swallows without end");
    }
    let mut events = EventLoop::new().unwrap();
    events.register(&mut ours).unwrap();
    let reader = std::thread::spawn(move || {
        let mut total = Vec::new();
        peer.read_to_end(&mut total).unwrap();
        total.len()
    });
    let mut list = Vec::new();
    while ours.flush().unwrap() == Flushed::Blocked {
        events.wait(&mut list, Some(WAIT)).unwrap();
    }
    ours.finish();
    assert_eq!(reader.join().unwrap(), accepted * 1000);
}

#[test]
fn idle_connections_with_a_partial_frame_use_one_page_each() {
    raise_file_limit();
    let listener = listen();
    let mut sides = Vec::new();
    for _ in 0..1000 {
        let peer = TcpStream::connect(listener.address().addr).unwrap();
        sides.push((accept(&listener), peer));
    }
    let burst: Vec<u8> =
        (0..500).flat_map(|_| [1_u8, 2, 0, 80].into_iter().chain([0; 76])).collect();
    for (ours, peer) in &mut sides {
        peer.write_all(&burst).unwrap();
        peer.write_all(&burst[..20]).unwrap();
        let deadline = Instant::now() + WAIT;
        let mut frames = 0;
        while ours.counters().received_bytes < 40_020 {
            assert!(Instant::now() < deadline);
            ours.receive(64 << 10);
            while let Some(frame) = ours.next_frame().unwrap() {
                frames += 1;
                let frame = frame.to_vec();
                ours.push(&frame).unwrap();
            }
            ours.flush().unwrap();
        }
        assert_eq!(frames, 500);
        peer.read_exact(&mut burst.clone()).unwrap();
        ours.flush().unwrap();
    }
    let held: usize = sides.iter().map(|(ours, _)| ours.memory()).sum();
    // Each connection has a part of a frame, which uses one page. Without the 20 bytes a connection uses no page.
    assert_eq!(held, 1000 * 4096);
}

/// The usual soft limit, 1,024, is too low for both sides of a thousand connections.
fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
}

#[test]
fn handshake_between_blocking_clients() {
    let mut listener = listen();
    let address = listener.address();
    let switch = std::thread::spawn(move || {
        let mut switch = Client::connect(&address, None, WAIT).unwrap();
        let hello = Handshake::towards_controller(VersionSet::SUPPORTED, 1);
        let established = switch.shake_hands(hello).unwrap();
        assert_eq!(switch.receive().unwrap(), [4, 5, 0, 8, 0, 0, 0, 2], "FEATURES_REQUEST");
        let mut reply = vec![4, 6, 0, 32, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0xab, 0xcd];
        reply.resize(32, 0);
        switch.send(&reply[..13]).unwrap();
        switch.send(&reply[13..]).unwrap();
        (established.version, switch.wait_closed().unwrap())
    });
    let mut controller = Client::accept(&mut listener, WAIT).unwrap();
    let established =
        controller.shake_hands(Handshake::towards_switch(VersionSet::SUPPORTED, 2)).unwrap();
    assert_eq!(established.version, Version::V1_3);
    assert_eq!(established.switch.unwrap().dpid, 0xabcd);
    assert_eq!(controller.receive_within(Duration::from_millis(1)).unwrap(), None);
    controller.connection().finish();
    assert_eq!(switch.join().unwrap(), (Version::V1_3, CloseReason::PeerClosed));
}

#[test]
fn tcp_nodelay_and_socket_buffer_sizes_are_set() {
    use nix::sys::socket::{getsockopt, sockopt};
    for nodelay in [true, false] {
        let options = Options {
            nodelay,
            socket_send_buffer: Some(20_000),
            socket_receive_buffer: Some(30_000),
            ..Options::default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let stream = mio::net::TcpStream::connect(addr).unwrap();
        let check = stream.as_fd().try_clone_to_owned().unwrap();
        let _connection = Connection::accepted(stream, None, &options).unwrap();
        assert_eq!(getsockopt(&check, sockopt::TcpNoDelay).unwrap(), nodelay);
        // The kernel doubles the requested size (socket(7)).
        assert_eq!(getsockopt(&check, sockopt::SndBuf).unwrap(), 40_000);
        assert_eq!(getsockopt(&check, sockopt::RcvBuf).unwrap(), 60_000);
    }
}
