use super::*;
use crate::config::Config;
use crate::identity::Identity;
use crate::logging::Format;
use crate::logging::tests::logged_of;
use crate::metrics::{Detail, Kind, Rejection, encode};
use crate::store::Store;
use crate::store::tests::Folder;
use channel::{Handshake, Keepalive, Options, ReadState, SwitchFeatures};
use hypervisor::Settings;
use openflow::VersionSet;
use session::ECHO_XID;
use table::Arriving;

#[test]
fn failed_batches_are_put_back_in_the_order_of_sequence_numbers() {
    let batch = |seq| store::Batch { seq, dpid: 1, ops: Vec::new() };
    let mut unstored = VecDeque::from([batch(5), batch(6)]);
    // The failure of batch 4 was reported before those of batches 2 and 3.
    [4, 2, 3].into_iter().for_each(|seq| put_back(&mut unstored, batch(seq)));
    assert!(unstored.iter().map(|batch| batch.seq).eq(2..=6));
}

fn shard(store: &Store) -> (Shard, Handle) {
    let config = Config::parse("weir.toml", "[listen]\nopenflow = \"127.0.0.1:0\"\n").unwrap();
    let snapshot = Snapshot {
        policy: Arc::new(config.policy(&[])),
        controllers: Arc::default(),
        settings: Settings::default(),
        keepalive: config.keepalive,
        reconnect: config.reconnect,
        identity: Identity::default(),
        tracks_flows: false,
        admission: Arc::default(),
    };
    let origin = Instant::now();
    let (_, joiner) = crate::big_switches::Prepared::new(origin).unwrap();
    let setup = Setup {
        snapshot,
        lldp: LldpKey(store.secret()),
        takes_over: None,
        adopts: false,
        origin,
        volatile: false,
        metrics: Registry::new(),
        topology: Arc::default(),
        joiner,
        refused: Arc::default(),
        descriptors: Descriptors::new(1024),
        unlisted: Unlisted::default(),
        pins: Pins::load(store.documents()).unwrap(),
    };
    Shard::new(0, setup, store).unwrap()
}

/// A switch of OpenFlow 1.3 with a complete handshake, and the switch's end of the connection.
fn switch(dpid: u64) -> (Box<(Connection, Established)>, Connection) {
    let mut frame = vec![4, 6, 0, 32, 0, 0, 0, 0];
    frame.extend(dpid.to_be_bytes());
    frame.extend([0, 0, 1, 0, 254, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let features = SwitchFeatures { dpid, auxiliary_id: 0, frame };
    let (ours, theirs) = Connection::local_pair(&Options::default()).unwrap();
    let version = openflow::Version::V1_3;
    (Box::new((ours, Established { version, switch: Some(features) })), theirs)
}

fn is_closed(end: &mut Connection) -> bool {
    matches!(end.receive(1024).state, ReadState::Closed(_))
}

#[test]
fn a_reconnected_switch_waits_until_earlier_changes_are_stored() {
    let folder = Folder::new("comes-back");
    let store = Store::open(&folder.0, store::Sync::default(), Registry::new()).unwrap();
    let (mut shard, _) = shard(&store);
    // A change of the earlier session is not stored yet.
    shard.storing.push_back((0, 7, 1));
    let (first, mut first_end) = switch(7);
    let (second, mut second_end) = switch(7);
    let (third, mut third_end) = switch(7);
    let loaded = |shard: &mut Shard| {
        let command = shard.commands.recv().unwrap();
        assert!(matches!(command, Command::Store(store::Event::Loaded { dpid: 7, .. })));
        shard.command(command);
    };
    shard.load(first);
    loaded(&mut shard);
    assert!(!is_closed(&mut first_end), "it waits");
    // The switch connects again, and the new connection replaces the waiting connection.
    shard.load(second);
    assert!(is_closed(&mut first_end) && !is_closed(&mut second_end));
    assert!(shard.by_dpid.is_empty());
    shard.command(Command::Store(store::Event::Stored(0)));
    loaded(&mut shard);
    assert!(shard.by_dpid.contains_key(&7) && !is_closed(&mut second_end));
    assert!(shard.loading.is_empty() && shard.behind.is_empty());
    // A further connection with the same datapath id is closed, because the switch is connected.
    shard.load(third);
    assert!(is_closed(&mut third_end) && !is_closed(&mut second_end));
}

/// Handles the events that are due, as the event loop does.
fn turn(shard: &mut Shard) {
    let mut events = Vec::new();
    shard.events.wait(&mut events, Some(Duration::ZERO)).unwrap();
    shard.turn(&events);
}

/// Weir sends ECHO_REQUEST after 5 s of silence, and closes the connection after 10 s without an answer.
#[test]
fn a_second_switch_with_the_same_dpid_is_refused_until_the_first_is_silent() {
    let folder = Folder::new("silent-first");
    let store = Store::open(&folder.0, store::Sync::default(), Registry::new()).unwrap();
    let (mut shard, _) = shard(&store);
    let refused = |shard: &mut Shard| {
        let (newcomer, mut end) = switch(7);
        shard.load(newcomer);
        is_closed(&mut end)
    };
    let load = |shard: &mut Shard| {
        let (switch, end) = switch(7);
        shard.load(switch);
        let loaded = shard.commands.recv().unwrap();
        shard.command(loaded);
        end
    };
    let mut first = load(&mut shard);
    let at = shard.by_dpid[&7];
    // Simulates that Weir received the last message of the first switch this time ago, and sent an ECHO_REQUEST
    // after 5 s.
    let silent_for = |shard: &mut Shard, silence| {
        let now = shard.events.now();
        let config = &shard.snapshot.keepalive;
        let (interval, timeout) = (config.interval, config.timeout);
        let mut keepalive = Keepalive::new(interval, timeout, ECHO_XID, now - silence);
        if silence > Duration::from_secs(5) {
            keepalive.poll(now - (silence - Duration::from_secs(5)));
        }
        shard.sessions[at].as_mut().unwrap().switch.keepalive = keepalive;
        shard.check_switch(at);
        shard.finish_turn();
    };
    let is_asked = |end: &mut Connection| {
        let mut asked = false;
        end.receive(1 << 16);
        while let Some(frame) = end.next_frame().unwrap() {
            asked |= frame[1] == 2 && frame[4..8] == ECHO_XID.to_be_bytes();
        }
        asked
    };
    silent_for(&mut shard, Duration::from_millis(4_900));
    assert!(!is_asked(&mut first));
    silent_for(&mut shard, Duration::from_secs(5));
    assert!(is_asked(&mut first));
    assert!(refused(&mut shard), "the first has time to answer");
    silent_for(&mut shard, Duration::from_millis(14_900));
    assert!(refused(&mut shard), "the first still has time to answer");
    let mut reply = vec![4, 3, 0, 8];
    reply.extend(ECHO_XID.to_be_bytes());
    first.push(&reply).unwrap();
    first.flush().unwrap();
    turn(&mut shard);
    let deadline = shard.sessions[at].as_ref().unwrap().switch.keepalive.deadline();
    assert!(deadline > shard.events.now() + Duration::from_secs(4), "the first has answered");
    assert!(refused(&mut shard) && !is_closed(&mut first), "the first keeps its place");
    silent_for(&mut shard, Duration::from_secs(15));
    assert!(is_closed(&mut first) && !shard.by_dpid.contains_key(&7));
    let mut second = load(&mut shard);
    assert!(shard.by_dpid.contains_key(&7) && !is_closed(&mut second));
    let counted = shard.metrics.process.rejected(Kind::Switch, Rejection::DuplicateDpid).get();
    assert_eq!(counted, 3);
}

/// The switch sends an ECHO_REQUEST of 2,048 bytes, and does not read the answers. Weir's send buffer has only 1,024
/// bytes.
#[test]
fn a_switch_that_does_not_read_in_the_handshake_is_counted_and_logged() {
    let folder = Folder::new("deaf");
    let store = Store::open(&folder.0, store::Sync::default(), Registry::new()).unwrap();
    let (mut shard, _) = shard(&store);
    let options = Options { send_buffer: 1024, ..Options::default() };
    let (mut connection, mut end) = Connection::local_pair(&options).unwrap();
    let token = shard.events.register(&mut connection).unwrap();
    let handshake = Handshake::towards_switch(VersionSet::SUPPORTED, 0);
    let arriving = Arriving { token, connection, handshake };
    shard.table.put(token, Entry::Arriving(Box::new(arriving)));
    assert_eq!(shard.arrivals.add(token, token, [192, 0, 2, 1].into()), None);
    end.push(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let echo = [&[4, 2, 8, 0, 0, 0, 0, 2], &[0; 2040][..]].concat();
    end.flush().unwrap();
    let log = logged_of(Format::Text, None, || {
        turn(&mut shard);
        assert!(shard.table.get(token).is_some(), "the handshake goes on");
        for piece in echo.chunks(1000) {
            end.push(piece).unwrap();
            end.flush().unwrap();
        }
        turn(&mut shard);
    });
    assert!(shard.table.get(token).is_none());
    let counted = shard.metrics.process.rejected(Kind::Switch, Rejection::Handshake).get();
    assert_eq!(counted, 1);
    assert_eq!(log.lines().count(), 1, "{log}");
    for part in
        ["WARN", "a switch failed the handshake", "peer=192.0.2.1", "does not read Weir's answers"]
    {
        assert!(log.contains(part), "{log}");
    }
}

/// The connection is already registered. The event loop therefore refuses the connection, as at the kernel's limit of
/// watches.
#[test]
fn a_failed_start_of_a_switch_handshake_is_counted_and_logged() {
    let folder = Folder::new("unwatched");
    let store = Store::open(&folder.0, store::Sync::default(), Registry::new()).unwrap();
    let (mut shard, _) = shard(&store);
    let (mut connection, _end) = Connection::local_pair(&Options::default()).unwrap();
    let token = shard.events.register(&mut connection).unwrap();
    let log = logged_of(Format::Text, None, || {
        shard.welcome(connection, token, [192, 0, 2, 1].into());
    });
    let counted = shard.metrics.process.rejected(Kind::Switch, Rejection::Handshake).get();
    assert_eq!(counted, 1);
    assert_eq!(log.lines().count(), 1, "{log}");
    for part in ["WARN", "cannot begin the handshake with a switch", "peer=192.0.2.1"] {
        assert!(log.contains(part), "{log}");
    }
}

/// 100 connections wait at a listener. The first call accepts 64 connections, and the next call accepts the other 36.
#[test]
fn a_turn_accepts_at_most_64_new_connections() {
    let folder = Folder::new("pending");
    let store = Store::open(&folder.0, store::Sync::default(), Registry::new()).unwrap();
    let (mut shard, _) = shard(&store);
    let config = Config::parse("weir.toml", "[listen]\nopenflow = \"127.0.0.1:0\"\n").unwrap();
    let listener = Listener::bind(&config.listen.openflow[0], None, Options::default()).unwrap();
    let address = listener.address().addr;
    shard.listen(listener).unwrap();
    let waiting: Vec<_> =
        (0..100).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    let is_listener = |shard: &mut Shard, at| {
        let token = shard.table.at(at)?;
        matches!(shard.table.get(token), Some(Entry::Listener(_))).then_some(token)
    };
    let listener = (0..100).find_map(|at| is_listener(&mut shard, at)).unwrap();
    shard.accept(listener);
    assert_eq!(shard.descriptors.used().0, 64);
    shard.accept(listener);
    assert_eq!(shard.descriptors.used().0, 100);
    drop(waiting);
}

#[test]
fn queries_are_refused_as_busy_while_the_query_budget_is_exhausted() {
    let folder = Folder::new("asked");
    let store = Store::open(&folder.0, store::Sync::default(), Registry::new()).unwrap();
    let (shard, handle) = shard(&store);
    let reader = shown::Reader::new(&[handle]);
    reader.charge(Duration::from_secs(1));
    let start = shown::Start::Switch { dpid: 7, port: 1, frame: Vec::new() };
    let soon = Duration::from_secs(2);
    assert_eq!(
        reader.passage(&start, Instant::now() + soon).unwrap_err(),
        shown::NotPassed::NoAnswer(shown::NoAnswer::Busy)
    );
    assert_eq!(reader.refusals("red", soon).unwrap_err(), shown::NoAnswer::Busy);
    let flows = shown::FlowsAsked {
        tenant: "red".to_owned(),
        dpid: 7,
        side: hypervisor::Side::Tenant,
        after: None,
    };
    assert_eq!(reader.flows(&flows, soon).unwrap_err(), shown::NoAnswer::Busy);
    assert!(shard.commands.try_recv().is_err(), "the shard is not asked");
}

#[test]
fn unexpected_messages_of_a_switch_are_counted() {
    let folder = Folder::new("unexpected");
    let store = Store::open(&folder.0, store::Sync::default(), Registry::new()).unwrap();
    let (mut shard, _) = shard(&store);
    let (switch, _end) = switch(7);
    shard.load(switch);
    let loaded = shard.commands.recv().unwrap();
    shard.command(loaded);
    let at = shard.by_dpid[&7];
    let now = shard.now();
    // The switch sends a BARRIER_REPLY without a BARRIER_REQUEST, and a message of an unknown type.
    for message in [[4, 21, 0, 8, 0, 0, 0, 9], [4, 99, 0, 8, 0, 0, 0, 9]] {
        let session = shard.sessions[at].as_mut().unwrap();
        session.core.handle_switch_message(&message, now);
    }
    shard.publish();
    let mut scraped = String::new();
    encode(&shard.metrics, Detail::Sums, &mut |part| {
        scraped.push_str(&part);
        true
    });
    let series = "weir_switch_unexpected_total{switch=\"00:00:00:00:00:00:00:07\"} 2\n";
    assert!(scraped.contains(series), "{scraped}");
}

#[test]
fn a_turn_reads_at_most_4_kib_of_a_switch_that_is_not_served_yet() {
    let folder = Folder::new("newcomer");
    let store = Store::open(&folder.0, store::Sync::default(), Registry::new()).unwrap();
    let (mut shard, _) = shard(&store);
    let (switch, mut end) = switch(7);
    shard.load(switch);
    let loaded = shard.commands.recv().unwrap();
    shard.command(loaded);
    let requests: Vec<u8> =
        (0..4_096_u32).flat_map(|xid| [4, 2, 0, 8, 0, 0, (xid >> 8) as u8, xid as u8]).collect();
    end.push(&requests).unwrap();
    end.flush().unwrap();
    let mut turns = 0;
    let mut answered = 0;
    while answered < 4_096 {
        turn(&mut shard);
        end.receive(1 << 20);
        let before = answered;
        while let Some(frame) = end.next_frame().unwrap() {
            answered += usize::from(frame[1] == 3);
        }
        turns += 1;
        assert!(answered - before <= 512 && turns < 100, "{answered} in {turns} turns");
    }
}
