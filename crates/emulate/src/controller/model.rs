//! A controller without sockets: connections are numbers, and the time is an argument.

use std::collections::BTreeMap;

use openflow::{Version, VersionSet};

use super::behaviour::Behaviour;
use super::conversation::Conversation;

/// The id of a switch's connection to a [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// A controller for any number of switches, without sockets.
pub struct Controller {
    behaviour: Behaviour,
    versions: VersionSet,
    conversations: BTreeMap<ConnectionId, Conversation>,
    next: u64,
}

impl Controller {
    /// Makes a controller that offers these versions.
    pub fn new(behaviour: Behaviour, versions: VersionSet) -> Controller {
        Controller { behaviour, versions, conversations: BTreeMap::new(), next: 0 }
    }

    /// Adds the connection of a switch, and appends HELLO.
    pub fn connect(&mut self, out: &mut Vec<u8>) -> ConnectionId {
        let id = ConnectionId(self.next);
        self.next += 1;
        let conversation = Conversation::begin(self.versions, out);
        self.conversations.insert(id, conversation);
        id
    }

    /// Removes the connection of a switch.
    pub fn disconnect(&mut self, id: ConnectionId) {
        self.conversations.remove(&id);
    }

    /// Handles one whole message of a switch and appends the replies. Returns `false` if the
    /// controller must close the connection (no version in common).
    pub fn handle_message(
        &mut self,
        now: u64,
        id: ConnectionId,
        frame: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        match self.conversations.get_mut(&id) {
            Some(conversation) => {
                conversation.handle(&self.behaviour, self.versions, now, frame, out)
            }
            None => false,
        }
    }

    /// Appends the messages of a storm that are due for a switch at `now`.
    pub fn tick(&mut self, now: u64, id: ConnectionId, out: &mut Vec<u8>) {
        if let Some(conversation) = self.conversations.get_mut(&id) {
            conversation.tick(&self.behaviour, now, out);
        }
    }

    /// The earliest time at which [`Controller::tick`] may have messages for a switch, ns.
    pub fn next_deadline(&self, id: ConnectionId) -> Option<u64> {
        self.conversations.get(&id)?.next_deadline(&self.behaviour)
    }

    /// The switches with a complete handshake: connection, datapath id and version.
    pub fn switches(&self) -> impl Iterator<Item = (ConnectionId, u64, Version)> {
        self.conversations.iter().filter_map(|(id, conversation)| {
            let (dpid, version) = conversation.established()?;
            Some((*id, dpid, version))
        })
    }
}
