//! One switch's place in the runner: its CPU and its connections.

use std::sync::Arc;

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
    pub(super) callers: Vec<Caller>,
    pub(super) listeners: Vec<(Token, Listener)>,
    pub(super) lines: Vec<(SessionId, Line)>,
    /// Whose turn it is, among the lines.
    pub(super) turn: usize,
    pub(super) shared: Arc<Shared>,
}

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
