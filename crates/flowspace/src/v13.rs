//! Converts from and to the match of OpenFlow 1.3: OXM fields (section 7.2.3).

use core::fmt;

use openflow::ErrorCode;
use openflow::error::v13 as code;
use openflow::v13::{self, MatchBuf, Oxm, OxmClass, OxmField};

use crate::needs::Needs;
use crate::{Field, Inexpressible, Key, Match};

/// The reason why a 1.3 match is refused; [`MatchError::error_code`] is the error for the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatchError {
    /// The field is not known, or of another class than OPENFLOW_BASIC.
    UnknownField {
        /// The class of the field.
        class: OxmClass,
        /// The field.
        field: OxmField,
    },
    /// The value does not have the field's length.
    BadLength(OxmField),
    /// The field is there twice.
    Repeated(OxmField),
    /// A prerequisite of the field does not come before the field, or is not matched exactly.
    MissingPrerequisite(OxmField),
    /// The field cannot be masked.
    NotMaskable(OxmField),
    /// The value has a bit that the mask excludes.
    ValueOutsideMask(OxmField),
    /// The value has more bits than the field, or no packet can have the value.
    BadValue(OxmField),
}

impl MatchError {
    /// The OpenFlow 1.3 error, of type `OFPET_BAD_MATCH`.
    pub const fn error_code(&self) -> ErrorCode {
        match self {
            MatchError::UnknownField { .. } => code::BAD_MATCH_BAD_FIELD,
            MatchError::BadLength(_) => code::BAD_MATCH_BAD_LEN,
            MatchError::Repeated(_) => code::BAD_MATCH_DUP_FIELD,
            MatchError::MissingPrerequisite(_) => code::BAD_MATCH_BAD_PREREQ,
            MatchError::NotMaskable(_) => code::BAD_MATCH_BAD_MASK,
            MatchError::ValueOutsideMask(_) => code::BAD_MATCH_BAD_WILDCARDS,
            MatchError::BadValue(_) => code::BAD_MATCH_BAD_VALUE,
        }
    }
}

impl fmt::Display for MatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchError::UnknownField { class, field } => {
                write!(f, "match field {} of class {:#06x} is not known", field.0, class.0)
            }
            MatchError::BadLength(field) => write!(f, "{} has a wrong length", name(*field)),
            MatchError::Repeated(field) => write!(f, "{} is there twice", name(*field)),
            MatchError::MissingPrerequisite(field) => {
                let needs = row(*field).map_or("its prerequisite", |row| row.needs.advice());
                write!(f, "{} needs {needs} before it", name(*field))
            }
            MatchError::NotMaskable(field) => write!(f, "{} cannot be masked", name(*field)),
            MatchError::ValueOutsideMask(field) => {
                write!(f, "{} has value bits outside its mask", name(*field))
            }
            MatchError::BadValue(field) => {
                write!(f, "{} has a value that no packet has", name(*field))
            }
        }
    }
}

impl core::error::Error for MatchError {}

fn name(field: OxmField) -> &'static str {
    row(field).map_or("an unknown field", |row| row.field.name())
}

/// The meaning of an OXM field in this crate.
#[derive(Clone, Copy)]
struct Row {
    oxm: OxmField,
    field: Field,
    needs: Needs,
    /// Whether the field may have a mask although the specification allows none: Open vSwitch
    /// accepts masks on these fields, and controllers use them. A switch that does not accept such
    /// a mask answers with an error.
    also_maskable: bool,
}

const fn plain(oxm: OxmField, field: Field, needs: Needs) -> Row {
    Row { oxm, field, needs, also_maskable: false }
}

const fn maskable(oxm: OxmField, field: Field, needs: Needs) -> Row {
    Row { oxm, field, needs, also_maskable: true }
}

/// The rows are in the order of [`Field::ALL`]: prerequisites first. Matches are written in the
/// same order.
const ROWS: &[Row] = &[
    plain(OxmField::IN_PORT, Field::InPort, Needs::NOTHING),
    plain(OxmField::IN_PHY_PORT, Field::InPhyPort, Needs::IN_PORT),
    plain(OxmField::METADATA, Field::Metadata, Needs::NOTHING),
    plain(OxmField::TUNNEL_ID, Field::TunnelId, Needs::NOTHING),
    plain(OxmField::ETH_SRC, Field::DlSrc, Needs::NOTHING),
    plain(OxmField::ETH_TYPE, Field::DlType, Needs::NOTHING),
    plain(OxmField::ETH_DST, Field::DlDst, Needs::NOTHING),
    plain(OxmField::VLAN_VID, Field::VlanVid, Needs::NOTHING),
    plain(OxmField::VLAN_PCP, Field::VlanPcp, Needs::VLAN),
    plain(OxmField::MPLS_LABEL, Field::MplsLabel, Needs::MPLS),
    plain(OxmField::MPLS_TC, Field::MplsTc, Needs::MPLS),
    plain(OxmField::MPLS_BOS, Field::MplsBos, Needs::MPLS),
    plain(OxmField::PBB_ISID, Field::PbbIsid, Needs::PBB),
    plain(OxmField::ARP_OP, Field::ArpOp, Needs::ARP),
    plain(OxmField::IP_PROTO, Field::NwProto, Needs::IP),
    plain(OxmField::IP_DSCP, Field::NwDscp, Needs::IP),
    plain(OxmField::IP_ECN, Field::NwEcn, Needs::IP),
    plain(OxmField::IPV4_SRC, Field::NwSrc, Needs::IPV4),
    plain(OxmField::ARP_SPA, Field::ARP_SPA, Needs::ARP),
    plain(OxmField::IPV4_DST, Field::NwDst, Needs::IPV4),
    plain(OxmField::ARP_TPA, Field::ARP_TPA, Needs::ARP),
    maskable(OxmField::TCP_SRC, Field::TpSrc, Needs::TCP),
    maskable(OxmField::UDP_SRC, Field::TpSrc, Needs::UDP),
    maskable(OxmField::SCTP_SRC, Field::TpSrc, Needs::SCTP),
    plain(OxmField::ICMPV4_TYPE, Field::ICMP_TYPE, Needs::ICMPV4),
    plain(OxmField::ICMPV6_TYPE, Field::ICMP_TYPE, Needs::ICMPV6),
    maskable(OxmField::TCP_DST, Field::TpDst, Needs::TCP),
    maskable(OxmField::UDP_DST, Field::TpDst, Needs::UDP),
    maskable(OxmField::SCTP_DST, Field::TpDst, Needs::SCTP),
    plain(OxmField::ICMPV4_CODE, Field::ICMP_CODE, Needs::ICMPV4),
    plain(OxmField::ICMPV6_CODE, Field::ICMP_CODE, Needs::ICMPV6),
    plain(OxmField::IPV6_FLABEL, Field::Ipv6Label, Needs::IPV6),
    plain(OxmField::IPV6_EXTHDR, Field::Ipv6Exthdr, Needs::IPV6),
    plain(OxmField::IPV6_SRC, Field::Ipv6Src, Needs::IPV6),
    plain(OxmField::IPV6_DST, Field::Ipv6Dst, Needs::IPV6),
    plain(OxmField::ARP_SHA, Field::ArpSha, Needs::ARP),
    maskable(OxmField::IPV6_ND_SLL, Field::ND_SLL, Needs::SOLICITATION),
    plain(OxmField::ARP_THA, Field::ArpTha, Needs::ARP),
    maskable(OxmField::IPV6_ND_TLL, Field::ND_TLL, Needs::ADVERTISEMENT),
    maskable(OxmField::IPV6_ND_TARGET, Field::NdTarget, Needs::NEIGHBOUR),
];

/// The field that a set-field writes, and the packets that have the field.
pub(crate) fn set_field_row(oxm: &Oxm<'_>) -> Option<(Field, Needs)> {
    oxm.basic().and_then(row).map(|row| (row.field, row.needs))
}

/// All fields, with a bit for each word of the key that has the field.
const FIELDS: [(Field, u32); Field::ALL.len()] = {
    let mut fields = [(Field::InPort, 0); Field::ALL.len()];
    let mut at = 0;
    while at < fields.len() {
        let field = Field::ALL[at];
        fields[at] = (field, Key::ZERO.with(field, field.full_mask()).words_in_use());
        at += 1;
    }
    fields
};

/// The place of each OXM field in [`ROWS`]; a place behind the last row for a field without a row.
const PLACES: [u8; 128] = {
    let mut places = [u8::MAX; 128];
    let mut at = 0;
    while at < ROWS.len() {
        places[ROWS[at].oxm.0 as usize] = at as u8;
        at += 1;
    }
    places
};

fn row(oxm: OxmField) -> Option<&'static Row> {
    ROWS.get(usize::from(*PLACES.get(usize::from(oxm.0))?))
}

impl Row {
    fn is_maskable(&self) -> bool {
        self.oxm.is_maskable() || self.also_maskable
    }

    /// The mask of the field. For ICMP types and codes this mask is narrower than the place in the
    /// key.
    fn full_mask(&self) -> u128 {
        let bits = self.oxm.bits().unwrap_or(0);
        u128::MAX.checked_shr(128 - u32::from(bits)).unwrap_or(0)
    }
}

impl Field {
    /// Whether a 1.3 match may mask the field: if the specification allows a mask, and for
    /// transport ports and neighbour discovery fields, where Open vSwitch accepts masks.
    pub fn is_maskable_in_v13(self) -> bool {
        ROWS.iter().any(|row| row.field == self && row.is_maskable())
    }
}

impl Match {
    /// The set of packets of a 1.3 match.
    ///
    /// # Errors
    /// The first field that is unknown, repeated, without its prerequisite before it, or with a
    /// forbidden mask or value. Masks on transport ports and neighbour discovery fields are
    /// accepted, as in Open vSwitch.
    pub fn from_v13(wire: &v13::Match<'_>) -> Result<Match, MatchError> {
        let mut match_ = Match::ANY;
        // One bit for each field: field numbers are below 128.
        let mut seen: u128 = 0;
        for oxm in wire.fields.iter() {
            let row = oxm.basic().and_then(row).ok_or(unknown(&oxm))?;
            let bit = 1 << (row.oxm.0 & 127);
            if seen & bit != 0 {
                return Err(MatchError::Repeated(row.oxm));
            }
            seen |= bit;
            match_.add_oxm(row, &oxm)?;
        }
        Ok(match_)
    }

    fn add_oxm(&mut self, row: &Row, oxm: &Oxm<'_>) -> Result<(), MatchError> {
        if row.oxm.value_len() != Some(oxm.value.len()) {
            return Err(MatchError::BadLength(row.oxm));
        }
        let (Some(value), Some(given)) = (oxm.number(), oxm.mask_number()) else {
            return Err(MatchError::BadLength(row.oxm));
        };
        let field_bits = row.full_mask();
        if !row.needs.met_by(self) || !self.permits(row.field) {
            return Err(MatchError::MissingPrerequisite(row.oxm));
        }
        if value & !given != 0 {
            return Err(MatchError::ValueOutsideMask(row.oxm));
        }
        if value & !field_bits != 0 {
            return Err(MatchError::BadValue(row.oxm));
        }
        let mask = match given & field_bits {
            mask if mask == field_bits => row.field.full_mask(),
            _ if !row.is_maskable() => return Err(MatchError::NotMaskable(row.oxm)),
            mask => mask,
        };
        self.assign(row.field, value, mask);
        if row.field == Field::VlanVid && !self.settle_vlan() {
            return Err(MatchError::BadValue(row.oxm));
        }
        Ok(())
    }

    /// Appends the OXM fields for exactly this set, prerequisites first and otherwise always in the
    /// same order.
    ///
    /// Masks on transport ports and neighbour discovery fields are written although the
    /// specification allows none; see [`Match::from_v13`].
    ///
    /// # Errors
    /// Names the first field with a mask that cannot be written; `out` may then have some fields
    /// already.
    pub fn to_v13(&self, out: &mut MatchBuf) -> Result<(), Inexpressible> {
        // The fields have the order of the rows, so no row is looked at twice.
        let mut rows = ROWS.iter();
        // Most matches look at a few words of the key.
        let words = self.mask.words_in_use();
        for (field, of_field) in FIELDS {
            if words & of_field == 0 {
                continue;
            }
            let (value, mask) = self.get(field);
            if mask == 0 || !self.is_meant(field) {
                continue;
            }
            let refused = Inexpressible { field, version: "1.3" };
            match field {
                Field::VlanVid => self.vlan_vid_to_v13(out),
                Field::VlanPcp if self.is_untagged() => {}
                _ => {
                    let row = rows
                        .find(|row| {
                            row.field == field && row.needs.met_by(self) && self.permits(field)
                        })
                        .ok_or(refused)?;
                    if value & !row.full_mask() != 0 {
                        return Err(refused);
                    }
                    if mask == field.full_mask() {
                        out.exact(row.oxm, value);
                    } else if row.is_maskable() {
                        out.masked(row.oxm, value, mask);
                    } else {
                        return Err(refused);
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the bits of the field mean this field, and not another field that shares the bits.
    fn is_meant(&self, field: Field) -> bool {
        let dl_type = self.exact_u16(Field::DlType);
        let ethertypes = field.ethertypes();
        ethertypes.is_empty() || dl_type.is_some_and(|dl_type| ethertypes.contains(&dl_type))
    }

    fn vlan_vid_to_v13(&self, out: &mut MatchBuf) {
        let (value, mask) = self.get(Field::VlanVid);
        if mask == Field::VlanVid.full_mask() {
            out.exact(OxmField::VLAN_VID, value);
        } else {
            out.masked(OxmField::VLAN_VID, value, mask);
        }
    }
}

fn unknown(oxm: &Oxm<'_>) -> MatchError {
    MatchError::UnknownField { class: oxm.class, field: oxm.field }
}
