//! [`Match`], a set of packets, and the exact operations on such sets.

use core::fmt;

use crate::Key;
use crate::field::{
    FIRST_L3_WORD, Field, VLAN_BITS, VLAN_PRESENT, VLAN_PRESENT_BIT, VLAN_WORD, WORDS, ethertype,
    ip_proto,
};

/// A set of packets: per header bit 0, 1 or "any". It is never empty.
///
/// A match is kept in canonical form, so two equal sets compare equal:
/// - bits that are not matched have the value 0;
/// - a field is matched only if its prerequisites are matched exactly (`nw_src` needs `dl_type` to
///   be IPv4, ARP or RARP, and so on);
/// - "no VLAN tag" is the whole tag matched as zero, and a VLAN id or priority other than zero
///   implies that the tag is there.
///
/// The order given by `Ord` has no meaning beyond being total.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Match {
    pub(crate) value: Key,
    pub(crate) mask: Key,
}

impl Match {
    /// Every packet.
    pub const ANY: Match = Match { value: Key::ZERO, mask: Key::ZERO };

    /// The packets whose `field` has `value`, with the prerequisites of the field; see [`Match::with`].
    pub fn exact(field: Field, value: u128) -> Match {
        Match::ANY.with(field, value)
    }

    /// This match with `field` matched exactly.
    ///
    /// For building matches in code: the later call wins, and the result always matches the field.
    /// A prerequisite that is missing or contradictory is set to its usual value (`nw_src` makes the
    /// packet IPv4, `tp_src` makes it TCP); changing a prerequisite removes what depended on the old
    /// one. A VLAN id without [`VLAN_PRESENT`] other than 0 gets that bit. Only `in_phy_port` has no
    /// usual prerequisite and is matched as it stands.
    /// Bits of `value` beyond the field's width are ignored.
    #[must_use]
    pub fn with(self, field: Field, value: u128) -> Match {
        self.with_masked(field, value, field.full_mask())
    }

    /// Like [`Match::with`], comparing only the bits that are set in `mask`. An empty mask leaves
    /// the field wild.
    #[must_use]
    pub fn with_masked(mut self, field: Field, value: u128, mask: u128) -> Match {
        let mask = mask & field.full_mask();
        if mask == 0 {
            return self.without(field);
        }
        let value = value & mask;
        if field == Field::VlanPcp || field == Field::VlanVid {
            self.set_vlan(field, value, mask);
            return self;
        }
        self.ensure_prerequisites(field);
        if self.get(field) != (value, mask) {
            self.drop_dependants(field);
            self.assign(field, value, mask);
        }
        self
    }

    /// This match with `field` wild, and with all fields wild that depend on `field`.
    #[must_use]
    pub fn without(mut self, field: Field) -> Match {
        if field == Field::VlanPcp && self.is_untagged() {
            return self;
        }
        if field == Field::VlanVid && self.is_untagged() {
            self.assign(Field::VlanPcp, 0, 0);
        }
        let tagged = self.is_tagged();
        if !self.is_wild(field) {
            self.drop_dependants(field);
            self.assign(field, 0, 0);
        }
        if field == Field::VlanVid && tagged && !self.is_wild(Field::VlanPcp) {
            // The priority was matched in a tag and still is.
            self.assign(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT);
        }
        self
    }

    /// Which bits of all fields are matched.
    pub const fn mask(&self) -> Key {
        self.mask
    }

    /// The value and the mask of a field; mask 0 is "any".
    #[inline]
    pub const fn get(&self, field: Field) -> (u128, u128) {
        (self.value.get(field), self.mask.get(field))
    }

    /// Whether every bit of the field is matched.
    pub const fn is_exact(&self, field: Field) -> bool {
        self.mask.get(field) == field.full_mask()
    }

    /// The value of a field that is matched exactly.
    pub const fn exact_value(&self, field: Field) -> Option<u128> {
        if self.is_exact(field) { Some(self.value.get(field)) } else { None }
    }

    /// Whether no bit of the field is matched.
    pub const fn is_wild(&self, field: Field) -> bool {
        self.mask.get(field) == 0
    }

    /// Whether this set holds only packets without a VLAN tag.
    pub const fn is_untagged(&self) -> bool {
        self.mask.words[VLAN_WORD] & !self.value.words[VLAN_WORD] & VLAN_PRESENT_BIT != 0
    }

    /// Whether this set holds only packets with a VLAN tag.
    pub const fn is_tagged(&self) -> bool {
        self.value.words[VLAN_WORD] & VLAN_PRESENT_BIT != 0
    }

    /// Whether all packets of this set have the field: its prerequisites are matched exactly.
    pub fn permits(&self, field: Field) -> bool {
        match field {
            Field::VlanPcp => return self.is_tagged(),
            Field::InPhyPort => return self.is_exact(Field::InPort),
            _ => {}
        }
        let ethertypes = field.ethertypes();
        if ethertypes.is_empty() {
            return true;
        }
        let Some(dl_type) = self.exact_u16(Field::DlType) else { return false };
        if !ethertypes.contains(&dl_type) {
            return false;
        }
        let protocols = field.ip_protocols(dl_type);
        if !protocols.is_empty()
            && !self.exact_u16(Field::NwProto).is_some_and(|p| protocols.contains(&(p as u8)))
        {
            return false;
        }
        let types = field.icmpv6_types(dl_type);
        types.is_empty() || self.exact_u16(Field::TpSrc).is_some_and(|t| types.contains(&t))
    }

    /// Whether the packet is in this set.
    #[inline]
    pub fn matches(&self, key: &Key) -> bool {
        let mut difference = 0;
        for word in 0..WORDS {
            difference |= (key.words[word] & self.mask.words[word]) ^ self.value.words[word];
        }
        difference == 0
    }

    /// Whether some packet is in both sets.
    #[inline]
    pub fn overlaps(&self, other: &Match) -> bool {
        let mut difference = 0;
        for word in 0..WORDS {
            difference |= (self.value.words[word] ^ other.value.words[word])
                & self.mask.words[word]
                & other.mask.words[word];
        }
        difference == 0
    }

    /// Whether every packet of `other` is in this set.
    #[inline]
    pub fn contains(&self, other: &Match) -> bool {
        let mut outside = 0;
        for word in 0..WORDS {
            outside |= self.mask.words[word] & !other.mask.words[word];
            outside |= (self.value.words[word] ^ other.value.words[word]) & self.mask.words[word];
        }
        outside == 0
    }

    /// The packets in both sets; `None` if there are none.
    #[inline]
    pub fn intersect(&self, other: &Match) -> Option<Match> {
        if !self.overlaps(other) {
            return None;
        }
        let mut both = *self;
        for word in 0..WORDS {
            both.value.words[word] |= other.value.words[word];
            both.mask.words[word] |= other.mask.words[word];
        }
        Some(both)
    }

    /// The packets of this set that are not in `other`, as disjoint matches. At most one piece per
    /// bit that `other` matches and this set does not.
    pub fn subtract(&self, other: &Match) -> Subtract {
        if !self.overlaps(other) {
            return Subtract { rest: *self, other: *other, word: WORDS, whole: true };
        }
        Subtract { rest: *self, other: *other, word: 0, whole: false }
    }

    pub(crate) fn assign(&mut self, field: Field, value: u128, mask: u128) {
        self.value.set(field, value & mask);
        self.mask.set(field, mask);
    }

    pub(crate) fn exact_u16(&self, field: Field) -> Option<u16> {
        self.exact_value(field).and_then(|value| u16::try_from(value).ok())
    }

    /// Removes what gets its meaning from `field`.
    fn drop_dependants(&mut self, field: Field) {
        match field {
            Field::InPort => self.assign(Field::InPhyPort, 0, 0),
            Field::DlType => {
                self.value.clear_words_from(FIRST_L3_WORD);
                self.mask.clear_words_from(FIRST_L3_WORD);
            }
            Field::NwProto | Field::ArpOp if !self.is_arp() => {
                for dependant in [Field::TpSrc, Field::TpDst] {
                    self.assign(dependant, 0, 0);
                }
                self.drop_neighbour_discovery();
            }
            Field::TpSrc => self.drop_neighbour_discovery(),
            _ => {}
        }
    }

    fn drop_neighbour_discovery(&mut self) {
        for dependant in [Field::ND_SLL, Field::ND_TLL, Field::NdTarget] {
            self.assign(dependant, 0, 0);
        }
    }

    pub(crate) fn is_arp(&self) -> bool {
        matches!(self.exact_u16(Field::DlType), Some(ethertype::ARP | ethertype::RARP))
    }

    /// Whether all packets of this set are ICMP of their IP version.
    pub(crate) fn is_icmp(&self) -> bool {
        let protocol = self.exact_u16(Field::NwProto).map(|protocol| protocol as u8);
        match self.exact_u16(Field::DlType) {
            Some(ethertype::IP) => protocol == Some(ip_proto::ICMP),
            Some(ethertype::IPV6) => protocol == Some(ip_proto::ICMPV6),
            _ => false,
        }
    }

    fn ensure_prerequisites(&mut self, field: Field) {
        self.ensure_one_of(Field::DlType, field.ethertypes().iter().copied());
        let dl_type = self.value.get(Field::DlType) as u16;
        let protocols = field.ip_protocols(dl_type);
        self.ensure_one_of(Field::NwProto, protocols.iter().map(|&p| u16::from(p)));
        self.ensure_one_of(Field::TpSrc, field.icmpv6_types(dl_type).iter().copied());
    }

    /// Makes `field` exact with one of `choices`, the first that this set allows, else the first.
    fn ensure_one_of(&mut self, field: Field, choices: impl Iterator<Item = u16> + Clone) {
        let (value, mask) = self.get(field);
        let allowed = choices.clone().find(|&choice| u128::from(choice) & mask == value);
        if let Some(choice) = allowed.or_else(|| choices.clone().next()) {
            *self = self.with(field, u128::from(choice));
        }
    }

    fn set_vlan(&mut self, field: Field, value: u128, mask: u128) {
        let no_tag = mask & VLAN_PRESENT != 0 && value == 0;
        if field == Field::VlanVid && no_tag {
            self.assign(Field::VlanVid, 0, Field::VlanVid.full_mask());
            self.assign(Field::VlanPcp, 0, Field::VlanPcp.full_mask());
            return;
        }
        if self.is_untagged() {
            self.assign(Field::VlanVid, 0, 0);
            self.assign(Field::VlanPcp, 0, 0);
        }
        self.assign(field, value, mask);
        let (vid, vid_mask) = self.get(Field::VlanVid);
        if vid != 0 || !self.is_wild(Field::VlanPcp) {
            self.assign(Field::VlanVid, vid | VLAN_PRESENT, vid_mask | VLAN_PRESENT);
        }
    }

    /// Brings the VLAN bits into canonical form; false if no packet can have them.
    pub(crate) fn settle_vlan(&mut self) -> bool {
        let (value, mask) = (&mut self.value.words[VLAN_WORD], &mut self.mask.words[VLAN_WORD]);
        let nonzero = *value & VLAN_BITS & !VLAN_PRESENT_BIT != 0;
        if *mask & VLAN_PRESENT_BIT == 0 {
            if nonzero {
                *value |= VLAN_PRESENT_BIT;
                *mask |= VLAN_PRESENT_BIT;
            }
        } else if *value & VLAN_PRESENT_BIT == 0 {
            *mask |= VLAN_BITS;
            return !nonzero;
        }
        true
    }
}

impl Default for Match {
    fn default() -> Match {
        Match::ANY
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Match");
        for field in Field::ALL {
            let (value, mask) = self.get(field);
            if mask == field.full_mask() {
                out.field(field.name(), &format_args!("{value:#x}"));
            } else if mask != 0 {
                out.field(field.name(), &format_args!("{value:#x}/{mask:#x}"));
            }
        }
        out.finish()
    }
}

/// The pieces of a difference; see [`Match::subtract`].
#[derive(Clone, Debug)]
pub struct Subtract {
    /// The rest to split: the minuend, which agrees with `other` on all bits visited so far.
    rest: Match,
    other: Match,
    word: usize,
    /// The sets are disjoint, and the whole minuend is the only result, which was not returned yet.
    whole: bool,
}

impl Iterator for Subtract {
    type Item = Match;

    fn next(&mut self) -> Option<Match> {
        if core::mem::take(&mut self.whole) {
            return Some(self.rest);
        }
        while self.word < WORDS {
            let word = self.word;
            let open = self.other.mask.words[word] & !self.rest.mask.words[word];
            if open == 0 {
                self.word += 1;
                continue;
            }
            // From the top bit down: prerequisites first.
            let bit = 1 << (63 - open.leading_zeros());
            let theirs = self.other.value.words[word] & bit;
            let mut piece = self.rest;
            piece.mask.words[word] |= bit;
            piece.value.words[word] |= bit ^ theirs;
            self.rest.mask.words[word] |= bit;
            self.rest.value.words[word] |= theirs;
            let possible = word != VLAN_WORD || piece.settle_vlan();
            if possible {
                return Some(piece);
            }
        }
        None
    }
}
