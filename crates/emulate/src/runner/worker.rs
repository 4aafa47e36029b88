//! The thread of the runner, and the work of one turn.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use channel::{
    Address, Backoff, Connection, Dialer, Event, EventLoop, Listener, Options, Readiness, TimerKey,
    Tls,
};

use super::counters::{Shared, for_each_frame};
use super::door::Door;
use super::line::Line;
use super::pace::{self, Wait};
use super::station::{Caller, Station, Waiting};
use super::tap::{Seen, Tap};
use crate::error::Error;
use crate::network::{Journey, Network, SwitchIndex};
use crate::service::ServiceTime;
use crate::session::SessionId;

type Work = Box<dyn FnOnce(&mut Network, u64) + Send>;

/// A command of a caller to the thread.
pub(super) enum Command {
    Work(Work),
    Service(SwitchIndex, ServiceTime),
    Power(SwitchIndex, bool),
    Stop,
}

pub(super) struct Worker {
    event_loop: EventLoop,
    network: Network,
    commands: Receiver<Command>,
    stations: Vec<Station>,
    started: Instant,
    options: Options,
    tap: Option<Tap>,
    stopping: bool,
    /// Whether a station reached the limit of a turn and has more work.
    unfinished: bool,
}

/// The maximum number of callers' commands that one turn executes.
const COMMANDS_PER_TURN: usize = 8;
/// The time after a failed accept until the next accept.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// The maximum number of bytes that wait for a controller that does not read. While bytes wait, the
/// switch reads no request, so only asynchronous messages (such as PACKET_IN) are added. Above this
/// limit the switch drops and counts them.
const MAX_BACKLOG: usize = 4 << 20;
/// The maximum number of messages of one switch that one turn handles.
const MESSAGES_PER_TURN: usize = 128;

impl Worker {
    pub(super) fn new(
        event_loop: EventLoop,
        network: Network,
        commands: Receiver<Command>,
        shared: &[Arc<Shared>],
        started: Instant,
        options: Options,
    ) -> Worker {
        let stations = shared.iter().map(|shared| Station::new(Arc::clone(shared))).collect();
        Worker {
            event_loop,
            network,
            commands,
            stations,
            started,
            options,
            tap: None,
            stopping: false,
            unfinished: false,
        }
    }

    pub(super) fn set_tap(&mut self, tap: Option<Tap>) {
        self.tap = tap;
    }

    pub(super) fn set_service(
        &mut self,
        switch: SwitchIndex,
        service: ServiceTime,
    ) -> Result<(), Error> {
        let station = self.stations.get_mut(switch.0).ok_or(Error::NoSwitch(switch))?;
        station.has_service_time = !service.is_zero();
        station.cpu.set_service(service);
        Ok(())
    }

    pub(super) fn set_queue(&mut self, switch: SwitchIndex, messages: usize) -> Result<(), Error> {
        let station = self.stations.get_mut(switch.0).ok_or(Error::NoSwitch(switch))?;
        station.queue = Some(Waiting::new(messages));
        Ok(())
    }

    /// Adds a dialled controller or a listener. Returns the address of a listener.
    pub(super) fn add_door(
        &mut self,
        switch: SwitchIndex,
        door: Door,
        tls: Option<&Tls>,
    ) -> Result<Option<Address>, Error> {
        let station = self.stations.get_mut(switch.0).ok_or(Error::NoSwitch(switch))?;
        match door {
            Door::Dial(address) => {
                let seed = (switch.0 as u64) << 16 | station.callers.len() as u64;
                let backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1), seed);
                let dialer = Dialer::new(address, tls, self.options, backoff)?;
                station.callers.push(Caller { dialer, session: None, dial_at: 0 });
                Ok(None)
            }
            Door::Listen(address) => {
                let mut listener = Listener::bind(&address, tls, self.options)?;
                let token = self.event_loop.register(&mut listener)?;
                let address = listener.address();
                station.listeners.push((token, listener));
                Ok(Some(address))
            }
        }
    }

    /// Runs until [`Command::Stop`], and returns the network.
    pub(super) fn run(mut self) -> Result<Network, Error> {
        pace::sharpen_sleep();
        let mut events = Vec::new();
        loop {
            self.obey();
            if self.stopping {
                return Ok(self.network);
            }
            self.dial_due();
            for index in 0..self.stations.len() {
                self.serve(index);
            }
            self.tick();
            self.send_all();
            self.wait(&mut events)?;
            for event in events.drain(..) {
                match event {
                    Event::Ready(readiness) => self.ready(&readiness),
                    // Every turn reads the commands.
                    Event::Woken => {}
                    Event::Timer(TimerKey(index)) => self.accept(index as usize),
                }
            }
        }
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Waits for the next work.
    fn wait(&mut self, events: &mut Vec<Event>) -> Result<(), Error> {
        let wait = if std::mem::take(&mut self.unfinished) {
            Wait::Poll(Some(Duration::ZERO))
        } else {
            let due = self.next_due().map(|due| self.started + Duration::from_nanos(due));
            pace::wait_for(Instant::now(), due)
        };
        match wait {
            Wait::Poll(limit) => self.event_loop.wait(events, limit)?,
            Wait::Nap(_) | Wait::Spin(_) => {
                self.event_loop.wait(events, Some(Duration::ZERO))?;
                if events.is_empty() {
                    pace::pass(wait);
                }
            }
        }
        Ok(())
    }

    fn next_due(&self) -> Option<u64> {
        let services = self.stations.iter().filter_map(|station| station.cpu.done_at());
        let powered = self.stations.iter().filter(|station| station.powered);
        let callers = powered.flat_map(|station| &station.callers);
        let dials = callers.filter(|caller| caller.session.is_none()).map(|caller| caller.dial_at);
        services.chain(dials).chain(self.network.next_deadline()).min()
    }

    /// Executes commands of callers. Remaining commands wait for the next turn, after the resulting
    /// messages were sent.
    fn obey(&mut self) {
        for _ in 0..COMMANDS_PER_TURN {
            match self.commands.try_recv() {
                Ok(Command::Work(work)) => {
                    let now = self.now();
                    work(&mut self.network, now);
                }
                Ok(Command::Service(switch, service)) => {
                    // A switch that does not exist has no service time.
                    let _ = self.set_service(switch, service);
                }
                Ok(Command::Power(switch, powered)) => self.set_powered(switch.0, powered),
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => {
                    self.stopping = true;
                    return;
                }
                Err(TryRecvError::Empty) => return,
            }
        }
        self.unfinished = true;
    }

    fn set_powered(&mut self, index: usize, powered: bool) {
        let now = self.now();
        let Some(station) = self.stations.get_mut(index) else { return };
        station.powered = powered;
        let sessions: Vec<SessionId> = station.lines.iter().map(|(id, _)| *id).collect();
        if powered {
            for caller in &mut station.callers {
                caller.dial_at = now;
            }
        } else {
            for session in sessions {
                self.close(index, session);
            }
        }
    }

    fn ready(&mut self, readiness: &Readiness) {
        for index in 0..self.stations.len() {
            let Some(station) = self.stations.get_mut(index) else { return };
            let here = |line: &Line| line.token() == readiness.token;
            if let Some((_, line)) = station.lines.iter_mut().find(|(_, line)| here(line)) {
                line.note(readiness);
                return;
            }
            if station.listeners.iter().any(|(token, _)| *token == readiness.token) {
                return self.accept(index);
            }
        }
    }

    /// Accepts the connections that wait at a switch's listeners.
    fn accept(&mut self, index: usize) {
        let mut accepted = Vec::new();
        let Some(station) = self.stations.get(index) else { return };
        for (_, listener) in &station.listeners {
            loop {
                match listener.accept() {
                    // A switch without power drops the connection.
                    Ok(Some(_)) if !station.powered => {}
                    Ok(Some((connection, _))) => accepted.push(connection),
                    Ok(None) => break,
                    Err(_) => {
                        // For example, the process has no file descriptors left. The other
                        // listeners continue, and the thread accepts from these listeners again
                        // later.
                        let later = self.event_loop.now() + ACCEPT_AGAIN;
                        self.event_loop.set_timer(TimerKey(index as u64), later);
                        break;
                    }
                }
            }
        }
        for connection in accepted {
            self.open(index, connection, None);
        }
    }

    fn dial_due(&mut self) {
        let now = self.now();
        for index in 0..self.stations.len() {
            let callers = self.stations.get(index).map_or(0, |station| station.callers.len());
            for caller_index in 0..callers {
                let Some(station) = self.stations.get_mut(index) else { return };
                let powered = station.powered;
                let Some(caller) = station.callers.get_mut(caller_index) else { continue };
                if !powered || caller.session.is_some() || caller.dial_at > now {
                    continue;
                }
                match caller.dialer.dial() {
                    Ok(connection) => self.open(index, connection, Some(caller_index)),
                    Err(_) => caller.dial_at = now + caller.dialer.failed().as_nanos() as u64,
                }
            }
        }
    }

    /// Begins a session over a new connection. The first controller that a switch dials has the
    /// main session.
    fn open(&mut self, index: usize, connection: Connection, caller: Option<usize>) {
        let Ok(mut line) = Line::new(&mut self.event_loop, connection) else { return };
        let Some(switch) = self.network.switch_mut(SwitchIndex(index)) else { return };
        let session = if caller == Some(0) {
            let mut hello = Vec::new();
            switch.connect(&mut hello);
            line.send(&mut hello);
            SessionId::MAIN
        } else {
            switch.open_session()
        };
        let Some(station) = self.stations.get_mut(index) else { return };
        station.shared.connections.fetch_add(1, Relaxed);
        if let Some(caller) = caller.and_then(|caller| station.callers.get_mut(caller)) {
            caller.session = Some(session);
        }
        station.lines.push((session, line));
        let switch = SwitchIndex(index);
        self.show(self.now(), Seen::Opened { switch, session, dialled: caller });
    }

    fn show(&mut self, at: u64, seen: Seen<'_>) {
        if let Some(tap) = &mut self.tap {
            tap(at, seen);
        }
    }

    fn show_delivered(&mut self, at: u64, journey: &Journey) {
        for (host, frame) in &journey.delivered {
            self.show(at, Seen::Delivered { host: *host, frame });
        }
    }

    /// Ends a session.
    fn close(&mut self, index: usize, session: SessionId) {
        let now = self.now();
        let Some(station) = self.stations.get_mut(index) else { return };
        if let Some(place) = station.lines.iter().position(|(id, _)| *id == session) {
            let (_, line) = station.lines.remove(place);
            line.close(&mut self.event_loop);
            station.shared.disconnections.fetch_add(1, Relaxed);
            self.show(now, Seen::Closed { switch: SwitchIndex(index), session });
        }
        let Some(station) = self.stations.get_mut(index) else { return };
        if station.serving.take_if(|(id, _)| *id == session).is_some() {
            station.cpu.abandon(now);
        }
        if let Some(waiting) = &mut station.queue {
            waiting.forget(session);
        }
        for caller in &mut station.callers {
            if caller.session == Some(session) {
                caller.session = None;
                caller.dial_at = now + caller.dialer.failed().as_nanos() as u64;
            }
        }
        if let Some(switch) = self.network.switch_mut(SwitchIndex(index)) {
            switch.close_session(session);
        }
    }

    /// Handles messages of one switch until its CPU is busy or no message waits.
    fn serve(&mut self, index: usize) {
        let now = self.now();
        match self.stations.get_mut(index).map(|station| station.fill_queue(now)) {
            Some(Ok(has_more)) => self.unfinished |= has_more,
            Some(Err(session)) => self.close(index, session),
            None => return,
        }
        for _ in 0..MESSAGES_PER_TURN {
            let now = self.now();
            let Some(station) = self.stations.get_mut(index) else { return };
            if station.cpu.is_serving() {
                if station.cpu.finish(now).is_none() {
                    return;
                }
                if let Some((session, frame)) = station.serving.take() {
                    self.handle(index, session, &frame);
                }
                continue;
            }
            match station.next_message(now) {
                Ok(None) => return self.close_ended(index),
                Err(session) => self.close(index, session),
                Ok(Some((session, arrival, frame))) if !station.has_service_time => {
                    let switch = SwitchIndex(index);
                    self.show(arrival, Seen::Received { switch, session, frame: &frame });
                    self.handle(index, session, &frame);
                }
                Ok(Some((session, arrival, frame))) => {
                    let type_ = openflow::frame::type_(&frame).unwrap_or_default();
                    station.cpu.begin(arrival, type_);
                    let switch = SwitchIndex(index);
                    if let Some(tap) = &mut self.tap {
                        tap(arrival, Seen::Received { switch, session, frame: &frame });
                    }
                    station.serving = Some((session, frame));
                }
            }
        }
        self.unfinished = true;
    }

    /// Closes the connections that ended and that have no more frames to handle.
    fn close_ended(&mut self, index: usize) {
        let Some(station) = self.stations.get(index) else { return };
        let is_over = |line: &Line| line.ended().is_some() && !line.is_stuffed();
        let over: Vec<SessionId> =
            station.lines.iter().filter(|(_, line)| is_over(line)).map(|(id, _)| *id).collect();
        for session in over {
            self.close(index, session);
        }
    }

    fn handle(&mut self, index: usize, session: SessionId, frame: &[u8]) {
        let now = self.now();
        if let Some(station) = self.stations.get_mut(index) {
            station.shared.count_received(frame);
            let callers = station.callers.iter_mut();
            for caller in callers.filter(|caller| caller.session == Some(session)) {
                caller.dialer.succeeded();
            }
        }
        let journey = self.network.handle_on(now, SwitchIndex(index), session, frame);
        self.show_delivered(now, &journey);
        if journey.disconnect {
            self.send(index);
            if let Some(line) = self.stations.get_mut(index).and_then(|s| s.line(session)) {
                // The connection is about to be closed, so an error does not matter.
                let _ = line.flush();
            }
            self.close(index, session);
        }
    }

    fn tick(&mut self) {
        let now = self.now();
        if self.network.next_deadline().is_some_and(|due| due <= now) {
            let journey = self.network.tick(now);
            self.show_delivered(now, &journey);
        }
    }

    fn send_all(&mut self) {
        for index in 0..self.stations.len() {
            self.send(index);
            let now = self.now();
            let Some(station) = self.stations.get_mut(index) else { return };
            station.shared.busy.store(station.cpu.busy(now), Relaxed);
            let mut broken = Vec::new();
            let mut backlog = 0;
            for (session, line) in &mut station.lines {
                if line.flush().is_err() {
                    broken.push(*session);
                }
                backlog += line.backlog();
            }
            station.shared.backlog.store(backlog as u64, Relaxed);
            for session in broken {
                self.close(index, session);
            }
        }
    }

    /// Moves the output of a switch to its connections.
    fn send(&mut self, index: usize) {
        let now = self.now();
        let Some(switch) = self.network.switch_mut(SwitchIndex(index)) else { return };
        let Some(station) = self.stations.get_mut(index) else { return };
        for (session, line) in &mut station.lines {
            if let Some(output) = switch.output(*session)
                && !output.is_empty()
            {
                if line.is_stuffed() && line.backlog() + output.len() > MAX_BACKLOG {
                    station.shared.count_dropped(output);
                    output.clear();
                    continue;
                }
                station.shared.count_sent(output);
                if let Some(tap) = &mut self.tap {
                    let (switch, session) = (SwitchIndex(index), *session);
                    for_each_frame(output, |frame| tap(now, Seen::Sent { switch, session, frame }));
                }
                line.send(output);
            }
        }
    }
}
