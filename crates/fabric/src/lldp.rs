//! Keeps each tenant's link discovery within its own links.
//!
//! Tenants' controllers discover links by LLDP frames: they send a frame out of a port, and see which port receives it.
//! Flowspaces cannot separate such frames, so the hypervisor adds an organizationally specific TLV (IEEE 802.1AB,
//! section 9.6). The TLV names the tenant and authenticates the whole frame with a keyed hash (SipHash-2-4). A received
//! frame with a valid tag goes to this tenant alone, without the tag. A host can neither make a tag nor reuse an old
//! one, because a tag expires after [`LIFETIME`].
//!
//! If a tenant's flowspace does not contain LLDP frames, the tenant's frames get the source address [`GUEST_SOURCE`].
//! So the switch can distinguish them from the frames of the tenant that owns LLDP, whose entries they would match
//! otherwise. The tag keeps the tenant's source address.
//!
//! The operator's own probes ([`crate::discovery`]) carry the same tag, of another kind, so that no frame is taken for
//! the other kind.

use crate::time::{Duration, Instant};
use crate::units::TenantId;
use alloc::vec::Vec;
use core::hash::Hasher;
use siphasher::sip::SipHasher24;

/// The EtherType of LLDP.
pub const ETHERTYPE: u16 = 0x88cc;
/// How long a tag is accepted after it was made.
pub const LIFETIME: Duration = Duration::from_secs(5);
/// The source address of the operator's own probes: locally administered, since they are not from any interface.
pub const PROBE_SOURCE: [u8; 6] = [0x02, 0x57, 0x45, 0, 0, 0];
/// The source address of tenants' frames that must not match any tenant's entries. This address differs from
/// [`PROBE_SOURCE`] in the last bit alone.
pub const GUEST_SOURCE: [u8; 6] = [0x02, 0x57, 0x45, 0, 0, 1];

/// A locally administered identifier, since Weir owns none.
const OUI: [u8; 3] = [0x02, 0x57, 0x45];
/// OUI, subtype, number, source address, time, hash.
const VALUE_LEN: usize = 3 + 1 + 2 + 6 + 8 + HASH_LEN;
const HASH_LEN: usize = 8;
const TLV_LEN: usize = 2 + VALUE_LEN;
/// Type 127, organizationally specific, and the length.
const TLV_HEADER: u16 = (127 << 9) | VALUE_LEN as u16;
const ETHERNET_LEN: usize = 14;
/// The bytes of a frame's source address.
const SOURCE: core::ops::Range<usize> = 6..12;
/// The subtype of the operator's own probes.
const PROBE_SUBTYPE: u8 = 2;
/// The first bytes of the tag of Weir's own probes.
const PROBE_TAG: [u8; 6] = {
    let [high, low] = TLV_HEADER.to_be_bytes();
    [high, low, OUI[0], OUI[1], OUI[2], PROBE_SUBTYPE]
};
/// The number of places in a block where the search looks for a tag.
const STARTS: usize = 32;
const BLOCK_LEN: usize = STARTS + PROBE_TAG.len() - 1;

/// The key of one installation; shared by all its switches.
#[derive(Clone, Copy)]
pub struct LldpKey(pub [u8; 16]);

impl core::fmt::Debug for LldpKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("LldpKey(..)")
    }
}

/// The sender of a frame: the subtype of the TLV, and the number in the TLV.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Tenant(TenantId),
    Operator,
}

impl Origin {
    fn parts(self) -> (u8, u16) {
        match self {
            Origin::Tenant(tenant) => (1, tenant.0),
            Origin::Operator => (PROBE_SUBTYPE, 0),
        }
    }

    fn from_parts(subtype: u8, number: u16) -> Option<Origin> {
        match (subtype, number) {
            (1, tenant) => Some(Origin::Tenant(TenantId(tenant))),
            (PROBE_SUBTYPE, 0) => Some(Origin::Operator),
            _ => None,
        }
    }
}

/// A frame with a valid tag.
struct Opened {
    origin: Origin,
    made: Instant,
    /// The source address before the frame was tagged.
    source: [u8; 6],
    /// The bytes of the tag in the frame.
    tag: core::ops::Range<usize>,
}

impl LldpKey {
    /// Appends `frame` with a tenant's tag to `out`. If `frame` is no well-formed LLDP frame, the result is false and
    /// nothing is appended.
    pub fn tag(&self, frame: &[u8], tenant: TenantId, now: Instant, out: &mut Vec<u8>) -> bool {
        self.seal(frame, Origin::Tenant(tenant), None, now, out)
    }

    /// Appends a frame with the tag of a tenant that does not own LLDP frames: the source address is [`GUEST_SOURCE`].
    pub fn tag_as_guest(
        &self,
        frame: &[u8],
        tenant: TenantId,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> bool {
        self.seal(frame, Origin::Tenant(tenant), Some(GUEST_SOURCE), now, out)
    }

    /// The tenant of a frame with a valid tag that is not too old, and the frame without the tag.
    pub fn verify(&self, frame: &[u8], now: Instant) -> Option<(TenantId, Vec<u8>)> {
        let Opened { origin: Origin::Tenant(tenant), made, source, tag } = self.open(frame)? else {
            return None;
        };
        let mut own = [frame.get(..tag.start)?, frame.get(tag.end..)?].concat();
        own.get_mut(SOURCE)?.copy_from_slice(&source);
        is_fresh(made, now).then_some((tenant, own))
    }

    /// Whether the frame is one of the operator's own probes with a valid tag of any age.
    pub fn is_probe(&self, frame: &[u8]) -> bool {
        self.verify_probe(frame).is_some()
    }

    /// Does the same as [`tag`](LldpKey::tag) for one of the operator's own probes.
    pub(crate) fn tag_probe(&self, frame: &[u8], now: Instant, out: &mut Vec<u8>) -> bool {
        self.seal(frame, Origin::Operator, None, now, out)
    }

    /// The time when the probe was made, if the frame is one of the operator's own probes.
    pub(crate) fn verify_probe(&self, frame: &[u8]) -> Option<Instant> {
        let opened = self.open(frame)?;
        (opened.origin == Origin::Operator).then_some(opened.made)
    }

    /// Appends the frame with a tag, and with this source address if one is given.
    fn seal(
        &self,
        frame: &[u8],
        origin: Origin,
        from: Option<[u8; 6]>,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(end) = end_of_tlvs(frame) else { return false };
        let start = out.len();
        out.extend_from_slice(&frame[..end]);
        if let Some(from) = from {
            out[start..][SOURCE].copy_from_slice(&from);
        }
        let (subtype, number) = origin.parts();
        out.extend_from_slice(&TLV_HEADER.to_be_bytes());
        out.extend_from_slice(&OUI);
        out.push(subtype);
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&frame[SOURCE]);
        out.extend_from_slice(&now.0.to_be_bytes());
        let hash = self.hash(&out[start..]);
        out.extend_from_slice(&hash.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        true
    }

    fn open(&self, frame: &[u8]) -> Option<Opened> {
        let end = end_of_tlvs(frame)?;
        let at = end.checked_sub(TLV_LEN)?;
        let header = frame.get(at..at + 2)?;
        let value: &[u8; VALUE_LEN] = frame.get(at + 2..end)?.try_into().ok()?;
        if at < ETHERNET_LEN || header != TLV_HEADER.to_be_bytes() || value[..3] != OUI {
            return None;
        }
        let origin = Origin::from_parts(value[3], u16::from_be_bytes([value[4], value[5]]))?;
        let source = value[6..12].try_into().ok()?;
        let made = Instant(u64::from_be_bytes(value[12..20].try_into().ok()?));
        let hash = u64::from_be_bytes(value[20..].try_into().ok()?);
        let hashed = frame.get(..end - HASH_LEN)?;
        (hash == self.hash(hashed)).then_some(Opened { origin, made, source, tag: at..end })
    }

    /// The hash of the whole frame up to the hash field.
    fn hash(&self, frame: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(frame);
        hasher.finish()
    }
}

fn is_fresh(made: Instant, now: Instant) -> bool {
    made <= now && now - made <= LIFETIME
}

/// Whether a frame is one of the operator's own probes, or would become one when VLAN tags, MPLS shims or provider
/// backbone headers in front of it are removed. The check ignores the hash, because the addresses can change on the
/// way, too.
pub fn looks_like_probe(frame: &[u8]) -> bool {
    // When a shim is removed, the frame can get any EtherType, so no EtherType excludes a probe. Other frames do not
    // have these bytes by chance.
    let mut rest = frame;
    while let Some(block) = rest.first_chunk() {
        if has_probe_tag(block) {
            return true;
        }
        rest = &rest[STARTS..];
    }
    match frame.last_chunk() {
        Some(block) => has_probe_tag(block),
        None => frame.windows(PROBE_TAG.len()).any(|bytes| *bytes == PROBE_TAG),
    }
}

/// Whether a block contains the first bytes of a probe's tag. The function compares all places without a branch, many
/// at once, so all frames of a tenant take the same time.
fn has_probe_tag(block: &[u8; BLOCK_LEN]) -> bool {
    let begins = |start: usize| {
        PROBE_TAG
            .iter()
            .enumerate()
            .fold(true, |same, (at, byte)| same & (block[start + at] == *byte))
    };
    (0..STARTS).fold(false, |found, start| found | begins(start))
}

/// The offset of the End Of LLDPDU TLV, or of the end of a frame whose TLVs fill it exactly.
fn end_of_tlvs(frame: &[u8]) -> Option<usize> {
    if frame.get(12..14)? != ETHERTYPE.to_be_bytes() {
        return None;
    }
    let mut at = ETHERNET_LEN;
    while let Some(header) = frame.get(at..at + 2) {
        let header = u16::from_be_bytes([header[0], header[1]]);
        if header == 0 {
            return Some(at);
        }
        at += 2 + usize::from(header & 0x1ff);
    }
    (at == frame.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const KEY: LldpKey = LldpKey([7; 16]);
    const RED: TenantId = TenantId(3);
    const NOW: Instant = Instant(1_000_000);

    fn probe() -> Vec<u8> {
        let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 1, 0x88, 0xcc];
        frame.extend_from_slice(&[0x02, 0x07, 4, 2, 0, 0, 0, 0, 1]); // chassis id
        frame.extend_from_slice(&[0x04, 0x03, 2, 0, 1]); // port id
        frame.extend_from_slice(&[0x06, 0x02, 0, 120]); // time to live
        frame.extend_from_slice(&[0, 0]);
        frame
    }

    fn tagged() -> Vec<u8> {
        let mut out = Vec::new();
        assert!(KEY.tag(&probe(), RED, NOW, &mut out));
        out
    }

    #[test]
    fn verify_returns_the_tenant_and_the_original_frame_of_a_tagged_frame() {
        let frame = tagged();
        assert_eq!(KEY.verify(&frame, NOW), Some((RED, probe())));
    }

    #[test]
    fn a_tagged_guest_frame_has_the_guest_source_address() {
        let mut frame = Vec::new();
        assert!(KEY.tag_as_guest(&probe(), RED, NOW, &mut frame));
        assert_eq!(frame[SOURCE], GUEST_SOURCE);
        assert_eq!(KEY.verify(&frame, NOW), Some((RED, probe())));
        // One match covers both source addresses, with a mask of all bits but the last.
        let differs: Vec<u8> = GUEST_SOURCE.iter().zip(PROBE_SOURCE).map(|(a, b)| a ^ b).collect();
        assert_eq!(differs, [0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn probes_are_recognized_with_vlan_tags_mpls_shims_and_pbb_headers() {
        let mut own = Vec::new();
        assert!(KEY.tag_probe(&probe(), NOW, &mut own));
        let behind = |frame: &[u8], tags: &[u8]| [&frame[..12], tags, &frame[12..]].concat();
        // A shim of MPLS takes the EtherType's place.
        let shim = |frame: &[u8], tags: &[u8]| [&frame[..12], tags, &frame[14..]].concat();
        for frame in [
            own.clone(),
            behind(&own, &[0x81, 0, 0, 5]),
            behind(&own, &[0x88, 0xa8, 0, 5, 0x81, 0, 0x20, 6]),
            shim(&own, &[0x88, 0x47, 0, 0, 0x11, 64]),
            shim(&own, &[0x81, 0, 0, 5, 0x88, 0x47, 0, 0, 0x10, 64, 0, 0, 0x11, 64]),
            // A tag behind a shim, a provider backbone header, and an EtherType that a shim leaves when it is added and
            // removed.
            shim(&own, &[0x88, 0x47, 0, 0, 0x11, 64, 0, 0, 0x88, 0xcc]),
            behind(&own, &[0x88, 0xe7, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 7]),
            shim(&own, &[0x12, 0x34]),
        ] {
            assert!(looks_like_probe(&frame), "{frame:02x?}");
            let mut readdressed = frame.clone();
            readdressed[7] ^= 1;
            assert!(looks_like_probe(&readdressed), "its addresses can be put right again");
            for length in 0..frame.len() {
                looks_like_probe(&frame[..length]);
            }
        }
        for other in [probe(), tagged(), behind(&tagged(), &[0x81, 0, 0, 5]), Vec::new()] {
            assert!(!looks_like_probe(&other), "{other:02x?}");
        }
    }

    #[test]
    fn a_probe_tag_is_recognized_at_any_offset_of_a_frame() {
        for length in 0..3 * BLOCK_LEN {
            let mut frame = vec![PROBE_TAG[0]; length];
            assert!(!looks_like_probe(&frame));
            for at in 0..(length + 1).saturating_sub(PROBE_TAG.len()) {
                frame[at..at + PROBE_TAG.len()].copy_from_slice(&PROBE_TAG);
                assert!(looks_like_probe(&frame), "at {at} of {length}");
                frame[at + PROBE_TAG.len() - 1] ^= 1;
                assert!(!looks_like_probe(&frame), "at {at} of {length}");
                frame.fill(PROBE_TAG[0]);
            }
        }
    }

    #[test]
    fn a_frame_padded_by_a_switch_is_still_verified() {
        let mut frame = tagged();
        frame.resize(96, 0);
        assert!(KEY.verify(&frame, NOW).is_some());
    }

    #[test]
    fn forged_changed_and_expired_frames_are_not_verified() {
        let frame = tagged();
        assert_eq!(KEY.verify(&probe(), NOW), None);
        assert_eq!(LldpKey([8; 16]).verify(&frame, NOW), None);
        assert_eq!(KEY.verify(&frame, NOW + LIFETIME + Duration::from_nanos(1)), None);
        assert_eq!(KEY.verify(&frame, Instant(0)), None);
        for at in 0..frame.len() - 2 {
            let mut changed = frame.clone();
            changed[at] ^= 0x10;
            assert_eq!(KEY.verify(&changed, NOW), None, "byte {at}");
        }
    }

    #[test]
    fn probes_and_tenant_frames_are_not_confused() {
        assert_eq!(KEY.verify_probe(&tagged()), None);
        let mut frame = Vec::new();
        assert!(KEY.tag_probe(&probe(), NOW, &mut frame));
        assert_eq!((KEY.verify_probe(&frame), KEY.verify(&frame, NOW)), (Some(NOW), None));
        // A changed subtype is refused as well, because the hash covers the subtype.
        let at = frame.len() - 2 - VALUE_LEN + 3;
        assert_eq!(core::mem::replace(&mut frame[at], 1), 2);
        assert_eq!((KEY.verify_probe(&frame), KEY.verify(&frame, NOW)), (None, None));
    }

    #[test]
    fn truncated_frames_cause_no_panic() {
        let frame = tagged();
        for n in 0..frame.len() {
            KEY.verify(&frame[..n], NOW);
            KEY.tag(&frame[..n], RED, NOW, &mut Vec::new());
        }
    }
}
