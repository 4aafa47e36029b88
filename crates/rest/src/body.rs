//! The body of an answer, as one of the three framings of RFC 9112, section 6, has it.

use std::io::{self, BufRead, ErrorKind, Read};

/// Longest line before a chunk.
const LONGEST_LINE: u64 = 1 << 10;

/// How a body's end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// So many bytes are left.
    Length(u64),
    /// The connection's end.
    ToTheEnd,
    /// Chunks; so many bytes are left of this one.
    Chunk {
        left: u64,
        /// Whether a chunk came before, whose line end is still to be read.
        is_behind_one: bool,
    },
    /// The last chunk was read.
    Done,
}

impl Framing {
    /// Before the first chunk.
    pub(crate) fn chunked() -> Framing {
        Framing::Chunk { left: 0, is_behind_one: false }
    }
}

/// Reads a body without what frames it. An end that comes too early is [`ErrorKind::UnexpectedEof`].
#[derive(Debug)]
pub struct Body<S> {
    stream: S,
    framing: Framing,
}

impl<S: BufRead> Body<S> {
    pub(crate) fn new(stream: S, framing: Framing) -> Body<S> {
        Body { stream, framing }
    }

    /// At most `left` bytes, of which there must be one at least.
    fn some(&mut self, left: u64, into: &mut [u8]) -> io::Result<u64> {
        match self.stream.by_ref().take(left).read(into)? {
            0 if !into.is_empty() => Err(ErrorKind::UnexpectedEof.into()),
            count => Ok(count as u64),
        }
    }

    /// The length of the next chunk: hexadecimal, up to extensions.
    fn next_chunk(&mut self, is_behind_one: bool) -> io::Result<u64> {
        if is_behind_one && !self.line()?.is_empty() {
            return Err(ErrorKind::InvalidData.into());
        }
        let line = self.line()?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let length = u64::from_str_radix(digits, 16).ok().filter(|_| is_number);
        length.ok_or_else(|| ErrorKind::InvalidData.into())
    }

    /// Without its end.
    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n") {
            Some(text) => {
                String::from_utf8(text.to_vec()).map_err(|_| ErrorKind::InvalidData.into())
            }
            None if line.len() as u64 == LONGEST_LINE || line.ends_with(b"\n") => {
                Err(ErrorKind::InvalidData.into())
            }
            None => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl<S: BufRead> Read for Body<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = match self.framing {
            Framing::Done | Framing::Length(0) => return Ok(0),
            Framing::ToTheEnd => return self.stream.read(into),
            Framing::Length(left) => {
                let count = self.some(left, into)?;
                self.framing = Framing::Length(left - count);
                count
            }
            Framing::Chunk { left: 0, is_behind_one } => {
                let left = self.next_chunk(is_behind_one)?;
                // What follows the last chunk is of no use, and the connection ends.
                self.framing = match left {
                    0 => Framing::Done,
                    left => Framing::Chunk { left, is_behind_one: true },
                };
                return self.read(into);
            }
            Framing::Chunk { left, is_behind_one } => {
                let count = self.some(left, into)?;
                self.framing = Framing::Chunk { left: left - count, is_behind_one };
                count
            }
        };
        Ok(count as usize)
    }
}
