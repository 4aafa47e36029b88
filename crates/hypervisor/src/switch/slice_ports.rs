//! PORT_MOD on a port of a slice that has the whole port: the switch carries out the request.
//!
//! Before OpenFlow 1.5, Open vSwitch sends no PORT_STATUS to the controller that has sent the PORT_MOD; for the switch,
//! this controller is Weir. So when a barrier has shown that a change is done, Weir itself notes the new configuration:
//! rules for FLOOD leave out ports with NO_FLOOD (1.0), and all other controllers get a PORT_STATUS.

use super::logged::Configures;
use super::{Request, Switch};
use crate::ids::{ControllerIndex, TenantIndex};
use crate::messages;
use crate::port_desc::{PORT_MODIFY, PortChange};
use crate::time::Instant;
use alloc::vec::Vec;

impl Switch {
    /// Sends a PORT_MOD on to the switch.
    pub(crate) fn forward_port_mod(&mut self, request: &Request<'_>, change: &PortChange) {
        let &PortChange { number, config, mask, .. } = change;
        let doer = request.controller;
        let cause = self.begin(request);
        if let Some(made) = self.change_by(&cause) {
            made.configures = Some(Configures { doer, number, config, mask });
        }
        self.submit_change(&cause, request.frame);
    }

    /// Whether the result of a PORT_MOD of the tenant is not known yet. Descriptions of ports wait for it.
    pub(crate) fn configures_ports(&self, tenant: TenantIndex) -> bool {
        self.changes_of(tenant).any(|change| change.configures.is_some())
    }

    /// The switch has carried out a PORT_MOD, and may have reported the port.
    pub(super) fn port_configured(&mut self, tenant: TenantIndex, done: &Configures, now: Instant) {
        let bits = |before: u32| before & !done.mask.0 | done.config.0 & done.mask.0;
        let Some(known) = self.datapath.ports().get(&done.number) else { return };
        let Some(port) = messages::configured(self.wire, known, bits) else { return };
        if port.description == known.description {
            return;
        }
        let wire = port.description.clone();
        self.port_changed(done.number, Some(port), now);
        self.report_slices(done.number, &wire, PORT_MODIFY, Some((tenant, done.doer)));
    }

    /// Sends a PORT_STATUS to the tenants with slices that see a port, except to the controller `doer`.
    pub(crate) fn report_slices(
        &mut self,
        number: u32,
        wire: &[u8],
        reason: u8,
        doer: Option<(TenantIndex, ControllerIndex)>,
    ) {
        for tenant in self.tenants.indices() {
            if self.tenants[tenant].network.is_none()
                && self.map.ownership().sees_port(tenant, number)
            {
                let wire: Vec<u8> = self.with_label(tenant, number, wire.to_vec());
                let doer = doer.filter(|(whose, _)| *whose == tenant).map(|(_, doer)| doer);
                self.report_port(tenant, doer, &wire, reason);
            }
        }
    }
}
