//! PACKET_OUT in both versions: a packet that a tenant with a slice sends has to belong to the tenant, or has to be a
//! link probe.

use super::Switch;
use crate::lldp;
use crate::south::session::set_length;
use crate::time::Instant;
use alloc::vec::Vec;
use compile::packet::Sent;
use compile::slice::{self, Packets};
use compile::{Actions, Context, Reason, Refused, Slice};
use flowspace::Field;
use openflow::error::v13 as code;

impl Switch {
    /// Appends the actions of a PACKET_OUT in a slice. For a link probe, returns whether LLDP belongs to the tenant.
    pub(crate) fn slice_packet_out(
        &self,
        cx: &Context<'_>,
        slice: Slice<'_>,
        sent: &Sent<'_>,
        frame: &[u8],
        actions: Actions<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<bool>, Refused> {
        let &Sent { key, in_port, is_buffered } = sent;
        let is_lldp = key.get(Field::DlType) == u128::from(lldp::ETHERTYPE);
        let is_probe = is_lldp && !is_buffered;
        let is_own = is_buffered || slice.ownership.owns_frame(cx.tenant, key, frame, in_port);
        match (is_own, is_probe) {
            (true, _) => slice::list(cx, slice, Packets::One(key, in_port), actions, out)?,
            (false, true) => slice::probe(cx, slice, actions, out)?,
            // The error code has the same number in both versions.
            (false, false) => return Err(Reason::ForeignPacket.with(code::BAD_REQUEST_EPERM)),
        }
        Ok(is_probe.then_some(is_own))
    }

    /// Appends the packet of a PACKET_OUT, unless the switch buffers the packet, and sets the message's length. A link
    /// probe gets the tenant's tag; `probe` says whether LLDP belongs to the tenant, and the time. A tenant that owns
    /// LLDP may send an incomplete LLDP frame.
    pub(crate) fn append_packet(
        &self,
        cx: &Context<'_>,
        frame: &[u8],
        is_buffered: bool,
        probe: Option<(bool, Instant)>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        // A probe is also tagged if LLDP belongs to the tenant: the link may end at a port of somebody else.
        let is_tagged =
            probe.is_some_and(|(is_own, now)| self.tag_probe(cx.id, frame, is_own, now, out));
        if !is_tagged && probe.is_some_and(|(is_own, _)| !is_own) {
            return Err(Reason::NoProbe.with(code::BAD_REQUEST_EPERM));
        }
        if !is_tagged && !is_buffered {
            out.extend_from_slice(frame);
        }
        if out.len() > usize::from(u16::MAX) {
            return Err(Reason::PacketTooLong.with(code::BAD_REQUEST_BAD_LEN));
        }
        set_length(out);
        Ok(())
    }
}
