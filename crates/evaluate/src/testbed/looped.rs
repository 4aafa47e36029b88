//! Two interfaces that are joined without a switch. This testbed shows the best possible results of
//! the tool itself, its floor.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use openflow::Version;

use super::clock::Clock;
use super::data::{DataPlane, DataPort, Outlet};
use super::interface::{Arrival, Happening, Testbed};
use crate::error::{Error, Result};
use crate::module::{Bench, Channel, Gauge, Traffic};
use crate::snmp::Oid;

/// Two looped interfaces. There is no control channel: messages to the switch are discarded.
pub struct Looped {
    bench: Bench,
    clock: Clock,
    // The inbox is above `data`: Rust drops the inbox first. So no thread waits for room in the inbox when `data` waits
    // for the end of its threads.
    inbox: Receiver<Result<Arrival>>,
    data: DataPlane,
    pending: VecDeque<Arrival>,
}

impl Looped {
    /// A testbed on two interfaces: probes enter the first interface and leave the second
    /// interface.
    ///
    /// # Errors
    /// An interface is missing or down, or the process lacks privileges.
    pub fn open(ports: [DataPort; 2]) -> Result<Looped> {
        let clock = Clock::start();
        let tag = 0x574c_4f4f_0000_0000 | u64::from(std::process::id());
        let (sender, inbox) = sync_channel(1024);
        let data = DataPlane::open(&ports, tag, clock, Outlet { sender, waker: None })?;
        let channels = ports.map(|port| Channel { name: port.interface, port: port.switch_port });
        let bench = Bench {
            name: "loop".to_owned(),
            version: Version::V1_0,
            dpid: 0,
            channels: channels.into(),
            interfaces: Vec::new(),
            has_switch: false,
            tag,
            day_ahead: clock.day_ahead(),
        };
        Ok(Looped { bench, clock, inbox, data, pending: VecDeque::new() })
    }
}

impl Testbed for Looped {
    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn send(&mut self, _bytes: Vec<u8>, mark: Option<u32>) -> Result<()> {
        if let Some(mark) = mark {
            let at = self.clock.now();
            self.pending.push_back(Arrival { at, what: Happening::Sent(mark) });
        }
        Ok(())
    }

    fn generate(&mut self, generator: u32, traffic: &Traffic) -> Result<()> {
        self.data.generate(generator, traffic)
    }

    fn stop(&mut self, generator: u32) {
        self.data.stop(generator);
    }

    fn set_link(&mut self, channel: usize, up: bool) -> Result<()> {
        self.data.set_link(channel, up)
    }

    fn read(&mut self, gauge: Gauge) {
        let what = Happening::Reading { gauge, value: None, remark: None };
        self.pending.push_back(Arrival { at: self.clock.now(), what });
    }

    fn ask(&mut self, oid: Oid) {
        let remark = Some("two looped interfaces have no SNMP agent".to_owned());
        let what = Happening::Object { oid, value: None, remark };
        self.pending.push_back(Arrival { at: self.clock.now(), what });
    }

    fn next(&mut self, until: u64) -> Result<Option<Arrival>> {
        if let Some(arrival) = self.pending.pop_front() {
            return Ok(Some(arrival));
        }
        let left = Duration::from_nanos(until.saturating_sub(self.clock.now()));
        match self.inbox.recv_timeout(left) {
            Ok(arrival) => arrival.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Error::Thread("the data channels' threads ended".to_owned()))
            }
        }
    }

    fn capture_drops(&mut self) -> u64 {
        self.data.drops()
    }
}
