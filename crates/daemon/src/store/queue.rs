//! The way to the store thread. Changes of switches, and reads of what is stored of them, keep their order and have a bound
//! of their own ([`Asker::offer`]); so while the thread rests and they wait, there is room for what others ask, who wait for
//! the answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::time::Instant;

use super::QUEUE;
use super::writer::{Command, LoadTo};

/// How many others may be asking at once; more wait for room.
const OTHERS: usize = 64;

/// The end that asks.
#[derive(Clone)]
pub(super) struct Asker {
    sender: SyncSender<Command>,
    ordered: Arc<AtomicUsize>,
}

/// The store thread's end.
pub(super) struct Queue {
    receiver: Receiver<Command>,
    /// How many wait of those that keep their order, here or in the channel.
    ordered: Arc<AtomicUsize>,
    /// Those that came while the thread rested.
    waiting: VecDeque<Command>,
    is_ending: bool,
}

pub(super) fn queue() -> (Asker, Queue) {
    let (sender, receiver) = mpsc::sync_channel(QUEUE + OTHERS);
    let ordered = Arc::<AtomicUsize>::default();
    let asker = Asker { sender, ordered: Arc::clone(&ordered) };
    (asker, Queue { receiver, ordered, waiting: VecDeque::new(), is_ending: false })
}

/// What came.
pub(super) enum Next {
    Command(Command),
    /// Nothing in time.
    Nothing,
    /// There is nobody to ask any more.
    Ended,
}

impl Asker {
    /// Asks for what keeps its order; comes back if too much of that waits, or if the thread has ended.
    pub(super) fn offer(&self, command: Command) -> Result<(), Command> {
        let room = |ordered| (ordered < QUEUE).then_some(ordered + 1);
        if self.ordered.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_err() {
            return Err(command);
        }
        self.sender.try_send(command).map_err(|refused| {
            self.ordered.fetch_sub(1, Ordering::AcqRel);
            let (TrySendError::Full(command) | TrySendError::Disconnected(command)) = refused;
            command
        })
    }

    /// Asks for anything else; false if the thread has ended.
    pub(super) fn ask(&self, command: Command) -> bool {
        self.sender.send(command).is_ok()
    }
}

impl Queue {
    /// The next one, waiting for it; `None` when there is nobody to ask any more.
    pub(super) fn next(&mut self) -> Option<Command> {
        let next = self.waiting.pop_front().or_else(|| self.receiver.recv().ok());
        self.taken(next)
    }

    /// The next one, waiting for it until then at most.
    pub(super) fn next_until(&mut self, until: Instant) -> Next {
        let left = until.saturating_duration_since(Instant::now());
        let next = match self.waiting.pop_front() {
            Some(command) => Ok(command),
            None => self.receiver.recv_timeout(left),
        };
        match next {
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            next => self.taken(next.ok()).map_or(Next::Ended, Next::Command),
        }
    }

    /// The next one, if it is here.
    pub(super) fn try_next(&mut self) -> Option<Command> {
        let next = self.waiting.pop_front().or_else(|| self.receiver.try_recv().ok());
        self.taken(next)
    }

    /// The next one that need not keep its order, waiting for it until then at most. Others wait. `None` ends the rest: it is
    /// over, or all is to end.
    pub(super) fn next_in_rest(&mut self, until: Instant) -> Option<Command> {
        while !self.is_ending {
            let left = until.checked_duration_since(Instant::now()).filter(|it| !it.is_zero())?;
            match self.receiver.recv_timeout(left).ok()? {
                command @ Command::Stop => {
                    self.is_ending = true;
                    self.waiting.push_back(command);
                }
                command if keeps_order(&command) => self.waiting.push_back(command),
                command => return Some(command),
            }
        }
        None
    }

    fn taken(&mut self, command: Option<Command>) -> Option<Command> {
        if command.as_ref().is_some_and(keeps_order) {
            self.ordered.fetch_sub(1, Ordering::AcqRel);
        }
        command
    }
}

fn keeps_order(command: &Command) -> bool {
    matches!(command, Command::Store { .. } | Command::Load { to: LoadTo::Shard(_), .. })
}
