//! The trait of a testbed, and the events on a testbed.

use packet::Observation;

use crate::error::Result;
use crate::module::{Bench, Gauge, Generated, Traffic};
use crate::snmp::{Oid, Value};

/// The control channel, data channels and clock of one switch.
pub trait Testbed {
    /// The information for modules.
    fn bench(&self) -> &Bench;

    /// The present time, ns since an arbitrary moment.
    fn now(&self) -> u64;

    /// Sends complete OpenFlow messages; with a mark, [`Happening::Sent`] reports the end of
    /// sending.
    fn send(&mut self, bytes: Vec<u8>, mark: Option<u32>) -> Result<()>;

    /// Starts a generator.
    fn generate(&mut self, generator: u32, traffic: &Traffic) -> Result<()>;

    /// Stops a generator; has no effect on a generator that does not run.
    fn stop(&mut self, generator: u32);

    /// Sets the link of a channel down or up.
    fn set_link(&mut self, channel: usize, up: bool) -> Result<()>;

    /// Requests a reading; the reply is [`Happening::Reading`].
    fn read(&mut self, gauge: Gauge);

    /// Requests an object from the switch's SNMP agent; the reply is [`Happening::Object`].
    fn ask(&mut self, oid: Oid);

    /// The next arrival, or `None` when there is no arrival before `until`.
    fn next(&mut self, until: u64) -> Result<Option<Arrival>>;

    /// The number of frames so far that the capture lost because the reader was too slow.
    fn capture_drops(&mut self) -> u64;

    /// Ends the recording besides the results: the file of the control channel.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// An event with its time.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The time, ns.
    pub at: u64,
    /// The event.
    pub what: Happening,
}

/// An event on a testbed.
#[derive(Clone, Debug)]
pub enum Happening {
    /// The messages up to this mark are sent.
    Sent(u32),
    /// A complete OpenFlow message.
    Message(Vec<u8>),
    /// Probes at a channel, oldest first, each with the time at which this process saw the probe.
    Probes {
        /// The channel.
        channel: usize,
        /// The probes.
        probes: Vec<(Observation, u64)>,
    },
    /// A generator is done.
    Generated {
        /// The number of the generator.
        generator: u32,
        /// The report of the generator.
        report: Generated,
    },
    /// The reading of a gauge.
    Reading {
        /// The gauge.
        gauge: Gauge,
        /// Its value.
        value: Option<f64>,
        /// The reason for a missing value, or another source of the value, as a remark for the
        /// reader.
        remark: Option<String>,
    },
    /// The reply of an SNMP agent.
    Object {
        /// The identifier of the object.
        oid: Oid,
        /// The value of the object.
        value: Option<Value>,
        /// The reason for a missing value.
        remark: Option<String>,
    },
}
