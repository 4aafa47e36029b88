//! What a testbed does for those who run experiments, and what can happen on it.

use packet::Observation;

use crate::error::Result;
use crate::module::{Bench, Gauge, Generated, Traffic};
use crate::snmp::{Oid, Value};

/// Control channel, data channels and clock of one switch.
pub trait Testbed {
    /// What modules may know of it.
    fn bench(&self) -> &Bench;

    /// The time, ns since any moment.
    fn now(&self) -> u64;

    /// Sends whole OpenFlow messages; with a mark, [`Happening::Sent`] tells when they are gone.
    fn send(&mut self, bytes: Vec<u8>, mark: Option<u32>) -> Result<()>;

    /// Starts a generator.
    fn generate(&mut self, generator: u32, traffic: &Traffic) -> Result<()>;

    /// Stops a generator; nothing happens if it does not run.
    fn stop(&mut self, generator: u32);

    /// Takes the link of a channel down or up.
    fn set_link(&mut self, channel: usize, up: bool) -> Result<()>;

    /// Asks for a reading, which comes as [`Happening::Reading`].
    fn read(&mut self, gauge: Gauge);

    /// Asks the switch's SNMP agent; the answer comes as [`Happening::Object`].
    fn ask(&mut self, oid: Oid);

    /// The next thing that happens, or `None` when nothing does before `until`.
    fn next(&mut self, until: u64) -> Result<Option<Arrival>>;

    /// Frames that the capture lost because nobody read fast enough, so far.
    fn capture_drops(&mut self) -> u64;

    /// Ends what is recorded beside the results: the control channel's file.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Something that happened, and when, ns.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When.
    pub at: u64,
    /// What.
    pub what: Happening,
}

/// What can happen on a testbed.
#[derive(Clone, Debug)]
pub enum Happening {
    /// Messages with this mark are gone.
    Sent(u32),
    /// A whole OpenFlow message.
    Message(Vec<u8>),
    /// Probes at a channel, oldest first, each with the time at which we got to see it.
    Probes {
        /// The channel.
        channel: usize,
        /// The probes.
        probes: Vec<(Observation, u64)>,
    },
    /// A generator is done.
    Generated {
        /// Which.
        generator: u32,
        /// What it did.
        report: Generated,
    },
    /// A reading.
    Reading {
        /// Of what.
        gauge: Gauge,
        /// Its value.
        value: Option<f64>,
        /// Why there is none, or where it comes from instead, if a reader has to know.
        remark: Option<String>,
    },
    /// What an SNMP agent told.
    Object {
        /// What it was asked for.
        oid: Oid,
        /// What it told.
        value: Option<Value>,
        /// Why it told nothing.
        remark: Option<String>,
    },
}
