//! The two ends of a control channel that the generator emulates. Each end decides the effect of a
//! received frame on the handshake and on the measurement.

use crate::fault::{Fault, Faults};
use crate::load::Kind;
use crate::plan::{Setup, Topology, Version};
use crate::run::Run;
use crate::service::{Served, Service};
use crate::switch::{Meaning, Switch, Table, hello};
use crate::tag::Tag;
use crate::template::ask_for_misses;
use crate::track::{stream_of, xid};
use crate::wire::{
    HEADER_LEN, ROLE_REPLY, Types, be16, be32, buffer_id, kind, message, packet_in_data,
    packet_out_data, put32,
};

/// The xid of the FEATURES_REQUEST that ends a controller's handshake.
const HANDSHAKE_XID: u32 = 1;

/// The state that a frame may change.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) run: Option<&'a mut Run>,
    pub(crate) faults: &'a mut Faults,
    pub(crate) now: u64,
}

/// The reaction of the event loop to a frame. Of several reactions the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    None,
    /// The slow switch has begun to work, and will finish at this time.
    ServiceDoneAt(u64),
    /// The handshake is over.
    Ready,
    /// The connection must be closed.
    Close,
}

/// The emulated switch's end.
#[derive(Debug)]
pub(crate) struct SwitchEnd {
    index: usize,
    /// The tenant to which the switch belongs. Such a switch must not get packets of another
    /// tenant.
    only_tenant: Option<usize>,
    version: Version,
    switch: Switch,
    table: Option<Table>,
    service: Option<Service>,
    introduced: bool,
}

impl SwitchEnd {
    /// Makes the end of the switch, and appends the HELLO to `out`.
    pub(crate) fn new(setup: &Setup, index: usize, out: &mut Vec<u8>) -> Self {
        hello(setup.version, out);
        let switch = Switch::new(setup, index);
        let only_tenant = match setup.topology {
            Topology::Shared { .. } => None,
            // A controller may send a packet from one switch out of a port of another switch.
            Topology::Controller { .. } | Topology::Interfaces { .. } => None,
            Topology::Direct | Topology::PerTenant { .. } => Some(index),
        };
        let service = Service::new(setup);
        let table = setup.switch.table.then(|| Table::new(setup, index));
        let version = setup.version;
        Self { index, only_tenant, version, switch, table, service, introduced: false }
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn is_introduced(&self) -> bool {
        self.introduced
    }

    pub(crate) fn is_slow(&self) -> bool {
        self.service.is_some()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.service.as_ref().is_some_and(Service::is_full)
    }

    /// Takes a frame off a slow switch's queue; see [`Service::pop`].
    pub(crate) fn serve(&mut self, now: u64, frame: &mut Vec<u8>) -> Option<Served> {
        self.service.as_mut()?.pop(now, frame)
    }

    /// Handles a received frame: processes the frame, or queues the frame during a run if the
    /// switch is slow.
    #[inline]
    pub(crate) fn frame(
        &mut self,
        frame: &[u8],
        out: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Effect {
        let version = self.version;
        match (&mut self.service, &context.run) {
            (Some(service), _)
                if service.answers_barriers_early()
                    && frame.get(1) == Some(&Types::of(version).barrier_request) =>
            {
                self.process(frame, out, context)
            }
            // Handshakes are not measured, so a message of a handshake takes no service time.
            (Some(service), Some(_)) => {
                service.push(frame, context.now).map_or(Effect::None, Effect::ServiceDoneAt)
            }
            _ => self.process(frame, out, context),
        }
    }

    pub(crate) fn process(
        &mut self,
        frame: &[u8],
        out: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Effect {
        match self.switch.handle(frame, out) {
            Meaning::Done => {}
            Meaning::WrongVersion(version) => {
                context.faults.count(Fault::WrongVersion { version });
                return Effect::Close;
            }
            Meaning::Introduced if !self.introduced => {
                self.introduced = true;
                return Effect::Ready;
            }
            Meaning::Introduced => {}
            Meaning::FlowMod => {
                if let Some(table) = &mut self.table {
                    table.modify(context.now, frame, out);
                }
                self.response_by_buffer(frame, context);
            }
            Meaning::PacketOut => self.packet_out(frame, context),
        }
        Effect::None
    }

    /// Whether the switch's table sends a packet from the first port out of the second port.
    pub(crate) fn forwards(&mut self, now: u64, ports: [u16; 2], packet: &[u8]) -> bool {
        self.table.as_mut().is_some_and(|table| table.forwards(now, ports, packet))
    }

    /// The controller's answer to a PACKET_IN, found by the repeated buffer id.
    fn response_by_buffer(&self, frame: &[u8], context: &mut Context<'_>) -> bool {
        let Some(id) = buffer_id(self.version, frame) else { return false };
        respond(id, context)
    }

    fn packet_out(&self, frame: &[u8], context: &mut Context<'_>) {
        if self.response_by_buffer(frame, context) {
            return;
        }
        let Some(data) = packet_out_data(self.version, frame) else {
            return context.faults.count(Fault::Truncated);
        };
        if let Some((tag, tenant, run)) = tagged(data, context.run.as_deref_mut(), context.faults) {
            let id = xid(usize::from(tag.stream), tag.sequence, false);
            if run.request(id).is_some() && respond(id, context) {
                return;
            }
            let Some(run) = context.run.as_deref_mut() else { return };
            match self.only_tenant {
                Some(only) if only != tenant => {
                    context.faults.count(Fault::Leak { of: tenant, to: only })
                }
                _ => run.arrive(
                    usize::from(tag.stream),
                    Kind::PacketOut,
                    tag.sequence,
                    tag.intended,
                    context.now,
                ),
            }
        }
    }
}

/// Counts the answer to the PACKET_IN with this number; false if no PACKET_IN with this number
/// waits.
fn respond(id: u32, context: &mut Context<'_>) -> bool {
    let now = context.now;
    let Some(run) = context.run.as_deref_mut() else { return false };
    let Some((stream, waiting)) = run.request(id) else { return false };
    if waiting.kind != Kind::Response as u8 {
        return false;
    }
    let (sequence, intended) = (waiting.sequence, waiting.intended);
    let first = !std::mem::replace(&mut waiting.answered, true);
    run.arrive(stream, Kind::Response, sequence, intended, now);
    if first {
        run.release(stream, now);
    }
    true
}

/// The tag at a packet's end, its tenant and the run, if the tag belongs to the current run.
#[inline]
fn tagged<'a>(
    data: &[u8],
    run: Option<&'a mut Run>,
    faults: &mut Faults,
) -> Option<(Tag, usize, &'a mut Run)> {
    let Some(tag) = Tag::read_end(data) else {
        faults.count(Fault::Untagged);
        return None;
    };
    // Late packets between runs are ignored, because these packets have been counted as unanswered.
    let run = run?;
    if tag.run != run.id {
        faults.count(Fault::Stale);
        return None;
    }
    let Some(tenant) = run.tenant_of(usize::from(tag.stream)) else {
        faults.count(Fault::Untagged);
        return None;
    };
    Some((tag, tenant, run))
}

/// The emulated tenant controller's end.
#[derive(Debug)]
pub(crate) struct ControllerEnd {
    tenant: usize,
    version: Version,
    types: Types,
    ready: bool,
    real_switch: bool,
}

impl ControllerEnd {
    /// Makes the end of the controller, and appends the HELLO to `out`.
    pub(crate) fn new(setup: &Setup, tenant: usize, out: &mut Vec<u8>) -> Self {
        hello(setup.version, out);
        let real_switch = matches!(setup.topology, Topology::Interfaces { .. });
        let types = Types::of(setup.version);
        Self { tenant, version: setup.version, types, ready: false, real_switch }
    }

    pub(crate) fn tenant(&self) -> usize {
        self.tenant
    }

    /// Handles a received frame.
    #[inline]
    pub(crate) fn frame(
        &mut self,
        frame: &[u8],
        out: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Effect {
        let (Some(&version), Some(&message_type)) = (frame.first(), frame.get(1)) else {
            return Effect::None;
        };
        if message_type == kind::HELLO {
            return self.hello(version, out, context);
        }
        if version != self.version.wire() {
            context.faults.count(Fault::WrongVersion { version });
            return Effect::None;
        }
        let xid = be32(frame, 4).unwrap_or(0);
        let body = frame.get(HEADER_LEN..).unwrap_or_default();
        match message_type {
            kind::PACKET_IN => self.packet_in(frame, out, context),
            kind::ECHO_REQUEST => message(out, self.version, kind::ECHO_REPLY, xid, body),
            kind::FEATURES_REPLY if xid == HANDSHAKE_XID => {
                let first = !self.ready;
                self.ready = true;
                if first && self.real_switch {
                    ask_for_misses(self.version, out);
                }
                return if first { Effect::Ready } else { Effect::None };
            }
            kind::ERROR => self.error(xid, body, context),
            t if self.is_reply(t) => self.reply(t, xid, body, context),
            kind::PORT_STATUS => {
                if let Some(run) = context.run.as_deref_mut() {
                    run.notice(self.tenant, context.now);
                }
            }
            // FLOW_REMOVED is a notification, not an answer.
            _ => {}
        }
        Effect::None
    }

    fn hello(&self, version: u8, out: &mut Vec<u8>, context: &mut Context<'_>) -> Effect {
        if version < self.version.wire() {
            context.faults.count(Fault::WrongVersion { version });
            return Effect::Close;
        }
        message(out, self.version, kind::FEATURES_REQUEST, HANDSHAKE_XID, &[]);
        Effect::None
    }

    #[inline]
    fn packet_in(&self, frame: &[u8], out: &mut Vec<u8>, context: &mut Context<'_>) {
        if let Some(id) = buffer_id(self.version, frame) {
            return self.respond(id, out);
        }
        let Some(data) = packet_in_data(self.version, frame) else {
            return context.faults.count(Fault::Truncated);
        };
        if let Some((tag, tenant, run)) = tagged(data, context.run.as_deref_mut(), context.faults) {
            let stream = usize::from(tag.stream);
            if tenant == self.tenant {
                if run.is_probed(stream) {
                    // The rule is not installed yet: the packet is a miss.
                    return;
                }
                run.arrive(stream, Kind::PacketIn, tag.sequence, tag.intended, context.now);
            } else {
                context.faults.count(Fault::Leak { of: tenant, to: self.tenant });
            }
        }
    }

    /// A buffered packet waits for an answer: a PACKET_OUT without actions drops the packet.
    fn respond(&self, buffer_id: u32, out: &mut Vec<u8>) {
        let mut body = [0; 16];
        put32(&mut body, 0, buffer_id);
        let length = match self.version {
            Version::V1_0 => 8,
            Version::V1_3 => 16,
        };
        message(out, self.version, kind::PACKET_OUT, 0, body.get(..length).unwrap_or_default());
    }

    fn is_reply(&self, message_type: u8) -> bool {
        message_type == kind::ECHO_REPLY
            || message_type == kind::FEATURES_REPLY
            || message_type == self.types.stats_reply
            || message_type == self.types.barrier_reply
            || (message_type == ROLE_REPLY && self.version == Version::V1_3)
    }

    fn reply(&self, message_type: u8, xid: u32, body: &[u8], context: &mut Context<'_>) {
        let Some(run) = context.run.as_deref_mut() else { return };
        let owner = stream_of(xid).and_then(|stream| run.tenant_of(stream));
        if let Some(of) = owner
            && of != self.tenant
        {
            return context.faults.count(Fault::ForeignXid { of, to: self.tenant });
        }
        let Some((stream, waiting)) = run.request(xid) else {
            let tenant = self.tenant;
            let late = run.has_forgotten(xid);
            let fault = if late { Fault::TooLate { tenant } } else { Fault::UnknownXid { tenant } };
            return context.faults.count(fault);
        };
        let Some(&asked) = Kind::ALL.get(usize::from(waiting.kind)) else { return };
        if self.answer_to(asked) != message_type {
            return context.faults.count(Fault::WrongReply { tenant: self.tenant });
        }
        if message_type == self.types.stats_reply
            && be16(body, 2).is_some_and(|flags| flags & 1 != 0)
        {
            // More parts follow: only the last part counts.
            return;
        }
        let (sequence, intended) = (waiting.sequence, waiting.intended);
        if asked == Kind::Echo && Tag::read_end(body).is_none_or(|tag| tag.sequence != sequence) {
            context.faults.count(Fault::EchoPayload { tenant: self.tenant });
        }
        if waiting.refused {
            // The FLOW_MOD before this BARRIER was refused, and has been counted as refused.
            return;
        }
        let first = !std::mem::replace(&mut waiting.answered, true);
        run.arrive(stream, asked, sequence, intended, context.now);
        if first {
            run.release(stream, context.now);
        }
    }

    fn answer_to(&self, asked: Kind) -> u8 {
        match asked {
            Kind::Echo => kind::ECHO_REPLY,
            Kind::Features => kind::FEATURES_REPLY,
            Kind::PortStats | Kind::FlowStats => self.types.stats_reply,
            Kind::Barrier | Kind::FlowMod | Kind::FlowChange => self.types.barrier_reply,
            Kind::Role => ROLE_REPLY,
            // These kinds have no answer.
            Kind::PacketIn
            | Kind::PacketOut
            | Kind::Response
            | Kind::Malformed
            | Kind::FlowModPacket => u8::MAX,
        }
    }

    fn error(&self, xid: u32, body: &[u8], context: &mut Context<'_>) {
        let (error_type, code) = (be16(body, 0).unwrap_or(0), be16(body, 2).unwrap_or(0));
        context.faults.count(Fault::Error { error_type, code });
        let now = context.now;
        let Some(run) = context.run.as_deref_mut() else { return };
        if let Some((stream, waiting)) = run.request(xid) {
            let (sequence, intended) = (waiting.sequence, waiting.intended);
            waiting.refused = true;
            let first = !std::mem::replace(&mut waiting.answered, true);
            run.refuse(stream, sequence, intended);
            if first {
                run.release(stream, now);
            }
        } else if let Some(stream) =
            stream_of(xid).filter(|&s| run.tenant_of(s) == Some(self.tenant))
        {
            run.refuse_unmatched(stream, now);
        }
    }
}
