//! Writes the control channel as a pcapng file, for Wireshark and `tcpdump`.
//!
//! The file contains the sent and received messages of the experiment, message by message, in
//! artificial TCP segments between 192.0.2.1 (the experiment) and 192.0.2.2, port 6653 (the
//! switch). The experiment does not see the real segments, and does not see the real bytes of a TLS
//! connection.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use packet::{InterfaceId, PcapngWriter, Timestamp};

use crate::error::{Error, Result};

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToSwitch,
    FromSwitch,
}

/// An open trace file.
pub(crate) struct Trace {
    writer: PcapngWriter<BufWriter<File>>,
    interface: InterfaceId,
    path: PathBuf,
    /// The next sequence numbers: of the experiment and of the switch.
    next: [u32; 2],
}

/// The most bytes of a message in one segment: a frame must not be longer than the maximum of IPv4.
const LONGEST: usize = 32 << 10;
const SWITCH_PORT: u16 = 6653;
const OWN_PORT: u16 = 50_000;

impl Trace {
    /// Creates the file.
    pub(crate) fn create(path: &Path) -> Result<Trace> {
        let file =
            File::create(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        let failed = |error| failed(path, &error);
        let mut writer = PcapngWriter::new(BufWriter::new(file)).map_err(failed)?;
        let interface = writer.add_interface("control").map_err(failed)?;
        Ok(Trace { writer, interface, path: path.to_owned(), next: [1, 1] })
    }

    /// Adds bytes of the stream.
    pub(crate) fn write(&mut self, way: Way, at: Timestamp, bytes: &[u8]) -> Result<()> {
        for part in bytes.chunks(LONGEST) {
            let frame = self.segment(way, part);
            self.writer
                .write_bytes(self.interface, at, &frame)
                .map_err(|error| failed(&self.path, &error))?;
        }
        Ok(())
    }

    /// Writes the buffered bytes.
    pub(crate) fn finish(self) -> Result<()> {
        self.writer.finish().map(drop).map_err(|error| failed(&self.path, &error))
    }

    /// An Ethernet frame with one TCP segment.
    fn segment(&mut self, way: Way, part: &[u8]) -> Vec<u8> {
        let (own, switch) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let (from, to, ports, index) = match way {
            Way::ToSwitch => (own, switch, [OWN_PORT, SWITCH_PORT], 0),
            Way::FromSwitch => (switch, own, [SWITCH_PORT, OWN_PORT], 1),
        };
        let [ours, theirs] = self.next;
        let (sequence, acknowledged) = if index == 0 { (ours, theirs) } else { (theirs, ours) };
        if let Some(next) = self.next.get_mut(index) {
            *next = next.wrapping_add(part.len() as u32);
        }
        let mut frame = Vec::with_capacity(54 + part.len());
        frame.extend([2, 0, 0, 0, 0, to[3], 2, 0, 0, 0, 0, from[3], 8, 0]);
        frame.extend([0x45, 0]);
        frame.extend((40 + part.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        frame.extend(from);
        frame.extend(to);
        let sum: u32 = frame
            .get(14..34)
            .unwrap_or_default()
            .as_chunks::<2>()
            .0
            .iter()
            .map(|pair| u32::from(u16::from_be_bytes(*pair)))
            .sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
        if let Some(field) = frame.get_mut(24..26) {
            field.copy_from_slice(&checksum.to_be_bytes());
        }
        ports.iter().for_each(|port| frame.extend(port.to_be_bytes()));
        frame.extend(sequence.to_be_bytes());
        frame.extend(acknowledged.to_be_bytes());
        // The header has five words, PSH and ACK, a wide window, and no checksum. Readers take a
        // missing checksum as offloaded.
        frame.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        frame.extend(part);
        frame
    }
}

fn failed(path: &Path, error: &packet::Error) -> Error {
    let source = std::io::Error::other(error.to_string());
    Error::File { path: path.to_owned(), source }
}
