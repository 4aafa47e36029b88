//! The internet checksum (RFC 1071), kept as an unfolded sum so that parts can be summed apart.

/// Sum of 16-bit big-endian words; an odd last byte counts as the high byte of a word.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let (words, odd) = bytes.as_chunks::<2>();
    let whole: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    whole + odd.first().map_or(0, |high| u64::from(*high) << 8)
}

/// The checksum that makes the whole sum to zero.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internet_checksums_of_known_examples_are_right() {
        // RFC 1071, section 3; an odd byte; an IPv4 header with its checksum in place.
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        let cases: [(&[u8], u16); 4] = [
            (&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], !0xddf2),
            (&[0xab], !0xab00),
            (&header, 0),
            (&[], 0xffff),
        ];
        for (bytes, expected) in cases {
            assert_eq!(fold(sum(bytes)), expected, "{bytes:02x?}");
        }
    }
}
