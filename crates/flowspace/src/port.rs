//! Port numbers: 16 bits in 1.0, 32 bits in 1.3, with the reserved numbers at the top of each
//! range.

/// `OFPP_MAX` of 1.0: from here up, numbers are reserved.
const V10_RESERVED: u16 = 0xff00;
/// The difference between a reserved number of 1.3 and the same reserved number of 1.0.
const OFFSET: u32 = 0xffff_0000;

/// The 1.3 number of a 1.0 port: reserved ports (from 0xff00) move to the top of the 32-bit range.
pub const fn port_from_v10(port: u16) -> u32 {
    if port < V10_RESERVED { port as u32 } else { port as u32 + OFFSET }
}

/// The 1.0 number of a 1.3 port; `None` for a port that 1.0 cannot name.
pub const fn port_to_v10(port: u32) -> Option<u16> {
    if port < V10_RESERVED as u32 {
        Some(port as u16)
    } else if port >= V10_RESERVED as u32 + OFFSET {
        Some((port - OFFSET) as u16)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_v10_port_number_converts_to_32_bits_and_back() {
        for port in 0..=u16::MAX {
            assert_eq!(port_to_v10(port_from_v10(port)), Some(port));
        }
        assert_eq!(port_from_v10(0xfffe), 0xffff_fffe);
        assert_eq!(port_to_v10(0xff00), None);
        assert_eq!(port_to_v10(0xffff_feff), None);
        assert_eq!(port_to_v10(0xffff_ff00), Some(0xff00));
    }
}
