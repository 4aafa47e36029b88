//! The switch that a test plays, with a whole emulated switch behind it.

use std::time::{Duration, Instant};

use channel::blocking::Client;
use channel::{Address, Tls};
use openflow::frame;

use super::peer::Peer;
use crate::config::Config;
use crate::effects::Outcome;
use crate::error::Error;
use crate::switch::Switch as Model;

/// A switch that dials, and answers as its model does, except where the test holds it back.
pub struct Switch {
    peer: Peer,
    model: Model,
    started: Instant,
    /// What the last message or packet made the switch send out of its ports.
    last: Outcome,
}

impl Switch {
    /// Dials a controller and says HELLO. `timeout` holds for each wait.
    pub fn dial(
        address: &Address,
        tls: Option<&Tls>,
        config: Config,
        timeout: Duration,
    ) -> Result<Switch, Error> {
        let client = Client::connect(address, tls, timeout)?;
        let peer = Peer::new(client, timeout);
        let model = Model::new(config);
        let mut switch = Switch { peer, model, started: Instant::now(), last: Outcome::default() };
        let mut hello = Vec::new();
        switch.model.connect(&mut hello);
        switch.peer.send(&hello)?;
        Ok(switch)
    }

    /// Dials again, after the connection was lost or in place of it. The model keeps its tables.
    pub fn dial_again(&mut self, address: &Address, tls: Option<&Tls>) -> Result<(), Error> {
        let timeout = self.peer.timeout();
        self.peer = Peer::new(Client::connect(address, tls, timeout)?, timeout);
        let mut hello = Vec::new();
        self.model.connect(&mut hello);
        self.peer.send(&hello)
    }

    /// Answers until the controller has asked for the features.
    pub fn shake_hands(&mut self) -> Result<(), Error> {
        const FEATURES_REQUEST: u8 = 5;
        self.expect(FEATURES_REQUEST).map(|_| ())
    }

    /// Answers everything up to and including the next message of this type; gives that message.
    pub fn expect(&mut self, message_type: u8) -> Result<Vec<u8>, Error> {
        let message = self.hold(message_type)?;
        self.handle(&message)?;
        Ok(message)
    }

    /// Answers everything before the next message of this type, and gives that message unanswered:
    /// [`Switch::handle`] it later, or not at all.
    pub fn hold(&mut self, message_type: u8) -> Result<Vec<u8>, Error> {
        loop {
            let what = format!("a message of type {message_type}");
            let message = self.peer.wait_for(&what, |_| true)?;
            if frame::type_(&message) == Some(message_type) {
                return Ok(message);
            }
            self.handle(&message)?;
        }
    }

    /// Answers everything until nothing comes for this long; gives what came.
    pub fn serve_until_quiet(&mut self, quiet: Duration) -> Result<Vec<Vec<u8>>, Error> {
        let mut came = Vec::new();
        while let Some(message) = self.peer.receive_within(quiet)? {
            self.handle(&message)?;
            came.push(message);
        }
        Ok(came)
    }

    /// Lets the model handle a message, and sends its answers.
    pub fn handle(&mut self, message: &[u8]) -> Result<&Outcome, Error> {
        let now = self.now();
        let mut out = Vec::new();
        self.last = self.model.handle_message(now, message, &mut out);
        self.peer.send(&out)?;
        Ok(&self.last)
    }

    /// A packet arrives at a port; PACKET_INs go to the controller.
    pub fn inject(&mut self, in_port: u32, packet: &[u8]) -> Result<&Outcome, Error> {
        let now = self.now();
        let mut out = Vec::new();
        self.last = self.model.receive_packet(now, in_port, packet, &mut out);
        self.peer.send(&out)?;
        Ok(&self.last)
    }

    /// Does something to the model; what it appends is sent.
    pub fn with_model<T>(
        &mut self,
        work: impl FnOnce(&mut Model, &mut Vec<u8>) -> T,
    ) -> Result<T, Error> {
        let mut out = Vec::new();
        let result = work(&mut self.model, &mut out);
        self.peer.send(&out)?;
        Ok(result)
    }

    /// What the last message or packet made the switch send out of its ports.
    pub fn last_outcome(&self) -> &Outcome {
        &self.last
    }

    /// The switch behind.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The connection, to send what no model would.
    pub fn peer(&mut self) -> &mut Peer {
        &mut self.peer
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }
}
