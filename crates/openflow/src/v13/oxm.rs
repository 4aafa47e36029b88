//! OpenFlow extensible match fields (specification 1.3.5, sections 7.2.3.2 to 7.2.3.8).

use crate::fault::DecodeError;
use crate::wire::{Decode, Encode, Reader};
use alloc::vec::Vec;
use core::fmt;

/// The `VLAN_VID` that matches packets without a VLAN tag (`OFPVID_NONE`).
pub const VLAN_NONE: u16 = 0x0000;
/// The bit in `VLAN_VID` that says that there is a tag (`OFPVID_PRESENT`).
pub const VLAN_PRESENT: u16 = 0x1000;

open_enum! {
    /// `enum ofp_oxm_class`.
    pub struct OxmClass(u16) {
        /// Nicira's fields, the first half.
        NXM_0 = 0x0000,
        /// Nicira's fields, the second half.
        NXM_1 = 0x0001,
        /// The fields that the specification defines.
        OPENFLOW_BASIC = 0x8000,
        /// Fields of OpenFlow 1.5 that are not OXM in 1.3.
        PACKET_REGS = 0x8001,
        /// An experimenter's fields.
        EXPERIMENTER = 0xffff,
    }
}

/// Defines the fields with their widths in bits.
macro_rules! fields {
    ($( $(#[$doc:meta])* $name:ident = $number:literal, $bits:literal, $maskable:literal; )*) => {
        open_enum! {
            /// `enum oxm_ofb_match_fields`: a field of class OPENFLOW_BASIC. Seven bits on the wire.
            pub struct OxmField(u8) { $( $(#[$doc])* $name = $number, )* }
        }

        impl OxmField {
            /// The field's width in bits, if the specification names it.
            pub const fn bits(self) -> Option<u16> {
                match self.0 {
                    $( $number => Some($bits), )*
                    _ => None,
                }
            }

            /// Whether the specification lets the field be masked.
            pub const fn is_maskable(self) -> bool {
                match self.0 {
                    $( $number => $maskable, )*
                    _ => false,
                }
            }
        }
    };
}

fields! {
    /// Ingress port.
    IN_PORT = 0, 32, false;
    /// Physical port below the ingress port.
    IN_PHY_PORT = 1, 32, false;
    /// Metadata passed between tables.
    METADATA = 2, 64, true;
    /// Ethernet destination.
    ETH_DST = 3, 48, true;
    /// Ethernet source.
    ETH_SRC = 4, 48, true;
    /// Ethernet type, behind VLAN tags.
    ETH_TYPE = 5, 16, false;
    /// VLAN id, and [`VLAN_PRESENT`].
    VLAN_VID = 6, 13, true;
    /// VLAN priority.
    VLAN_PCP = 7, 3, false;
    /// DSCP.
    IP_DSCP = 8, 6, false;
    /// ECN.
    IP_ECN = 9, 2, false;
    /// IP protocol.
    IP_PROTO = 10, 8, false;
    /// IPv4 source.
    IPV4_SRC = 11, 32, true;
    /// IPv4 destination.
    IPV4_DST = 12, 32, true;
    /// TCP source port.
    TCP_SRC = 13, 16, false;
    /// TCP destination port.
    TCP_DST = 14, 16, false;
    /// UDP source port.
    UDP_SRC = 15, 16, false;
    /// UDP destination port.
    UDP_DST = 16, 16, false;
    /// SCTP source port.
    SCTP_SRC = 17, 16, false;
    /// SCTP destination port.
    SCTP_DST = 18, 16, false;
    /// ICMP type.
    ICMPV4_TYPE = 19, 8, false;
    /// ICMP code.
    ICMPV4_CODE = 20, 8, false;
    /// ARP opcode.
    ARP_OP = 21, 16, false;
    /// ARP sender's IPv4 address.
    ARP_SPA = 22, 32, true;
    /// ARP target's IPv4 address.
    ARP_TPA = 23, 32, true;
    /// ARP sender's Ethernet address.
    ARP_SHA = 24, 48, true;
    /// ARP target's Ethernet address.
    ARP_THA = 25, 48, true;
    /// IPv6 source.
    IPV6_SRC = 26, 128, true;
    /// IPv6 destination.
    IPV6_DST = 27, 128, true;
    /// IPv6 flow label.
    IPV6_FLABEL = 28, 20, true;
    /// ICMPv6 type.
    ICMPV6_TYPE = 29, 8, false;
    /// ICMPv6 code.
    ICMPV6_CODE = 30, 8, false;
    /// Target address in neighbour discovery.
    IPV6_ND_TARGET = 31, 128, false;
    /// Source link-layer address in neighbour discovery.
    IPV6_ND_SLL = 32, 48, false;
    /// Target link-layer address in neighbour discovery.
    IPV6_ND_TLL = 33, 48, false;
    /// MPLS label.
    MPLS_LABEL = 34, 20, false;
    /// MPLS traffic class.
    MPLS_TC = 35, 3, false;
    /// MPLS bottom-of-stack bit.
    MPLS_BOS = 36, 1, false;
    /// PBB I-SID.
    PBB_ISID = 37, 24, true;
    /// Metadata of a logical port.
    TUNNEL_ID = 38, 64, true;
    /// Which IPv6 extension headers there are.
    IPV6_EXTHDR = 39, 9, true;
}

impl OxmField {
    /// The value's length in bytes, if the specification names the field.
    pub const fn value_len(self) -> Option<usize> {
        match (self, self.bits()) {
            // These two stand in 32 bits, unlike PBB_ISID, which has 24.
            (Self::IPV6_FLABEL | Self::MPLS_LABEL, _) => Some(4),
            (_, Some(bits)) => Some(bits.div_ceil(8) as usize),
            (_, None) => None,
        }
    }
}

/// A match field with its value, `struct ofp_oxm_*`. `Debug` prints `FIELD=value/mask` in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Oxm<'a> {
    /// Whose field it is.
    pub class: OxmClass,
    /// Which one; below 128.
    pub field: OxmField,
    /// The experimenter; on the wire if, and only if, the class is `EXPERIMENTER`.
    pub experimenter: Option<u32>,
    /// The value, big-endian.
    pub value: &'a [u8],
    /// Which bits of the value count; as long as the value.
    pub mask: Option<&'a [u8]>,
}

impl<'a> Oxm<'a> {
    /// An OPENFLOW_BASIC field with an exact value.
    pub const fn exact(field: OxmField, value: &'a [u8]) -> Self {
        Self { class: OxmClass::OPENFLOW_BASIC, field, experimenter: None, value, mask: None }
    }

    /// An OPENFLOW_BASIC field with a masked value.
    pub const fn masked(field: OxmField, value: &'a [u8], mask: &'a [u8]) -> Self {
        Self { class: OxmClass::OPENFLOW_BASIC, field, experimenter: None, value, mask: Some(mask) }
    }

    /// Which OPENFLOW_BASIC field this is, if it is one.
    pub const fn basic(&self) -> Option<OxmField> {
        if self.class.0 == OxmClass::OPENFLOW_BASIC.0 { Some(self.field) } else { None }
    }

    /// Whether there is a mask.
    pub const fn has_mask(&self) -> bool {
        self.mask.is_some()
    }

    /// The value as a number, if it has at most 16 bytes.
    pub fn number(&self) -> Option<u128> {
        number(self.value)
    }

    /// The mask as a number: all ones over the value's bytes if there is none.
    pub fn mask_number(&self) -> Option<u128> {
        match self.mask {
            Some(mask) => number(mask),
            None => match u32::try_from(self.value.len()).ok()? {
                0 => Some(0),
                bytes @ 1..=16 => Some(u128::MAX >> (128 - 8 * bytes)),
                _ => None,
            },
        }
    }

    /// The 32-bit header, as `TABLE_FEATURES` lists it.
    pub fn id(&self) -> OxmId {
        let length = 4 * usize::from(self.class == OxmClass::EXPERIMENTER)
            + self.value.len()
            + self.mask.map_or(0, <[u8]>::len);
        OxmId {
            class: self.class,
            field: self.field,
            has_mask: self.has_mask(),
            // A field of more than 255 bytes cannot be said; its reader will refuse it.
            length: u8::try_from(length).unwrap_or(u8::MAX),
            experimenter: self.experimenter_on_wire(),
        }
    }

    fn experimenter_on_wire(&self) -> Option<u32> {
        (self.class == OxmClass::EXPERIMENTER).then(|| self.experimenter.unwrap_or_default())
    }
}

impl fmt::Debug for Oxm<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.basic(), self.experimenter_on_wire()) {
            (Some(field), _) => write!(f, "{field:?}=")?,
            (None, Some(experimenter)) => {
                write!(f, "{:?}:{experimenter:#x}:{}=", self.class, self.field.0)?
            }
            (None, None) => write!(f, "{:?}:{}=", self.class, self.field.0)?,
        }
        self.value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        if let Some(mask) = self.mask {
            f.write_str("/")?;
            mask.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        Ok(())
    }
}

fn number(bytes: &[u8]) -> Option<u128> {
    (bytes.len() <= 16)
        .then(|| bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

impl<'a> Decode<'a> for Oxm<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *r;
        let [class_high, class_low, field, length] = r.array()?;
        let class = OxmClass(u16::from_be_bytes([class_high, class_low]));
        let (field, has_mask) = (OxmField(field >> 1), field & 1 != 0);
        let mut body = r.sub(length.into(), start.part())?;
        let experimenter = match class {
            OxmClass::EXPERIMENTER => Some(u32::read(&mut body)?),
            _ => None,
        };
        let value_length = body.remaining() >> u8::from(has_mask);
        let is_even = !has_mask || body.remaining() % 2 == 0;
        let is_expected = match field.value_len() {
            Some(expected) if class == OxmClass::OPENFLOW_BASIC => value_length == expected,
            _ => true,
        };
        if !is_even || !is_expected {
            return Err(start.bad_length(3, length.into()));
        }
        let value = body.bytes(value_length)?;
        let mask = has_mask.then(|| body.take_rest());
        Ok(Self { class, field, experimenter, value, mask })
    }
}

impl Encode for Oxm<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        self.id().write(out);
        out.extend_from_slice(self.value);
        out.extend_from_slice(self.mask.unwrap_or_default());
    }
}

standalone!(Oxm<'a>: Match);

/// A match field without its value: the header, and the experimenter if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OxmId {
    /// Whose field it is.
    pub class: OxmClass,
    /// Which one; below 128.
    pub field: OxmField,
    /// Whether it has, or may have, a mask.
    pub has_mask: bool,
    /// The length in bytes of what follows the header in a match: value, mask and experimenter.
    pub length: u8,
    /// The experimenter; on the wire if, and only if, the class is `EXPERIMENTER`.
    pub experimenter: Option<u32>,
}

impl<'a> Decode<'a> for OxmId {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let class = OxmClass::read(r)?;
        let [field, length] = r.array()?;
        let experimenter = match class {
            OxmClass::EXPERIMENTER => Some(u32::read(r)?),
            _ => None,
        };
        Ok(Self {
            class,
            field: OxmField(field >> 1),
            has_mask: field & 1 != 0,
            length,
            experimenter,
        })
    }
}

impl Encode for OxmId {
    fn write(&self, out: &mut Vec<u8>) {
        let [high, low] = self.class.0.to_be_bytes();
        let field = self.field.0 << 1 | u8::from(self.has_mask);
        out.extend_from_slice(&[high, low, field, self.length]);
        if self.class == OxmClass::EXPERIMENTER {
            self.experimenter.unwrap_or_default().write(out);
        }
    }
}

standalone!(OxmId: TableFeatures);
