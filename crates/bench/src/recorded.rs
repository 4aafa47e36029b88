//! Reads recorded arrival times from a text, or from the packets of a pcap or pcapng file.

use crate::arrivals::Arrivals;
use crate::error::Error;
use crate::load::Load;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// The most times in one file: ten minutes of 16,000 messages a second.
const MOST: usize = 10_000_000;
/// The longest block of a capture file that can be a packet.
const LONGEST: u32 = 64 << 20;

impl Load {
    /// Reads the files that streams' traces name; relative paths start at `folder`.
    ///
    /// # Errors
    /// [`Error::Arrivals`] with the name of a file that cannot be read or has no times.
    pub fn read_traces(&mut self, folder: &Path) -> Result<(), Error> {
        for stream in &mut self.streams {
            let Arrivals::Trace { times_ns, file } = &mut stream.arrivals else { continue };
            let Some(name) = file.take() else { continue };
            let path = folder.join(&name);
            let wrong = |error: io::Error| Error::Arrivals(format!("{}: {error}", path.display()));
            let input = BufReader::new(File::open(&path).map_err(wrong)?);
            *times_ns = read(input).map_err(wrong)?;
        }
        Ok(())
    }
}

/// Reads times in ns since the first time, in rising order.
///
/// A text has one time per line, in seconds with any number of decimals. `#` begins a comment.
///
/// # Errors
/// The input has none of the three formats, no time, or too many times.
pub fn read(mut input: impl BufRead) -> io::Result<Vec<u64>> {
    let magic: [u8; 4] = input.fill_buf()?.first_chunk().copied().unwrap_or_default();
    let mut times = match magic {
        [0x0a, 0x0d, 0x0d, 0x0a] => pcapng(&mut input)?,
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xd4, 0xc3, 0xb2, 0xa1] => pcap(&mut input, 1_000)?,
        [0xa1, 0xb2, 0x3c, 0x4d] | [0x4d, 0x3c, 0xb2, 0xa1] => pcap(&mut input, 1)?,
        _ => text(input)?,
    };
    // Captures of several interfaces are not always in order.
    times.sort_unstable();
    let first = *times.first().ok_or_else(|| wrong("there are no times in it"))?;
    times.iter_mut().for_each(|time| *time -= first);
    Ok(times)
}

fn wrong(text: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text.into())
}

fn push(times: &mut Vec<u64>, time: u64) -> io::Result<()> {
    if times.len() == MOST {
        return Err(wrong(format!("there are more than {MOST} times in it")));
    }
    times.push(time);
    Ok(())
}

fn text(input: impl BufRead) -> io::Result<Vec<u64>> {
    let mut times = Vec::new();
    for (number, line) in input.lines().enumerate() {
        let line = line?;
        let time = line.split('#').next().unwrap_or_default().trim();
        if time.is_empty() {
            continue;
        }
        let ns = nanoseconds(time).ok_or_else(|| {
            wrong(format!("line {}: {time:?} is not a time in seconds", number + 1))
        })?;
        push(&mut times, ns)?;
    }
    Ok(times)
}

/// Reads each decimal digit: seconds since 1970 with nanoseconds do not fit into a floating-point number.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(decimals) || seconds.is_empty() && decimals.is_empty() {
        return None;
    }
    let whole: u64 = if seconds.is_empty() { 0 } else { seconds.parse().ok()? };
    let part: u64 = format!("{decimals:0<9}").get(..9)?.parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(part)
}

/// Whether numbers in the file are little-endian.
type Little = bool;

fn number<const N: usize>(bytes: [u8; N], little: Little) -> u64 {
    let fold = |number: u64, byte: u8| number << 8 | u64::from(byte);
    if little { bytes.into_iter().rev().fold(0, fold) } else { bytes.into_iter().fold(0, fold) }
}

fn take<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn word(input: &mut impl Read, little: Little) -> io::Result<u32> {
    Ok(number(take::<4>(input)?, little) as u32)
}

fn skip(input: &mut impl Read, count: u32) -> io::Result<()> {
    if count > LONGEST {
        return Err(wrong(format!("a block of {count} bytes")));
    }
    let skipped = io::copy(&mut input.take(count.into()), &mut io::sink())?;
    if skipped == u64::from(count) { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

fn is_over(input: &mut impl BufRead) -> io::Result<bool> {
    Ok(input.fill_buf()?.is_empty())
}

/// `unit` is the number of ns of one unit of the packets' fractions of a second.
fn pcap(input: &mut impl BufRead, unit: u64) -> io::Result<Vec<u64>> {
    let little = take::<4>(input)?[0] != 0xa1;
    skip(input, 20)?;
    let mut times = Vec::new();
    while !is_over(input)? {
        let (seconds, part) = (word(input, little)?, word(input, little)?);
        let (kept, _length) = (word(input, little)?, word(input, little)?);
        skip(input, kept)?;
        push(&mut times, u64::from(seconds) * 1_000_000_000 + u64::from(part) * unit)?;
    }
    Ok(times)
}

/// Reads sections, interfaces and enhanced packets, and skips other blocks.
fn pcapng(input: &mut impl BufRead) -> io::Result<Vec<u64>> {
    const SECTION: u32 = 0x0a0d_0d0a;
    const INTERFACE: u32 = 1;
    const PACKET: u32 = 6;
    const MAGIC: [u8; 4] = [0x4d, 0x3c, 0x2b, 0x1a];
    let (mut times, mut little) = (Vec::new(), true);
    // By interface: the ns of one unit of time, as a fraction.
    let mut units: Vec<(u64, u64)> = Vec::new();
    while !is_over(input)? {
        // A section's type is the same in both byte orders. The section's length can be read only after its magic
        // number.
        let kind = word(input, little)?;
        let length = take::<4>(input)?;
        let mut read = 8;
        if kind == SECTION {
            little = take::<4>(input)? == MAGIC;
            units.clear();
            read += 4;
        }
        let rest = (number(length, little) as u32).checked_sub(read + 4);
        let rest = rest.filter(|rest| *rest <= LONGEST);
        let rest = rest.ok_or_else(|| wrong("a block has an impossible length"))?;
        let mut body = vec![0; rest as usize];
        input.read_exact(&mut body)?;
        let _length = take::<4>(input)?;
        let at = |place: usize| {
            let bytes: Option<[u8; 4]> = body.get(place..).and_then(|it| it.first_chunk()).copied();
            bytes.map(|bytes| number(bytes, little)).ok_or_else(|| wrong("a block is cut short"))
        };
        match kind {
            INTERFACE => units.push(resolution(body.get(8..).unwrap_or_default(), little)),
            PACKET => {
                let interface = at(0)? as usize;
                let (ns, per) = units
                    .get(interface)
                    .copied()
                    .ok_or_else(|| wrong("a packet of an interface that is not described"))?;
                let count = at(4)? << 32 | at(8)?;
                let time = u128::from(count) * u128::from(ns) / u128::from(per);
                let time = u64::try_from(time).map_err(|_| wrong("a time that is too late"))?;
                push(&mut times, time)?;
            }
            _ => {}
        }
    }
    Ok(times)
}

/// The resolution in an interface's option `if_tsresol`; without the option microseconds.
fn resolution(mut options: &[u8], little: Little) -> (u64, u64) {
    const IF_TSRESOL: u64 = 9;
    const MICROSECONDS: (u64, u64) = (1_000, 1);
    while let Some([a, b, c, d]) = options.first_chunk::<4>() {
        let (code, length) = (number([*a, *b], little), number([*c, *d], little) as usize);
        if code == IF_TSRESOL {
            return match options.get(4) {
                Some(power @ 0..=9) => (10_u64.pow(9 - u32::from(*power)), 1),
                Some(power @ 10..=18) => (1, 10_u64.pow(u32::from(*power) - 9)),
                Some(power @ 128..=191) => (1_000_000_000, 1 << (power - 128)),
                _ => MICROSECONDS,
            };
        }
        options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
    }
    MICROSECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &[u8], expected: Result<&[u64], &str>) {
        let found = read(file).map_err(|error| error.to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn trace_times_are_read_from_text_and_errors_name_the_line() {
        check(b"0\n0.000125\n# a remark\n\n1.5 # here too\n", Ok(&[0, 125_000, 1_500_000_000]));
        check(b"1700000000.000000001\n1700000000.000000004\n", Ok(&[0, 3]));
        check(b".5\n0.25\n", Ok(&[0, 250_000_000]));
        check(b"0\n-1\n", Err("line 2"));
        check(b"0\n1e3\n", Err("line 2"));
        check(b"99999999999999999999\n", Err("line 1"));
        check(b"", Err("no times"));
        check(b"# nothing\n", Err("no times"));
        check(&[0xff, 0xfe], Err("UTF-8"));
    }

    /// Both byte orders and both units are read.
    #[test]
    fn pcap_times_are_read_in_both_byte_orders_and_time_units() {
        for (magic, unit) in [(0xa1b2_c3d4_u32, 1_000), (0xa1b2_3c4d, 1)] {
            for big in [false, true] {
                let bytes = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
                let mut file: Vec<u8> = bytes(magic).to_vec();
                file.extend([0; 20]);
                for (seconds, part) in [(5, 7), (6, 9)] {
                    for word in [seconds, part, 3, 60] {
                        file.extend(bytes(word));
                    }
                    file.extend([1, 2, 3]);
                }
                check(&file, Ok(&[0, 1_000_000_000 + 2 * unit]));
                check(&file[..file.len() - 1], Err("end"));
            }
        }
    }

    #[test]
    fn times_are_read_from_pcapng_files_and_cut_files_do_not_panic() {
        let mut writer = packet::PcapngWriter::new(Vec::new()).unwrap();
        let interface = writer.add_interface("eth0").unwrap();
        for time in [1_700_000_000_000_000_123, 1_700_000_000_000_000_125] {
            writer.write_bytes(interface, packet::Timestamp(time), &[0; 61]).unwrap();
        }
        let file = writer.finish().unwrap();
        check(&file, Ok(&[0, 2]));
        for length in 5..file.len() {
            // A file that is cut at any place gives an error, or fewer packets.
            let _ = read(&file[..length]);
        }
    }
}
