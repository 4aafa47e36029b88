//! A controller that a test scripts.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use channel::blocking::Client;
use channel::{Address, Listener, Options, Tls};
use openflow::hello::{Hello, negotiate};
use openflow::{Header, Version, VersionSet, v10, v13};

use super::peer::{Peer, describe};
use crate::error::Error;

/// A controller that listens, and sends only the messages of the test.
pub struct Controller {
    listener: Listener,
    timeout: Duration,
}

/// A switch that connected to a [`Controller`] and completed the handshake. The type dereferences
/// to [`Peer`].
pub struct Connected {
    peer: Peer,
    /// The negotiated version.
    pub version: Version,
    /// The datapath id.
    pub dpid: u64,
    /// The whole FEATURES_REPLY.
    pub features: Vec<u8>,
}

const FEATURES_REQUEST: u8 = 5;
const FEATURES_REPLY: u8 = 6;

impl Controller {
    /// Listens. With port 0 the kernel chooses the port. `timeout` is the limit of each wait.
    pub fn listen(
        address: &Address,
        tls: Option<&Tls>,
        timeout: Duration,
    ) -> Result<Controller, Error> {
        let listener = Listener::bind(address, tls, Options::default())?;
        Ok(Controller { listener, timeout })
    }

    /// The address on which the controller listens.
    pub fn address(&self) -> Address {
        self.listener.address()
    }

    /// Waits for the next connection, and sends nothing.
    pub fn accept_raw(&mut self) -> Result<Peer, Error> {
        let client = Client::accept(&mut self.listener, self.timeout)?;
        Ok(Peer::new(client, self.timeout))
    }

    /// Waits for the next connection and does the handshake, offering these versions.
    pub fn accept(&mut self, versions: VersionSet) -> Result<Connected, Error> {
        let mut peer = self.accept_raw()?;
        let mut hello = Vec::new();
        Hello::write_message(versions, 1, &mut hello)?;
        peer.send(&hello)?;
        let theirs = peer.expect(Hello::TYPE)?;
        let (header, theirs) = Hello::parse_frame(&theirs)?;
        let agreed = negotiate(versions, header.version.0, theirs.versions());
        let version = agreed.ok_or_else(|| Error::Unexpected {
            expected: format!("a version of {versions:?}"),
            came: format!("{:?}, {:?}", header.version, theirs.versions()),
        })?;
        let [high, low] = (Header::LEN as u16).to_be_bytes();
        peer.send(&[version.0, FEATURES_REQUEST, high, low, 0, 0, 0, 2])?;
        let features = peer.expect(FEATURES_REPLY)?;
        let dpid = datapath_id(version, &features)?;
        Ok(Connected { peer, version, dpid, features })
    }
}

fn datapath_id(version: Version, features: &[u8]) -> Result<u64, Error> {
    let found = match version {
        Version::V1_0 => match v10::Message::parse(features)?.1 {
            v10::Message::FeaturesReply(body) => Some(body.datapath_id),
            _ => None,
        },
        _ => match v13::Message::parse(features)?.1 {
            v13::Message::FeaturesReply(body) => Some(body.datapath_id),
            _ => None,
        },
    };
    found.ok_or_else(|| Error::Unexpected {
        expected: "FEATURES_REPLY".to_owned(),
        came: describe(features),
    })
}

impl Deref for Connected {
    type Target = Peer;
    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl DerefMut for Connected {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }
}
