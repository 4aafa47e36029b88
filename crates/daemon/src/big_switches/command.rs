//! Commands of other threads to the thread of big switches, and their channel.
//!
//! The shards and the thread of big switches send commands to each other: each needs only the commands of the other.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use channel::{Connection, Options, Waker};
use hypervisor::Policy;
use hypervisor::big_switch::{self, Plan};

pub(super) enum Command {
    Plans(BTreeMap<u64, Plan>),
    /// A member's session has connected: key, datapath id.
    Member(u64, u64, Box<Connection>),
    Stop,
}

/// Sends plans and connects members, from any thread.
#[derive(Clone)]
pub struct Handle {
    sender: Sender<Command>,
    waker: Waker,
}

impl Handle {
    /// `waker`: wakes the thread of big switches.
    pub(super) fn new(sender: Sender<Command>, waker: Waker) -> Handle {
        Handle { sender, waker }
    }

    /// Sends the plans of a new policy.
    pub fn plan(&self, policy: &Policy) {
        self.send(Command::Plans(big_switch::plans(policy)));
    }

    /// A connection to the big switch with this key, for its member on this physical switch.
    pub fn connect(&self, key: u64, dpid: u64) -> Result<Connection, channel::Error> {
        let (ours, theirs) = Connection::local_pair(&Options::default())?;
        self.send(Command::Member(key, dpid, Box::new(theirs)));
        Ok(ours)
    }

    pub(super) fn send(&self, command: Command) {
        // If the thread has ended, the process ends as well.
        if self.sender.send(command).is_ok() {
            let _ = self.waker.wake();
        }
    }
}
