//! Big switches: a thread that joins the sessions of their members.
//!
//! ```text
//!        shard 0                    thread "big-switches"                   shard 1
//!   Session (physical 1) ─Link──▶ ┐                        ┌──(Adopt)──▶ Session (front) ──Link──▶ the tenant's
//!   Session (physical 2) ─Link──▶ ┴─▶ hypervisor::BigSwitch ┘                                       controllers
//! ```
//! Links are connections within the process: ordered, bounded, and for the sessions at their ends like any other
//! connection. [`hypervisor::big_switch`] decides about the messages. While a member does not read its messages, the
//! thread reads no messages from the front. The front always reads.

pub(crate) mod command;

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use channel::{
    Connection, Established, EventLoop, Handshake, Options, ReadState, Readiness, Step,
    SwitchFeatures, TimerKey, Token,
};
use hypervisor::Outbox;
use hypervisor::big_switch::{BigSwitch, Event, Plan};
use openflow::VersionSet;

use crate::carry::carry;
use crate::dpid::Dpid;
use crate::shard::command::{Command as ShardCommand, Handle as ShardHandle};
use crate::threads::{Priority, Thread};
use command::Command;

pub use command::Handle;

/// Bytes read from one connection in one turn.
const BUDGET: usize = 64 << 10;

/// The prepared thread, which starts when the shards exist.
pub struct Prepared {
    handle: Handle,
    work: Work,
}

/// The running thread. Dropping this value ends the thread.
pub struct Joiner {
    handle: Handle,
    thread: Option<Thread>,
}

impl Prepared {
    /// Prepares the thread. `origin` is time zero, the same as for the shards.
    pub fn new(origin: Instant) -> Result<(Prepared, Handle), channel::Error> {
        let events = EventLoop::new()?;
        let (sender, commands) = channel();
        let handle = Handle::new(sender, events.waker());
        let work = Work {
            events,
            commands,
            origin,
            shards: Vec::new(),
            plans: BTreeMap::new(),
            joined: BTreeMap::new(),
            peers: HashMap::new(),
            stopping: false,
        };
        Ok((Prepared { handle: handle.clone(), work }, handle))
    }

    /// Starts the thread.
    pub fn start(self, shards: Vec<ShardHandle>) -> std::io::Result<Joiner> {
        let Prepared { handle, mut work } = self;
        work.shards = shards;
        let thread = Thread::start("big-switches", Priority::Normal, move || work.run())?;
        Ok(Joiner { handle, thread: Some(thread) })
    }
}

impl Drop for Joiner {
    fn drop(&mut self) {
        self.handle.send(Command::Stop);
        self.thread.take().into_iter().for_each(Thread::join);
    }
}

struct Work {
    events: EventLoop,
    commands: Receiver<Command>,
    origin: Instant,
    shards: Vec<ShardHandle>,
    plans: BTreeMap<u64, Plan>,
    /// The big switches, by key.
    joined: BTreeMap<u64, Joined>,
    /// The big switch and the side of each connection.
    peers: HashMap<Token, (u64, Side)>,
    stopping: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Front,
    Member(u64),
}

/// One big switch and its connections.
struct Joined {
    /// The core exists from the moment when the first member has negotiated its version.
    core: Option<BigSwitch>,
    front: Option<(Token, Connection)>,
    members: HashMap<u64, Member>,
}

struct Member {
    token: Token,
    connection: Connection,
    /// The handshake, while it is not complete.
    handshake: Option<Handshake>,
}

impl Work {
    fn run(&mut self) {
        let mut events = Vec::new();
        while !self.stopping {
            if let Err(error) = self.events.wait(&mut events, None) {
                tracing::error!(%error, "the event loop of big switches failed");
                return;
            }
            while let Ok(command) = self.commands.try_recv() {
                self.command(command);
            }
            for event in &events {
                match *event {
                    channel::Event::Ready(readiness) => self.ready(readiness),
                    channel::Event::Timer(TimerKey(key)) => {
                        let now = self.now();
                        if let Some(core) = self.core(key) {
                            core.handle_timeout(now);
                        }
                    }
                    channel::Event::Woken => {}
                }
            }
            let keys: Vec<u64> = self.joined.keys().copied().collect();
            for key in keys {
                self.pump(key);
            }
        }
    }

    fn now(&self) -> hypervisor::Instant {
        hypervisor::Instant(self.events.now().duration_since(self.origin).as_nanos() as u64)
    }

    fn core(&mut self, key: u64) -> Option<&mut BigSwitch> {
        self.joined.get_mut(&key)?.core.as_mut()
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Plans(plans) => {
                self.plans = plans;
                let now = self.now();
                for (key, joined) in &mut self.joined {
                    // A big switch without a plan ends when its members disconnect; their shards inform the members.
                    if let (Some(core), Some(plan)) = (&mut joined.core, self.plans.get(key)) {
                        core.handle_plan(plan.clone(), now);
                    }
                }
            }
            Command::Member(key, dpid, connection) => self.welcome(key, dpid, *connection),
            Command::Stop => self.stopping = true,
        }
    }

    fn welcome(&mut self, key: u64, dpid: u64, mut connection: Connection) {
        if !self.plans.contains_key(&key) {
            // The member's session tries again, as after any failure.
            connection.finish();
            return;
        }
        self.drop_member(key, dpid);
        let handshake = Handshake::towards_switch(VersionSet::SUPPORTED, 0);
        let mut hello = Vec::new();
        handshake.start(&mut hello);
        if connection.push(&hello).is_err() {
            return;
        }
        let Ok(token) = self.events.register(&mut connection) else { return };
        self.peers.insert(token, (key, Side::Member(dpid)));
        let joined = self.joined.entry(key).or_insert_with(|| Joined {
            core: None,
            front: None,
            members: HashMap::new(),
        });
        let member = Member { token, connection, handshake: Some(handshake) };
        joined.members.insert(dpid, member);
        self.events.again(token);
    }

    fn drop_member(&mut self, key: u64, dpid: u64) {
        let now = self.now();
        let Some(joined) = self.joined.get_mut(&key) else { return };
        let Some(Member { token, connection, .. }) = joined.members.remove(&dpid) else { return };
        if let Some(core) = &mut joined.core {
            core.member_disconnected(dpid, now);
        }
        self.close(token, connection);
    }

    fn drop_front(&mut self, key: u64) {
        let now = self.now();
        let Some(joined) = self.joined.get_mut(&key) else { return };
        let Some((token, connection)) = joined.front.take() else { return };
        if let Some(core) = &mut joined.core {
            core.front_closed(now);
        }
        self.close(token, connection);
    }

    fn close(&mut self, token: Token, mut connection: Connection) {
        connection.finish();
        self.peers.remove(&token);
        let _ = self.events.deregister(token, &mut connection);
    }

    fn ready(&mut self, readiness: Readiness) {
        match self.peers.get(&readiness.token) {
            Some(&(key, Side::Front)) => self.front_ready(key),
            Some(&(key, Side::Member(dpid))) => self.member_ready(key, dpid),
            None => {}
        }
    }

    fn front_ready(&mut self, key: u64) {
        let now = self.now();
        let Some(Joined { core: Some(core), front: Some((token, connection)), .. }) =
            self.joined.get_mut(&key)
        else {
            return;
        };
        let received = connection.receive(BUDGET);
        let mut over = false;
        // Messages for which a member has no room stay in the connection; `pump` reads them later.
        while core.wants_front() {
            match connection.next_frame() {
                Ok(Some(frame)) => core.handle_front(frame, now),
                Ok(None) => break,
                Err(_) => {
                    over = true;
                    break;
                }
            }
        }
        match received.state {
            ReadState::More => self.events.again(*token),
            ReadState::Drained => {}
            ReadState::Closed(_) => over = true,
        }
        if over {
            self.drop_front(key);
        }
    }

    fn member_ready(&mut self, key: u64, dpid: u64) {
        let now = self.now();
        let plan = self.plans.get(&key);
        let Some(Joined { core, members, .. }) = self.joined.get_mut(&key) else { return };
        let Some(Member { token, connection, handshake }) = members.get_mut(&dpid) else { return };
        let received = connection.receive(BUDGET);
        let mut over = false;
        loop {
            if core.as_ref().is_some_and(|core| !core.wants_members()) {
                break;
            }
            let frame = match connection.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) => {
                    over = true;
                    break;
                }
            };
            let Some(shaking) = handshake else {
                if let Some(core) = core {
                    core.handle_member(dpid, frame, now);
                }
                continue;
            };
            let mut out = Vec::new();
            let step = shaking.handle(frame, &mut out);
            let pushed = connection.push(&out).is_ok();
            match step {
                Ok(Step::Done(Established { version, switch: Some(features) })) => {
                    *handshake = None;
                    if core
                        .as_ref()
                        .is_some_and(|core| core.is_empty() && core.version() != version)
                    {
                        // No member with another version is left.
                        *core = None;
                    }
                    if let Some(plan) = plan {
                        let core =
                            core.get_or_insert_with(|| BigSwitch::new(key, plan.clone(), version));
                        core.member_connected(dpid, &features.frame, now);
                    }
                }
                Ok(Step::Continue | Step::NotOurs) if pushed => {}
                Err(error) => {
                    tracing::warn!(dpid = %Dpid(dpid), %error, "a member of a big switch cannot be joined");
                    over = true;
                    break;
                }
                _ => {
                    over = true;
                    break;
                }
            }
        }
        match received.state {
            ReadState::More => self.events.again(*token),
            ReadState::Drained => {}
            ReadState::Closed(_) => over = true,
        }
        if over {
            self.drop_member(key, dpid);
        }
    }

    /// Carries out the core's actions, and writes the core's messages to all connections.
    fn pump(&mut self, key: u64) {
        self.take_events(key);
        let Some(joined) = self.joined.get_mut(&key) else { return };
        let mut lost = Vec::new();
        for (&dpid, member) in &mut joined.members {
            let outbox = joined.core.as_mut().and_then(|core| core.member_outbox(dpid));
            // Before the core knows the member, the handshake alone writes.
            let carried = carry(outbox.unwrap_or(&mut Outbox::default()), &mut member.connection);
            if carried.is_err() {
                lost.push(dpid);
            }
        }
        let mut front_lost = false;
        if let (Some(core), Some((token, connection))) = (&mut joined.core, &mut joined.front) {
            front_lost = carry(core.front_outbox(), connection).is_err();
            if is_waiting(connection) && core.wants_front() {
                self.events.again(*token);
            }
            if core.wants_members() {
                let waiting = joined.members.values();
                let waiting = waiting.filter(|member| is_waiting(&member.connection));
                waiting.for_each(|member| self.events.again(member.token));
            }
        }
        let timer = TimerKey(key);
        match joined.core.as_ref().and_then(BigSwitch::poll_timeout) {
            Some(when) => {
                self.events.set_timer(timer, self.origin + Duration::from_nanos(when.0));
            }
            None => self.events.cancel_timer(timer),
        }
        for dpid in lost {
            self.drop_member(key, dpid);
        }
        if front_lost {
            self.drop_front(key);
        }
        self.take_events(key);
        let over = self.joined.get(&key).is_some_and(|joined| joined.members.is_empty());
        if over && !self.plans.contains_key(&key) {
            self.joined.remove(&key);
            self.events.cancel_timer(timer);
        }
    }

    fn take_events(&mut self, key: u64) {
        while let Some(event) = self.core(key).and_then(BigSwitch::poll_event) {
            match event {
                Event::Start(features) => self.start(key, features),
                Event::Stop => self.drop_front(key),
                Event::TooManyPorts(ports) => {
                    let datapath = self.plans.get(&key).map_or(0, |plan| plan.datapath);
                    let why = "OpenFlow 1.0 has room for the descriptions of 1364 ports";
                    tracing::warn!(dpid = %Dpid(datapath), ports, why, "a big switch is not served");
                }
                Event::CloseMember(dpid, reason) => {
                    tracing::warn!(dpid = %Dpid(dpid), reason, "a member of a big switch is left out");
                    self.drop_member(key, dpid);
                }
            }
        }
    }

    /// Gives the big switch to the shard of its key, as a switch with a complete handshake.
    fn start(&mut self, key: u64, frame: Vec<u8>) {
        let stale = self.joined.get_mut(&key).and_then(|joined| joined.front.take());
        stale.into_iter().for_each(|(token, connection)| self.close(token, connection));
        let Some(Joined { core: Some(core), front, .. }) = self.joined.get_mut(&key) else {
            return;
        };
        let Ok((mut ours, theirs)) = Connection::local_pair(&Options::default()) else { return };
        let Ok(token) = self.events.register(&mut ours) else { return };
        let features = SwitchFeatures { dpid: key, auxiliary_id: 0, frame };
        let established = Established { version: core.version(), switch: Some(features) };
        let shard = (key % self.shards.len().max(1) as u64) as usize;
        if let Some(shard) = self.shards.get(shard) {
            shard.send(ShardCommand::Adopt(Box::new((theirs, established))));
        }
        *front = Some((token, ours));
        self.peers.insert(token, (key, Side::Front));
    }
}

/// Whether a complete message is in the receive buffer.
fn is_waiting(connection: &Connection) -> bool {
    !matches!(connection.peek_frame(), Ok(None))
}
