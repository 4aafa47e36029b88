//! A switch that a test scripts, with a complete emulated switch as its model.

use std::time::{Duration, Instant};

use channel::blocking::Client;
use channel::{Address, Tls};
use openflow::frame;

use super::peer::Peer;
use crate::config::Config;
use crate::effects::Outcome;
use crate::error::Error;
use crate::switch::Switch as Model;

/// A switch that dials, and answers with its model, except for messages that the test holds back.
pub struct Switch {
    peer: Peer,
    model: Model,
    started: Instant,
    /// The outcome of the last message or packet: the frames that the switch sent.
    last: Outcome,
}

impl Switch {
    /// Dials a controller and sends HELLO. `timeout` is the limit of each wait.
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

    /// Answers messages until the controller has sent FEATURES_REQUEST.
    pub fn shake_hands(&mut self) -> Result<(), Error> {
        const FEATURES_REQUEST: u8 = 5;
        self.expect(FEATURES_REQUEST).map(|_| ())
    }

    /// Answers all messages up to and including the next message of this type. Returns that
    /// message.
    pub fn expect(&mut self, message_type: u8) -> Result<Vec<u8>, Error> {
        let message = self.hold(message_type)?;
        self.handle(&message)?;
        Ok(message)
    }

    /// Answers all messages before the next message of this type. Returns that message without an
    /// answer. The test can call [`Switch::handle`] for the message later.
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

    /// Answers all messages until no message comes for this time. Returns the messages.
    pub fn serve_until_quiet(&mut self, quiet: Duration) -> Result<Vec<Vec<u8>>, Error> {
        let mut came = Vec::new();
        while let Some(message) = self.peer.receive_within(quiet)? {
            self.handle(&message)?;
            came.push(message);
        }
        Ok(came)
    }

    /// Lets the model handle a message, and sends its replies.
    pub fn handle(&mut self, message: &[u8]) -> Result<&Outcome, Error> {
        let now = self.now();
        let mut out = Vec::new();
        self.last = self.model.handle_message(now, message, &mut out);
        self.peer.send(&out)?;
        Ok(&self.last)
    }

    /// Delivers a packet to a port of the model. Sends PACKET_INs to the controller.
    pub fn inject(&mut self, in_port: u32, packet: &[u8]) -> Result<&Outcome, Error> {
        let now = self.now();
        let mut out = Vec::new();
        self.last = self.model.receive_packet(now, in_port, packet, &mut out);
        self.peer.send(&out)?;
        Ok(&self.last)
    }

    /// Calls `work` with the model, and sends the bytes that `work` appends.
    pub fn with_model<T>(
        &mut self,
        work: impl FnOnce(&mut Model, &mut Vec<u8>) -> T,
    ) -> Result<T, Error> {
        let mut out = Vec::new();
        let result = work(&mut self.model, &mut out);
        self.peer.send(&out)?;
        Ok(result)
    }

    /// The outcome of the last message or packet: the frames that the switch sent.
    pub fn last_outcome(&self) -> &Outcome {
        &self.last
    }

    /// The switch model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The connection, for messages that a model would not send.
    pub fn peer(&mut self) -> &mut Peer {
        &mut self.peer
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }
}
