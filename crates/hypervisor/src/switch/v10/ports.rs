//! PORT_STATUS and PORT_MOD.

use crate::port_desc::PortChange;
use crate::switch::{Request, Switch};
use crate::time::Instant;
use crate::v10::ports::known;
use crate::v10::unreadable;
use compile::{Reason, Refused};
use flowspace::port_from_v10;
use openflow::ErrorCode;
use openflow::error::v10 as code;
use openflow::v10::{PortMod, PortReason, PortStatus};

impl Switch {
    /// A port has come, gone or changed: the tenants that see it hear of it, and FLOOD is expanded again.
    pub(crate) fn port_status_v10(&mut self, body: &[u8], now: Instant) -> Result<(), ErrorCode> {
        let status = PortStatus::parse(body).map_err(unreadable)?;
        let (number, port) = known(&status.desc);
        let wire = port.description.clone();
        self.port_changed(number, (status.reason != PortReason::DELETE).then_some(port), now);
        self.report_slices(number, &wire, status.reason.0, None);
        Ok(())
    }

    /// A port of a network is its tenant's. One of a slice belongs to a tenant as a whole or is not its to configure.
    pub(crate) fn port_mod_v10(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let port_mod = PortMod::parse(request.body()).map_err(unreadable)?;
        let number = port_from_v10(port_mod.port_no.0);
        let change = PortChange {
            number,
            hw_addr: port_mod.hw_addr,
            config: port_mod.config,
            mask: port_mod.mask,
            advertises: port_mod.advertise.0 != 0,
        };
        if self.tenants[request.tenant.0 as usize].network.is_some() {
            return self.configure_port(request, &change);
        }
        if !self.map.ownership().sees_port(request.tenant, number)
            || !self.datapath.ports().contains_key(&number)
        {
            return Err(code::PORT_MOD_FAILED_BAD_PORT.into());
        }
        if !self.map.ownership().owns_port_whole(request.tenant, number) {
            return Err(Reason::PortShared.with(code::BAD_REQUEST_EPERM));
        }
        self.forward_port_mod(request, &change);
        Ok(())
    }
}
