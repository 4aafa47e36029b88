//! The way to the store thread. Changes of switches, and reads of what is stored of them, keep their order and have a bound
//! for each shard ([`Asker::offer`]); so who changes much on one shard leaves room for the others, and while the thread rests
//! and changes wait, there is room for what others ask, who wait for the answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError, Sender};
use std::time::Instant;

use super::command::{Command, LoadTo};

/// Batches and reads of a shard that may wait for the store thread. With one batch per wake-up of a shard this is far
/// more than a commit's time brings; it is a bound, not a working size.
pub(super) const QUEUE: usize = 1024;

/// The end that asks.
#[derive(Clone)]
pub(super) struct Asker {
    sender: Sender<Asked>,
    /// How many wait of those that keep their order.
    ordered: Arc<AtomicUsize>,
}

type Asked = (Command, Option<Place>);

/// One that waits, until it is taken.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The store thread's end.
pub(super) struct Queue {
    receiver: Receiver<Asked>,
    /// Those that came while the thread rested.
    waiting: VecDeque<Asked>,
    is_ending: bool,
}

pub(super) fn queue() -> (Asker, Queue) {
    // Without a bound of its own: `offer` has one, and others wait for their answers.
    let (sender, receiver) = mpsc::channel();
    let asker = Asker { sender, ordered: Arc::default() };
    (asker, Queue { receiver, waiting: VecDeque::new(), is_ending: false })
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
    /// Another one, with room of its own.
    pub(super) fn another(&self) -> Asker {
        Asker { sender: self.sender.clone(), ordered: Arc::default() }
    }

    /// Asks for what keeps its order; comes back if too much of that waits, or if the thread has ended.
    pub(super) fn offer(&self, command: Command) -> Result<(), Command> {
        let room = |ordered| (ordered < QUEUE).then_some(ordered + 1);
        if self.ordered.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_err() {
            return Err(command);
        }
        let place = Place(Arc::clone(&self.ordered));
        let sent = self.sender.send((command, Some(place)));
        sent.map_err(|SendError((command, _))| command)
    }

    /// Asks for anything else; false if the thread has ended.
    pub(super) fn ask(&self, command: Command) -> bool {
        self.sender.send((command, None)).is_ok()
    }
}

impl Queue {
    /// The next one, waiting for it; `None` when there is nobody to ask any more.
    pub(super) fn next(&mut self) -> Option<Command> {
        self.waiting.pop_front().or_else(|| self.receiver.recv().ok()).map(taken)
    }

    /// The next one, waiting for it until then at most.
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

    /// The next one, if it is here.
    pub(super) fn try_next(&mut self) -> Option<Command> {
        self.waiting.pop_front().or_else(|| self.receiver.try_recv().ok()).map(taken)
    }

    /// The next one that need not keep its order, waiting for it until then at most. Others wait. `None` ends the rest: it is
    /// over, or all is to end.
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

/// Makes room for another one.
fn taken((command, _place): Asked) -> Command {
    command
}

fn keeps_order(command: &Command) -> bool {
    matches!(command, Command::Store { .. } | Command::Load { to: LoadTo::Shard(_), .. })
}
