//! A connected switch, and its links to the tenants' controllers.

use super::contact::Contact;
use crate::big_switches::command::Handle as JoinerHandle;
use crate::metrics::{SwitchMetrics, TenantMetrics};
use channel::{
    Address, Backoff, Connection, Dialer, Established, Handshake, Keepalive, Liveness, Step, Token,
};
use hypervisor::{ControllerIndex, Policy, Switch, TenantId};
use openflow::Version;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// One connected switch.
pub(super) struct Session {
    pub core: Switch,
    pub switch: Peer,
    pub links: HashMap<u32, Link>,
    pub by_controller: HashMap<ControllerIndex, u32>,
    pub next_link: u32,
    pub touched: bool,
    /// The inputs of the grants that were published last: changes of shares; tenants, weights and limits.
    pub granted: (u64, u64),
    /// The number of publications until the switch is asked for its port counters.
    pub until_ports: u32,
    /// The number of the store's next batch when the session began.
    pub epoch: u64,
    pub metrics: Arc<SwitchMetrics>,
    pub tenants: HashMap<TenantId, Arc<TenantMetrics>>,
}

/// A connection in a session.
pub(super) struct Peer {
    pub token: Token,
    pub connection: Connection,
    pub keepalive: Keepalive,
}

impl Peer {
    /// Queues an ECHO_REQUEST if one is due. Messages that wait unread show that the other end is there.
    pub(super) fn probe(&mut self, version: Version, now: Instant) -> Liveness {
        if self.connection.pending_bytes() > 0 {
            self.keepalive.heard(now);
        }
        let liveness = self.keepalive.poll(now);
        if liveness == Liveness::SendEcho {
            let mut probe = Vec::new();
            self.keepalive.write_probe(version, &mut probe);
            // If the buffer is full, other messages that need an answer are on the way.
            let _ = self.connection.push(&probe);
        }
        liveness
    }
}

/// Handles the messages of a handshake that have arrived; returns `None` if the handshake goes on.
pub(super) fn shake_hands(
    connection: &mut Connection,
    handshake: &mut Handshake,
    out: &mut Vec<u8>,
) -> Option<Result<Established, String>> {
    loop {
        let frame = match connection.next_frame() {
            Ok(frame) => frame?,
            Err(error) => return Some(Err(error.to_string())),
        };
        match handshake.handle(frame, out) {
            Ok(Step::Continue | Step::NotOurs) => {}
            Ok(Step::Done(established)) => return Some(Ok(established)),
            Err(error) => return Some(Err(error.to_string())),
        }
    }
}

/// The link to one controller of one tenant.
pub(super) struct Link {
    pub tenant: TenantId,
    pub dialer: Way,
    pub progress: Progress,
    /// Whether the controller has sent anything but HELLO and ERROR since it connected.
    pub has_spoken: bool,
    pub contact: Contact,
}

/// The other end of a link.
pub(super) enum Way {
    /// A controller.
    Controller(Dialer),
    /// The big switch of which this switch is a member, by its key.
    Joined(u64, Backoff),
}

impl Way {
    pub(super) fn dial(
        &self,
        dpid: u64,
        joiner: &JoinerHandle,
    ) -> Result<Connection, channel::Error> {
        match self {
            Way::Controller(dialer) => dialer.dial(),
            Way::Joined(key, _) => joiner.connect(*key, dpid),
        }
    }

    pub(super) fn address(&self) -> Option<Address> {
        match self {
            Way::Controller(dialer) => Some(dialer.address()),
            Way::Joined(..) => None,
        }
    }

    pub(super) fn failed(&mut self) -> std::time::Duration {
        match self {
            Way::Controller(dialer) => dialer.failed(),
            Way::Joined(_, backoff) => backoff.next_delay(),
        }
    }

    pub(super) fn succeeded(&mut self) {
        match self {
            Way::Controller(dialer) => dialer.succeeded(),
            Way::Joined(_, backoff) => backoff.reset(),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Controller(dialer) => dialer.address().fmt(f),
            Way::Joined(..) => f.write_str("the big switch"),
        }
    }
}

/// The state of a link.
pub(super) enum Progress {
    /// The link waits for a timer, which dials.
    Waiting,
    /// The link is connecting, or in the handshake; a timer ends this state.
    Greeting {
        token: Token,
        connection: Box<Connection>,
        handshake: Handshake,
        /// Weir's HELLO, until it is sent: a peer with another tenant's certificate gets nothing.
        hello: Vec<u8>,
        until: Instant,
    },
    /// The link is established.
    Up { peer: Box<Peer>, controller: ControllerIndex },
}

/// A tenant's metrics on a switch, created at the first use.
pub(super) fn tenant_metrics<'a>(
    known: &'a mut HashMap<TenantId, Arc<TenantMetrics>>,
    switch: &SwitchMetrics,
    policy: &Policy,
    id: TenantId,
) -> &'a Arc<TenantMetrics> {
    known.entry(id).or_insert_with(|| {
        let tenant = policy.tenants.iter().find(|tenant| tenant.id == id);
        switch.tenant(id.0, tenant.map_or("", |tenant| &tenant.name))
    })
}
