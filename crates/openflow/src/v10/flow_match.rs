//! The 12-tuple match with wildcards (specification 1.0.0, section 5.2.3).

use super::port::PortNo;

/// The `dl_vlan` that matches packets without a VLAN tag (`OFP_VLAN_NONE`).
pub const VLAN_NONE: u16 = 0xffff;

flags! {
    /// `enum ofp_flow_wildcards`: a set bit means that the field is not looked at. The two address fields count
    /// ignored low bits instead; see [`Wildcards::nw_src_prefix`].
    pub struct Wildcards(u32) {
        /// Ingress port.
        IN_PORT = 1 << 0,
        /// VLAN id.
        DL_VLAN = 1 << 1,
        /// Ethernet source.
        DL_SRC = 1 << 2,
        /// Ethernet destination.
        DL_DST = 1 << 3,
        /// Ethernet type.
        DL_TYPE = 1 << 4,
        /// IP protocol, or the low byte of the ARP opcode.
        NW_PROTO = 1 << 5,
        /// TCP/UDP source port, or ICMP type.
        TP_SRC = 1 << 6,
        /// TCP/UDP destination port, or ICMP code.
        TP_DST = 1 << 7,
        /// All of the IP source.
        NW_SRC_ALL = 32 << 8,
        /// The bits that count ignored bits of the IP source.
        NW_SRC_MASK = 63 << 8,
        /// All of the IP destination.
        NW_DST_ALL = 32 << 14,
        /// The bits that count ignored bits of the IP destination.
        NW_DST_MASK = 63 << 14,
        /// VLAN priority.
        DL_VLAN_PCP = 1 << 20,
        /// IP type of service (DSCP).
        NW_TOS = 1 << 21,
        /// Everything, with all 22 bits set.
        ALL = (1 << 22) - 1,
    }
}

impl Wildcards {
    const NW_SRC_SHIFT: u32 = 8;
    const NW_DST_SHIFT: u32 = 14;

    /// How many leading bits of the IP source are compared, 0 to 32.
    pub const fn nw_src_prefix(self) -> u8 {
        self.prefix(Self::NW_SRC_SHIFT)
    }

    /// How many leading bits of the IP destination are compared, 0 to 32.
    pub const fn nw_dst_prefix(self) -> u8 {
        self.prefix(Self::NW_DST_SHIFT)
    }

    /// These wildcards with so many leading bits of the IP source compared. More than 32 counts as 32.
    #[must_use]
    pub const fn with_nw_src_prefix(self, length: u8) -> Self {
        self.with_prefix(Self::NW_SRC_SHIFT, length)
    }

    /// These wildcards with so many leading bits of the IP destination compared. More than 32 counts as 32.
    #[must_use]
    pub const fn with_nw_dst_prefix(self, length: u8) -> Self {
        self.with_prefix(Self::NW_DST_SHIFT, length)
    }

    const fn prefix(self, shift: u32) -> u8 {
        // Six bits count the ignored ones; 32 and everything above ignore all.
        let ignored = (self.0 >> shift) & 63;
        if ignored >= 32 { 0 } else { 32 - ignored as u8 }
    }

    const fn with_prefix(self, shift: u32, length: u8) -> Self {
        let ignored = if length >= 32 { 0 } else { 32 - length as u32 };
        Self(self.0 & !(63 << shift) | ignored << shift)
    }
}

/// `struct ofp_match`. Fields whose wildcard bit is set still have a value on the wire, which is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Match {
    /// Which fields are not looked at.
    pub wildcards: Wildcards,
    /// Ingress port.
    pub in_port: PortNo,
    /// Ethernet source.
    pub dl_src: [u8; 6],
    /// Ethernet destination.
    pub dl_dst: [u8; 6],
    /// VLAN id, or [`VLAN_NONE`].
    pub dl_vlan: u16,
    /// VLAN priority.
    pub dl_vlan_pcp: u8,
    /// Ethernet type, or 0x05ff for a frame without one.
    pub dl_type: u16,
    /// IP type of service; DSCP in the upper six bits.
    pub nw_tos: u8,
    /// IP protocol, or the low byte of the ARP opcode.
    pub nw_proto: u8,
    /// IP source as a number: 10.0.0.1 is 0x0a00_0001.
    pub nw_src: u32,
    /// IP destination.
    pub nw_dst: u32,
    /// TCP/UDP source port, or ICMP type.
    pub tp_src: u16,
    /// TCP/UDP destination port, or ICMP code.
    pub tp_dst: u16,
}

impl Match {
    /// The length on the wire in bytes.
    pub const LEN: usize = 40;

    /// The match that every packet meets.
    pub const ANY: Self = Self {
        wildcards: Wildcards::ALL,
        in_port: PortNo(0),
        dl_src: [0; 6],
        dl_dst: [0; 6],
        dl_vlan: 0,
        dl_vlan_pcp: 0,
        dl_type: 0,
        nw_tos: 0,
        nw_proto: 0,
        nw_src: 0,
        nw_dst: 0,
        tp_src: 0,
        tp_dst: 0,
    };
}

impl Default for Match {
    fn default() -> Self {
        Self::ANY
    }
}

layout!(Match: Match {
    wildcards, in_port, dl_src, dl_dst, dl_vlan, dl_vlan_pcp, [1], dl_type, nw_tos, nw_proto, [2], nw_src, nw_dst,
    tp_src, tp_dst,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v10_address_wildcards_convert_to_prefix_lengths_and_back() {
        for length in 0..=32 {
            let wildcards =
                Wildcards::ALL.with_nw_src_prefix(length).with_nw_dst_prefix(32 - length);
            assert_eq!(wildcards.nw_src_prefix(), length);
            assert_eq!(wildcards.nw_dst_prefix(), 32 - length);
            assert!(wildcards.contains(Wildcards::IN_PORT | Wildcards::NW_TOS));
        }
        assert_eq!(Wildcards(63 << 8).nw_src_prefix(), 0);
        assert_eq!(Wildcards::NONE.with_nw_dst_prefix(0), Wildcards::NW_DST_ALL);
        assert_eq!(Wildcards::NONE.with_nw_dst_prefix(200).nw_dst_prefix(), 32);
    }
}
