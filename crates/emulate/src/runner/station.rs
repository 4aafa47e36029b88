//! One switch's place in the runner: its CPU and its connections.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use channel::{Dialer, Listener, Token};

use super::counters::Shared;
use super::line::Line;
use crate::service::Cpu;
use crate::session::SessionId;

/// Everything about one switch that is not the model.
pub(super) struct Station {
    pub(super) cpu: Cpu,
    pub(super) has_service_time: bool,
    /// Whether it meets controllers at all.
    pub(super) powered: bool,
    /// The message being served, and for whom.
    pub(super) serving: Option<(SessionId, Vec<u8>)>,
    /// What waits for the CPU, if it waits here and not in the sockets: whose, since when, and the message.
    pub(super) queue: Option<Waiting>,
    pub(super) callers: Vec<Caller>,
    pub(super) listeners: Vec<(Token, Listener)>,
    pub(super) lines: Vec<(SessionId, Line)>,
    /// Whose turn it is, among the lines.
    pub(super) turn: usize,
    pub(super) shared: Arc<Shared>,
}

/// Messages that wait for the CPU.
pub(super) struct Waiting {
    messages: VecDeque<(SessionId, u64, Vec<u8>)>,
    most: usize,
}

impl Waiting {
    pub(super) fn new(most: usize) -> Waiting {
        Waiting { messages: VecDeque::new(), most }
    }

    /// A connection is over.
    pub(super) fn forget(&mut self, session: SessionId) {
        self.messages.retain(|(whose, ..)| *whose != session);
    }
}

/// Messages that are taken out of sockets before others have their turn.
const READ_PER_TURN: usize = 4096;

/// A controller that the switch dials.
pub(super) struct Caller {
    pub(super) dialer: Dialer,
    /// The session while a connection stands or is being made.
    pub(super) session: Option<SessionId>,
    /// When to dial next, ns, if there is none.
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

    /// The next message for the CPU, and when it came. `Err` names a session whose stream cannot be followed any more.
    pub(super) fn next_message(
        &mut self,
        now: u64,
    ) -> Result<Option<(SessionId, u64, Vec<u8>)>, SessionId> {
        match &mut self.queue {
            Some(waiting) => Ok(waiting.messages.pop_front()),
            None => self.next_frame(now),
        }
    }

    /// Takes what has come into the queue, if there is one, as far as there is room; the rest is lost. Says whether there may be
    /// more.
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

    /// Finds a line with a frame, beginning with the one whose turn it is. `Err` names a session
    /// whose stream cannot be followed any more.
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
