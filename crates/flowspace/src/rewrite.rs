//! The images of sets of packets under actions that change headers.
//!
//! Each function returns the image of the set, or a superset of the image if a header becomes unknown (for example the
//! tag under a popped tag). So `region.contains(&image)` answers whether the rewritten packets stay inside a region,
//! and never answers yes wrongly.

use crate::Match;
use crate::field::{FIRST_L3_WORD, Field, VLAN_PRESENT, ethertype};
use crate::frame::is_vlan;

impl Match {
    /// The image of this set when `field` is overwritten with `value` in the packets that have it
    /// (1.3's set-field; 1.0's `SET_*` actions other than those for VLANs).
    ///
    /// If only some packets of the set may have the field, the other packets do not change. The field is wild in such a
    /// set, so the result is the set itself. After a field is overwritten, the fields that depend on it are unknown.
    #[must_use]
    pub fn rewrite(&self, field: Field, value: u128) -> Match {
        match field {
            Field::VlanVid | Field::VlanPcp => return self.rewrite_vlan(field, value),
            _ if !self.permits(field) => return *self,
            _ => {}
        }
        // The dependent fields are dropped even if the value stays the same: this is harmless, and the same for every
        // set.
        let mut image = self.without(field);
        image.assign(field, value & field.full_mask(), field.full_mask());
        image
    }

    fn rewrite_vlan(&self, field: Field, value: u128) -> Match {
        let mut image = *self;
        if self.is_tagged() {
            let present = if field == Field::VlanVid { VLAN_PRESENT } else { 0 };
            image.assign(field, (value | present) & field.full_mask(), field.full_mask());
        } else if !self.is_untagged() {
            // Some packets have a tag and change, others have no tag.
            image.assign(field, 0, 0);
        }
        image
    }

    /// The image under 1.0's `SET_VLAN_VID`, which adds a tag with priority 0 to untagged packets.
    #[must_use]
    pub fn set_vlan_vid_v10(&self, vid: u16) -> Match {
        self.set_tag_v10(Field::VlanVid, VLAN_PRESENT | u128::from(vid & 0xfff))
    }

    /// The image under 1.0's `SET_VLAN_PCP`, which adds a tag with id 0 to untagged packets.
    #[must_use]
    pub fn set_vlan_pcp_v10(&self, pcp: u8) -> Match {
        self.set_tag_v10(Field::VlanPcp, u128::from(pcp & 7))
    }

    /// An untagged packet's key has id and priority 0, like the new tag, so the half of the tag that is not written
    /// keeps its bits in every case.
    fn set_tag_v10(&self, field: Field, value: u128) -> Match {
        let (vid, vid_mask) = self.get(Field::VlanVid);
        let mut image = *self;
        image.assign(Field::VlanVid, vid | VLAN_PRESENT, vid_mask | VLAN_PRESENT);
        image.assign(field, value, field.full_mask());
        image
    }

    /// The image when a VLAN tag is pushed. Switches differ in whether the new tag copies the id and priority of an
    /// outer tag that was there (1.3 section 5.12.1) or starts from zero (Open vSwitch), so id and priority are known
    /// only where both agree.
    #[must_use]
    pub fn push_vlan(&self) -> Match {
        let mut image = *self;
        for field in [Field::VlanVid, Field::VlanPcp] {
            let (value, mask) = self.get(field);
            // Zero bits stay zero under both rules; bits that may be one may also become zero.
            image.assign(field, 0, mask & !value);
        }
        let (vid, vid_mask) = image.get(Field::VlanVid);
        image.assign(Field::VlanVid, vid | VLAN_PRESENT, vid_mask | VLAN_PRESENT);
        image
    }

    /// The image when the outermost VLAN tag is popped: a second tag under it is unknown. Untagged packets do not
    /// change.
    #[must_use]
    pub fn pop_vlan(&self) -> Match {
        if self.is_untagged() {
            return *self;
        }
        self.with_any_tag()
    }

    /// The image when an MPLS shim is pushed and the Ethernet type becomes `ethertype`.
    ///
    /// The new shim's label and traffic class are unknown (they may be copied or default); the bottom-of-stack bit is
    /// known if it is known whether the packets had a shim before.
    #[must_use]
    pub fn push_mpls(&self, ethertype: u16) -> Match {
        let bottom = self.exact_u16(Field::DlType).map(|old| !is_mpls(old));
        let image = self.change_ethertype(ethertype);
        match bottom {
            Some(bottom) if is_mpls(ethertype) => image.with(Field::MplsBos, u128::from(bottom)),
            _ => image,
        }
    }

    /// The image when the outermost MPLS shim is popped and the Ethernet type becomes `ethertype`: all fields behind it
    /// are unknown. Packets without a shim do not change; if only some packets may have a shim, the Ethernet type is
    /// unknown too. If `ethertype` is the type of a VLAN tag, the bytes behind the shim become a tag.
    #[must_use]
    pub fn pop_mpls(&self, ethertype: u16) -> Match {
        let image = match self.exact_u16(Field::DlType) {
            Some(old) if is_mpls(old) && !is_vlan(ethertype) => {
                return self.change_ethertype(ethertype);
            }
            Some(old) if !is_mpls(old) => return *self,
            _ => self.without(Field::DlType),
        };
        if is_vlan(ethertype) { image.with_any_tag() } else { image }
    }

    /// The image when a PBB header is pushed: the Ethernet addresses are copied outwards, the service
    /// instance and the outer tag are unknown.
    #[must_use]
    pub fn push_pbb(&self) -> Match {
        self.change_ethertype(ethertype::PBB).with_any_tag()
    }

    /// The image when a PBB header is popped: all fields except the port and the pipeline's registers are unknown.
    /// Packets that are known to have no PBB header do not change.
    #[must_use]
    pub fn pop_pbb(&self) -> Match {
        if self.exact_u16(Field::DlType).is_some_and(|old| old != ethertype::PBB) {
            return *self;
        }
        let mut image = self.without(Field::DlType).without(Field::VlanVid);
        for field in [Field::VlanPcp, Field::DlSrc, Field::DlDst] {
            image = image.without(field);
        }
        image.assign(Field::VlanVid, 0, 0);
        image
    }

    /// Whether there is a tag, and which, becomes unknown.
    fn with_any_tag(&self) -> Match {
        let mut image = *self;
        image.assign(Field::VlanVid, 0, 0);
        image.assign(Field::VlanPcp, 0, 0);
        image
    }

    /// All fields behind the Ethernet type become unknown.
    fn change_ethertype(&self, ethertype: u16) -> Match {
        let mut image = *self;
        image.value.clear_words_from(FIRST_L3_WORD);
        image.mask.clear_words_from(FIRST_L3_WORD);
        image.assign(Field::DlType, u128::from(ethertype), Field::DlType.full_mask());
        image
    }
}

fn is_mpls(ethertype: u16) -> bool {
    matches!(ethertype, ethertype::MPLS | ethertype::MPLS_MULTICAST)
}
