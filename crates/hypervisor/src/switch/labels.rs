//! Link labels: what is left of the link behind a port, as one tenant may know it, told in the form that it chose.
//!
//! Nothing is computed here. A label comes by [`Switch::report_label`] and stays with the port until another comes; it is
//! told at once, and again in whatever describes the port: FEATURES_REPLY and PORT_STATUS (1.0), PORT_DESC and
//! PORT_STATUS (1.3). Tenants that asked for no form, or for one of another version, see the switch's own frames.

use super::Switch;
use crate::ids::{ControllerIndex, TenantIndex};
use crate::label::{EXPERIMENTER, EXPERIMENTER_LABEL, Label};
use crate::messages;
use crate::north::controllers::Asynchronous;
use crate::policy::{LabelForm, TenantId};
use crate::port_desc::PORT_MODIFY;
use crate::semantics::Semantics;
use alloc::vec::Vec;
use openflow::{Version, frame};

impl Switch {
    /// What is left of the link behind a port has changed for a tenant. Ports that the tenant does not see are not told.
    pub fn report_label(&mut self, tenant: TenantId, port: u32, label: Label) {
        let Some(tenant) = self.tenant_of(tenant) else { return };
        let state = &mut self.tenants[tenant];
        if state.network.is_some() {
            return;
        }
        state.ports.set_label(port, label);
        let form = state.terms.labels;
        let Semantics { version, label_form, .. } = *self.semantics();
        if !self.map.ownership().sees_port(tenant, port) {
            return;
        }
        let Some(known) = self.datapath.ports().get(&port) else { return };
        match form {
            Some(form) if form == label_form => {
                let wire = self.with_label(tenant, port, known.description.clone());
                self.report_port(tenant, &wire, PORT_MODIFY);
            }
            Some(LabelForm::Experimenter) => {
                // A controller that wants no news of ports wants none of labels.
                let kind = Asynchronous::Label;
                self.notify(tenant, kind, |out| write_label(version, port, label, out));
            }
            _ => {}
        }
    }

    /// A port's description as a tenant is to see it: with its label in it, if that is the tenant's form.
    pub(crate) fn with_label(&self, tenant: TenantIndex, port: u32, wire: Vec<u8>) -> Vec<u8> {
        let state = &self.tenants[tenant];
        if state.terms.labels != Some(self.semantics().label_form) {
            return wire;
        }
        messages::labelled(self.wire, wire, state.ports.label(port))
    }

    /// A controller has connected: one that is told by messages of their own is told what there is.
    pub(crate) fn greet_with_labels(&mut self, controller: ControllerIndex, tenant: TenantIndex) {
        let state = &self.tenants[tenant];
        if state.terms.labels != Some(LabelForm::Experimenter) {
            return;
        }
        let mut messages = Vec::new();
        for (port, label) in state.ports.labels() {
            if self.map.ownership().sees_port(tenant, port) {
                // It fits: a label is a few bytes.
                let _ = write_label(self.version(), port, label, &mut messages);
            }
        }
        self.answer(controller, &messages);
    }
}

/// ```text
///   header (type 4: VENDOR or EXPERIMENTER)
///   u32 experimenter 0x00025745   u32 type 1
///   u32 port   u32 0   u64 what is left, bit/s   u64 capacity, bit/s
/// ```
fn write_label(
    version: Version,
    port: u32,
    label: Label,
    out: &mut Vec<u8>,
) -> Result<(), openflow::TooLong> {
    const TYPE: u8 = 4;
    frame::write(version, TYPE, 0, out, |out| {
        for word in [EXPERIMENTER, EXPERIMENTER_LABEL, port, 0] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&label.left.to_be_bytes());
        out.extend_from_slice(&label.capacity.to_be_bytes());
    })
}
