//! Internet checksums by increments (RFC 1624), and SCTP's CRC.

use super::bytes::{u16_at, write};

/// Corrects the checksum at `at` for bytes that changed from `old` to `new`.
///
/// Both have the same length and begin at an even offset of the summed data; an odd tail is padded.
pub(super) fn update(frame: &mut [u8], at: usize, old: &[u8], new: &[u8]) {
    let Some(checksum) = u16_at(frame, at) else { return };
    write(frame, at, &adjust(checksum, old, new).to_be_bytes());
}

/// Like [`update`], for UDP. A UDP checksum of 0 means "no checksum" and stays 0; a computed sum of
/// 0 is written as 0xffff.
pub(super) fn update_udp(frame: &mut [u8], at: usize, old: &[u8], new: &[u8]) {
    match u16_at(frame, at) {
        None | Some(0) => {}
        Some(checksum) => {
            let corrected = match adjust(checksum, old, new) {
                0 => 0xffff,
                other => other,
            };
            write(frame, at, &corrected.to_be_bytes());
        }
    }
}

/// RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
fn adjust(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    let mut sum = u32::from(!checksum);
    for word in words(old) {
        sum += u32::from(!word);
    }
    for word in words(new) {
        sum += u32::from(word);
    }
    !fold(sum)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes.chunks(2).map(|pair| match *pair {
        [high, low] => u16::from_be_bytes([high, low]),
        [high] => u16::from_be_bytes([high, 0]),
        _ => 0,
    })
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The Internet checksum of the concatenated parts, each of even length except the last (RFC 1071).
pub fn internet(parts: &[&[u8]]) -> u16 {
    let sum = parts
        .iter()
        .flat_map(|part| words(part))
        .fold(0u32, |sum, word| u32::from(fold(sum + u32::from(word))));
    !fold(sum)
}

/// CRC-32C (Castagnoli) as SCTP uses it; the result is written little-endian (RFC 4960, appendix B).
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 }
        })
    })
}
