//! Writes captures in the pcapng format, with nanosecond timestamps, for `tcpdump` and Wireshark.
//!
//! Only what is needed: one section, Ethernet interfaces, enhanced packet blocks
//! (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3).

use std::io::{self, Write};

use crate::error::{Error, Result};
use crate::receive::Frame;
use crate::timestamp::Timestamp;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LINKTYPE_ETHERNET: u16 = 1;
const END_OF_OPTIONS: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TIMESTAMP_RESOLUTION: u16 = 9;
/// Timestamps count units of 10⁻⁹ s.
const NANOSECONDS: u8 = 9;

/// One interface of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// A pcapng file that is being written. Wrap slow writers in a `BufWriter`.
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    output: W,
    interfaces: u32,
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Starts a file.
    pub fn new(output: W) -> Result<Self> {
        let mut writer = PcapngWriter { output, interfaces: 0, block: Vec::new() };
        let mut body = Vec::new();
        body.extend(BYTE_ORDER_MAGIC.to_ne_bytes());
        body.extend(1_u16.to_ne_bytes()); // major version
        body.extend(0_u16.to_ne_bytes()); // minor version
        body.extend((-1_i64).to_ne_bytes()); // length of the section: not known
        writer.write_block(SECTION_HEADER, &[&body])?;
        Ok(writer)
    }

    /// Adds an interface; frames are written to one.
    pub fn add_interface(&mut self, name: &str) -> Result<InterfaceId> {
        let mut body = Vec::new();
        body.extend(LINKTYPE_ETHERNET.to_ne_bytes());
        body.extend([0, 0]); // reserved
        body.extend(0_u32.to_ne_bytes()); // no limit to a frame's length
        option(&mut body, IF_NAME, name.as_bytes())?;
        option(&mut body, IF_TIMESTAMP_RESOLUTION, &[NANOSECONDS])?;
        option(&mut body, END_OF_OPTIONS, &[])?;
        self.write_block(INTERFACE_DESCRIPTION, &[&body])?;
        let id = InterfaceId(self.interfaces);
        self.interfaces += 1;
        Ok(id)
    }

    /// Writes a captured frame.
    pub fn write(&mut self, interface: InterfaceId, frame: &Frame<'_>) -> Result<()> {
        self.write_part(interface, frame.timestamp, frame.data, frame.length)
    }

    /// Writes the bytes of a whole frame.
    pub fn write_bytes(
        &mut self,
        interface: InterfaceId,
        timestamp: Timestamp,
        frame: &[u8],
    ) -> Result<()> {
        self.write_part(interface, timestamp, frame, frame.len())
    }

    /// Flushes and gives the writer back.
    pub fn finish(mut self) -> Result<W> {
        self.output.flush().map_err(failed)?;
        Ok(self.output)
    }

    fn write_part(
        &mut self,
        interface: InterfaceId,
        time: Timestamp,
        bytes: &[u8],
        original: usize,
    ) -> Result<()> {
        let captured = length(bytes.len())?;
        let mut head = [0; 20];
        let words =
            [interface.0, (time.0 >> 32) as u32, time.0 as u32, captured, length(original)?];
        for (to, word) in head.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *to = word.to_ne_bytes();
        }
        self.write_block(ENHANCED_PACKET, &[&head, bytes])
    }

    /// A block: type, total length, body padded to 32 bits, total length again.
    fn write_block(&mut self, kind: u32, parts: &[&[u8]]) -> Result<()> {
        let body: usize = parts.iter().map(|part| part.len()).sum();
        let total = length(12 + body.next_multiple_of(4))?;
        self.block.clear();
        self.block.extend(kind.to_ne_bytes());
        self.block.extend(total.to_ne_bytes());
        parts.iter().for_each(|part| self.block.extend_from_slice(part));
        self.block.resize(8 + body.next_multiple_of(4), 0);
        self.block.extend(total.to_ne_bytes());
        self.output.write_all(&self.block).map_err(failed)
    }
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) -> Result<()> {
    let length = u16::try_from(value.len())
        .map_err(|_| Error::Invalid("a pcapng option is too long".to_owned()))?;
    body.extend(code.to_ne_bytes());
    body.extend(length.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
    Ok(())
}

fn length(bytes: usize) -> Result<u32> {
    u32::try_from(bytes).map_err(|_| Error::Invalid("a frame is too long for pcapng".to_owned()))
}

fn failed(error: io::Error) -> Error {
    Error::system("write the capture file", error)
}
