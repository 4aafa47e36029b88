//! PACKET_OUT in both versions: a packet that a tenant with a slice sends has to belong to the tenant, or has to be a
//! link probe.

use super::{Request, Switch};
use crate::buffers::Buffered;
use crate::ids::TenantIndex;
use crate::lldp;
use crate::south::pending::Awaits;
use crate::south::queue::Class;
use crate::south::session::set_length;
use crate::time::Instant;
use alloc::vec::Vec;
use compile::packet::{self, Sent};
use compile::slice::{self, Packets};
use compile::{Actions, Context, Reason, Refused, Slice, Space};
use flowspace::{Field, Key, port_to_v10};
use openflow::error::v13 as code;
use openflow::v10::PortNo;
use openflow::{NO_BUFFER, frame};

/// The packet of a PACKET_OUT.
pub(crate) struct Found {
    pub key: Key,
    pub in_port: Option<u32>,
    /// The switch's buffer id, or `NO_BUFFER`.
    pub physical: u32,
}

impl Switch {
    /// Finds the packet of a PACKET_OUT by the tenant's buffer id. The packet of a message without a buffer id is in
    /// the message; then `in_port` checks the message, and gives the ingress port. `port` is the port in the message.
    pub(crate) fn find_packet(
        &self,
        tenant: TenantIndex,
        buffer_id: u32,
        port: u32,
        data: &[u8],
        in_port: impl FnOnce() -> Result<Option<u32>, Refused>,
    ) -> Result<Found, Refused> {
        let state = &self.tenants[tenant];
        if buffer_id != NO_BUFFER {
            let buffered = state.packets.buffers().peek(buffer_id);
            // The error codes here have the same numbers in both versions.
            let Buffered { key, physical, .. } =
                *buffered.ok_or(code::BAD_REQUEST_BUFFER_UNKNOWN)?;
            // Weir knows the ingress port of a buffered packet, whatever the tenant says.
            return Ok(Found { key, in_port: Some(key.get(Field::InPort) as u32), physical });
        }
        let in_port = in_port()?;
        if Switch::passes_probe_on(state.network.is_some(), data) {
            return Err(Reason::WeirsProbe.with(code::BAD_REQUEST_EPERM));
        }
        Ok(Found { key: Key::extract(port, data), in_port, physical: NO_BUFFER })
    }

    /// Sends the switch a PACKET_OUT of a tenant. The buffer id cannot be used again.
    pub(crate) fn send_packet_out(
        &mut self,
        request: &Request<'_>,
        found: &Found,
        buffer_id: u32,
        actions: Actions<'_>,
        data: &[u8],
    ) -> Result<(), Refused> {
        let mut message = self.scratch.take_message();
        let built = self.build_packet_out(request, found, actions, data, &mut message);
        if built.is_ok() {
            if found.physical != NO_BUFFER {
                self.tenants.take_buffered(request.tenant, buffer_id);
            }
            self.forward_request(request, Awaits::Nothing, Class::PacketOut, &message);
        }
        self.scratch.put_message(message);
        built
    }

    fn build_packet_out(
        &self,
        request: &Request<'_>,
        &Found { ref key, in_port, physical }: &Found,
        actions: Actions<'_>,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let cx = self.context(request.tenant);
        let packet = &Sent { key, in_port, is_buffered: physical != NO_BUFFER };
        // The header and the fixed part of the request; then the actions, then the packet.
        let (fixed, length_at) = match actions {
            Actions::V10(_) => (16, 14),
            Actions::V13(_) => (24, 16),
        };
        out.extend_from_slice(request.frame.get(..fixed).unwrap_or_default());
        frame::set_buffer_id(out, physical);
        let (in_port, probe) = match cx.space {
            Space::Network(network) => {
                (Some(packet::compile(&cx, network, packet, actions, out)?.0), None)
            }
            Space::Slice(slice) => {
                let probe = self.slice_packet_out(&cx, slice, packet, data, actions, out)?;
                (packet.in_port.filter(|_| packet.is_buffered), probe)
            }
        };
        if let Some(in_port) = in_port {
            let in_port = match actions {
                Actions::V10(_) => port_to_v10(in_port).unwrap_or(PortNo::NONE.0).into(),
                Actions::V13(_) => in_port,
            };
            frame::set_in_port(out, in_port);
        }
        let actions_len = u16::try_from(out.len() - fixed);
        let actions_len = actions_len.map_err(|_| code::BAD_ACTION_TOO_MANY)?;
        if let Some(field) = out.get_mut(length_at..length_at + 2) {
            field.copy_from_slice(&actions_len.to_be_bytes());
        }
        let probe = probe.map(|is_own| (is_own, request.now));
        self.append_packet(&cx, data, packet.is_buffered, probe, out)
    }

    /// Appends the actions of a PACKET_OUT in a slice. For a link probe, returns whether LLDP belongs to the tenant.
    fn slice_packet_out(
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
    fn append_packet(
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
