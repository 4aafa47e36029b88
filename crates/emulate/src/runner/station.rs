//! The CPU and the connections of one switch in the runner.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use channel::{Dialer, Listener, Token};

use super::counters::Shared;
use super::line::Line;
use crate::service::Cpu;
use crate::session::SessionId;

/// The state of one switch in the runner, without the switch model.
pub(super) struct Station {
    pub(super) cpu: Cpu,
    pub(super) has_service_time: bool,
    /// Whether the switch has power and can connect to controllers.
    pub(super) powered: bool,
    /// The message in service and its session.
    pub(super) serving: Option<(SessionId, Vec<u8>)>,
    /// The messages that wait for the CPU; `None` if messages wait in the sockets.
    pub(super) queue: Option<Waiting>,
    pub(super) callers: Vec<Caller>,
    pub(super) listeners: Vec<(Token, Listener)>,
    pub(super) lines: Vec<(SessionId, Line)>,
    /// The line with the next turn.
    pub(super) turn: usize,
    pub(super) shared: Arc<Shared>,
}

/// Messages that wait for the CPU: session, arrival time and frame.
pub(super) struct Waiting {
    messages: VecDeque<(SessionId, u64, Vec<u8>)>,
    most: usize,
}

impl Waiting {
    pub(super) fn new(most: usize) -> Waiting {
        Waiting { messages: VecDeque::new(), most }
    }

    /// Removes the messages of a closed connection.
    pub(super) fn forget(&mut self, session: SessionId) {
        self.messages.retain(|(whose, ..)| *whose != session);
    }
}

/// The maximum number of messages that one turn takes out of sockets.
const READ_PER_TURN: usize = 4096;

/// A controller that the switch dials.
pub(super) struct Caller {
    pub(super) dialer: Dialer,
    /// The session of an existing connection, or of a connection attempt.
    pub(super) session: Option<SessionId>,
    /// The time of the next dial if there is no session, ns.
    pub(super) dial_at: u64,
}

impl Station {
    pub(super) fn new(shared: Arc<Shared>) -> Station {
        Station {
            cpu: Cpu::default(),
            has_service_time: false,
            powered: true,
            serving: None,
            queue: None,
            callers: Vec::new(),
            listeners: Vec::new(),
            lines: Vec::new(),
            turn: 0,
            shared,
        }
    }

    pub(super) fn line(&mut self, session: SessionId) -> Option<&mut Line> {
        self.lines.iter_mut().find(|(id, _)| *id == session).map(|(_, line)| line)
    }

    /// Returns the next message for the CPU and its arrival time. `Err` has the session of a stream that cannot be
    /// decoded.
    pub(super) fn next_message(
        &mut self,
        now: u64,
    ) -> Result<Option<(SessionId, u64, Vec<u8>)>, SessionId> {
        match &mut self.queue {
            Some(waiting) => Ok(waiting.messages.pop_front()),
            None => self.next_frame(now),
        }
    }

    /// Moves received messages into the queue, if the switch has a queue. Messages that do not fit are dropped. Returns
    /// whether the sockets may have more messages.
    pub(super) fn fill_queue(&mut self, now: u64) -> Result<bool, SessionId> {
        if self.queue.is_none() {
            return Ok(false);
        }
        for _ in 0..READ_PER_TURN {
            let Some(message) = self.next_frame(now)? else { return Ok(false) };
            let Some(waiting) = &mut self.queue else { return Ok(false) };
            if waiting.messages.len() < waiting.most {
                waiting.messages.push_back(message);
                let length = waiting.messages.len() as u64;
                self.shared.longest_queue.fetch_max(length, Relaxed);
            } else {
                self.shared.overflowed.fetch_add(1, Relaxed);
            }
        }
        Ok(true)
    }

    /// Finds a line with a frame, beginning with the line that has the turn. `Err` has the session
    /// of a stream that cannot be decoded.
    pub(super) fn next_frame(
        &mut self,
        now: u64,
    ) -> Result<Option<(SessionId, u64, Vec<u8>)>, SessionId> {
        for _ in 0..self.lines.len() {
            self.turn = (self.turn + 1) % self.lines.len();
            let Some((session, line)) = self.lines.get_mut(self.turn) else { continue };
            let session = *session;
            if line.is_stuffed() || !line.has_frame(now).map_err(|_| session)? {
                continue;
            }
            let arrival = line.arrival();
            if let Some(frame) = line.next_frame().map_err(|_| session)? {
                return Ok(Some((session, arrival, frame.to_vec())));
            }
        }
        Ok(None)
    }
}
