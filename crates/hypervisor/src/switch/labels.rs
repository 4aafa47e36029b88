//! Link labels: the free bandwidth of the link behind a port, for one tenant, in the form that the operator has chosen
//! for the tenant.
//!
//! Nothing is computed here. [`Switch::report_label`] brings a label. The label stays with the port until the next
//! label. Tenants get a label at once, and again in each description of the port: FEATURES_REPLY and PORT_STATUS (1.0),
//! PORT_DESC and PORT_STATUS (1.3). Tenants without a form, or with a form of another version, get the switch's own
//! descriptions.

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
    /// The free bandwidth behind a port has changed for a tenant. No effect if the tenant does not see the port.
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
                self.report_port(tenant, None, &wire, PORT_MODIFY);
            }
            Some(LabelForm::Experimenter) => {
                // A controller that does not want PORT_STATUS gets no labels.
                let kind = Asynchronous::Label;
                self.notify(tenant, kind, |out| write_label(version, port, label, out));
            }
            _ => {}
        }
    }

    /// A port's description for a tenant: with the label, if the tenant has this form of labels.
    pub(crate) fn with_label(&self, tenant: TenantIndex, port: u32, wire: Vec<u8>) -> Vec<u8> {
        let state = &self.tenants[tenant];
        if state.terms.labels != Some(self.semantics().label_form) {
            return wire;
        }
        messages::labelled(self.wire, wire, state.ports.label(port))
    }

    /// A controller has connected: if its tenant gets labels in messages of their own, the controller gets all present
    /// labels.
    pub(crate) fn greet_with_labels(&mut self, controller: ControllerIndex, tenant: TenantIndex) {
        let state = &self.tenants[tenant];
        if state.terms.labels != Some(LabelForm::Experimenter) {
            return;
        }
        let mut messages = Vec::new();
        for (port, label) in state.ports.labels() {
            if self.map.ownership().sees_port(tenant, port) {
                // A label is a few bytes long, so there is room.
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
