//! One message of every kind, written by us: what the oracles are asked to read, and where the cases in `tests/cases`
//! come from.

use openflow::{v10, v13};

/// A TCP segment from 10.1.0.1:1234 to 10.1.0.2:80, with right checksums.
pub const TCP_PACKET: &[u8] = &[
    0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00, //
    0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0x66, 0xcb, 10, 1, 0, 1, 10, 1, 0, 2, //
    0x04, 0xd2, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0x20, 0, 0x77, 0x60, 0, 0,
];

/// The transaction id of every sample.
const XID: u32 = 0x0102_0304;

/// A message with the name of its case.
pub struct Sample {
    pub name: String,
    pub frame: Vec<u8>,
    /// Whether Open vSwitch has all that is in it.
    pub in_ovs: bool,
}

#[derive(Default)]
pub struct Samples(pub Vec<Sample>);

impl Samples {
    /// All of OpenFlow 1.0.
    pub fn of_v10() -> Vec<Sample> {
        let mut samples = Self::default();
        super::samples_v10::add(&mut samples);
        samples.0
    }

    /// All of OpenFlow 1.3.
    pub fn of_v13() -> Vec<Sample> {
        let mut samples = Self::default();
        super::samples_v13::add(&mut samples);
        samples.0
    }

    pub fn v10(&mut self, name: &str, message: v10::Message<'_>) {
        let mut frame = Vec::new();
        message.write(XID, &mut frame).unwrap();
        self.0.push(Sample { name: name.to_owned(), frame, in_ovs: true });
    }

    pub fn v13(&mut self, name: &str, message: v13::Message<'_>) {
        let mut frame = Vec::new();
        message.write(XID, &mut frame).unwrap();
        self.0.push(Sample { name: name.to_owned(), frame, in_ovs: true });
    }

    pub fn v13_not_in_ovs(&mut self, name: &str, message: v13::Message<'_>) {
        self.v13(name, message);
        self.0.last_mut().unwrap().in_ovs = false;
    }
}
