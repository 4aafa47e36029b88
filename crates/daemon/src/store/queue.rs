//! The queue to the store thread. Changes and reads of switches keep their order and have a bound for each shard
//! ([`Asker::offer`]). So many changes on one shard leave room for other shards, and while the thread rests and changes
//! wait, there is room for requests whose callers wait for the answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError, Sender};
use std::time::Instant;

use super::command::{Command, LoadTo};

/// The most batches and reads of a shard in the queue. With one batch per wake-up of a shard this is far more than the
/// changes during a commit; it is a bound, not a working size.
pub(super) const QUEUE: usize = 1024;

/// The asking end.
#[derive(Clone)]
pub(super) struct Asker {
    sender: Sender<Asked>,
    /// The number of waiting commands that keep their order.
    ordered: Arc<AtomicUsize>,
}

type Asked = (Command, Option<Place>);

/// The place of a waiting command, until the thread takes the command.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The store thread's end.
pub(super) struct Queue {
    receiver: Receiver<Asked>,
    /// Commands that arrived while the thread rested.
    waiting: VecDeque<Asked>,
    is_ending: bool,
}

pub(super) fn queue() -> (Asker, Queue) {
    // The channel has no bound of its own: `offer` has one, and other callers wait for their answers.
    let (sender, receiver) = mpsc::channel();
    let asker = Asker { sender, ordered: Arc::default() };
    (asker, Queue { receiver, waiting: VecDeque::new(), is_ending: false })
}

/// The next command, or the reason why there is none.
pub(super) enum Next {
    Command(Command),
    /// No command in time.
    Nothing,
    /// All asking ends are dropped.
    Ended,
}

impl Asker {
    /// Another asking end, with a bound of its own.
    pub(super) fn another(&self) -> Asker {
        Asker { sender: self.sender.clone(), ordered: Arc::default() }
    }

    /// Sends a command that keeps its order. The command is returned if the bound is reached, or if the thread has
    /// ended.
    pub(super) fn offer(&self, command: Command) -> Result<(), Command> {
        let room = |ordered| (ordered < QUEUE).then_some(ordered + 1);
        if self.ordered.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_err() {
            return Err(command);
        }
        let place = Place(Arc::clone(&self.ordered));
        let sent = self.sender.send((command, Some(place)));
        sent.map_err(|SendError((command, _))| command)
    }

    /// Sends any other command; false if the thread has ended.
    pub(super) fn ask(&self, command: Command) -> bool {
        self.sender.send((command, None)).is_ok()
    }
}

impl Queue {
    /// Waits for the next command; `None` if all asking ends are dropped.
    pub(super) fn next(&mut self) -> Option<Command> {
        self.waiting.pop_front().or_else(|| self.receiver.recv().ok()).map(taken)
    }

    /// Waits for the next command until a time.
    pub(super) fn next_until(&mut self, until: Instant) -> Next {
        let left = until.saturating_duration_since(Instant::now());
        let next = match self.waiting.pop_front() {
            Some(asked) => Ok(asked),
            None => self.receiver.recv_timeout(left),
        };
        match next {
            Ok(asked) => Next::Command(taken(asked)),
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::Ended,
        }
    }

    /// The next command, if there is one.
    pub(super) fn try_next(&mut self) -> Option<Command> {
        self.waiting.pop_front().or_else(|| self.receiver.try_recv().ok()).map(taken)
    }

    /// Waits until a time for the next command that need not keep its order; other commands stay in the queue. `None`:
    /// the rest is over, or the thread has to end.
    pub(super) fn next_in_rest(&mut self, until: Instant) -> Option<Command> {
        while !self.is_ending {
            let left = until.checked_duration_since(Instant::now()).filter(|it| !it.is_zero())?;
            match self.receiver.recv_timeout(left).ok()? {
                asked @ (Command::Stop, _) => {
                    self.is_ending = true;
                    self.waiting.push_back(asked);
                }
                asked if keeps_order(&asked.0) => self.waiting.push_back(asked),
                asked => return Some(taken(asked)),
            }
        }
        None
    }
}

/// Takes a command, and makes room for another one.
fn taken((command, _place): Asked) -> Command {
    command
}

fn keeps_order(command: &Command) -> bool {
    matches!(command, Command::Store { .. } | Command::Load { to: LoadTo::Shard(_), .. })
}
