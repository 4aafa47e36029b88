//! What the switch is to tell of unasked (1.3, SET_ASYNC): all that any controller wants.
//!
//! Whom it concerns, and where packets came in, the hypervisor has to know in any case; so of ports, of entries that end, and of
//! packets that entries send here it is always told. Left is what expires on its way (INVALID_TTL), which a switch tells only if it is
//! asked to. Each controller is given what it wants, whatever others do.

use super::Switch;
use crate::south::pending::Awaits;
use crate::tenant::AsyncConfig;
use crate::time::Instant;
use alloc::vec::Vec;
use openflow::Version;
use openflow::v13::{AsyncConfig as Masks, Message, PacketInReason};

/// What the switch was asked for, beside what is always wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// To tell of packets whose time to live is over.
    invalid_ttl: bool,
    /// Whether a barrier behind that is on its way. Until then nothing else is asked for: however often controllers change their minds,
    /// the switch hears of it once in its own time.
    is_open: bool,
    /// Whether somebody may want something else since.
    pub maybe_others: bool,
}

impl Switch {
    /// Some controller may want something else from now on.
    pub(crate) fn want_others(&mut self, now: Instant) {
        self.asynchronous.maybe_others = true;
        self.settle_asynchronous(now);
    }

    /// A barrier of the hypervisor's own is back.
    pub(super) fn asked_before(&mut self) {
        self.asynchronous.is_open = false;
    }

    /// Asks the switch for what is wanted now, if that is something else.
    pub(super) fn settle_asynchronous(&mut self, now: Instant) {
        if !self.asynchronous.maybe_others
            || self.asynchronous.is_open
            || self.version == Version::V1_0
        {
            return;
        }
        self.asynchronous.maybe_others = false;
        let invalid_ttl = self.is_wanted(PacketInReason::INVALID_TTL);
        if invalid_ttl == self.asynchronous.invalid_ttl {
            return;
        }
        let AsyncConfig {
            packet_in: [always, _],
            port_status: [ports, _],
            flow_removed: [removed, _],
        } = AsyncConfig::default();
        let packets = always | u32::from(invalid_ttl) << PacketInReason::INVALID_TTL.0;
        let masks = Masks {
            packet_in_mask: [packets; 2],
            port_status_mask: [ports; 2],
            flow_removed_mask: [removed; 2],
        };
        let mut message = Vec::new();
        if Message::SetAsync(masks).write(0, &mut message).is_ok() {
            self.send_own(Awaits::Nothing, &message, now);
            self.session.send_barrier(now);
            self.asynchronous = Asked { invalid_ttl, is_open: true, maybe_others: false };
        }
    }

    fn is_wanted(&self, reason: PacketInReason) -> bool {
        let indices = self.tenants.iter().flat_map(|tenant| &tenant.controllers);
        let mut controllers = indices.filter_map(|index| self.controllers.get(*index));
        controllers.any(|it| AsyncConfig::wants(it.async_config.packet_in, it.role, reason.0))
    }
}
