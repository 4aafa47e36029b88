//! The rules and groups of the physical switches, and the changes that a switch makes by itself.

use super::{SWITCHES, Testbed};
use crate::support::world::flows_of;
use emulate::{Point, SessionId, SwitchIndex};
use openflow::Version;

/// A physical switch and a port of it.
pub type Place = (u64, u32);

impl Testbed {
    /// The entries on a physical switch, in words.
    pub fn entries(&self, switch: u64) -> Vec<String> {
        flows_of(self.physical.switch(SwitchIndex(switch as usize - 1)).unwrap())
    }

    /// The number of groups on a physical switch.
    pub fn groups(&self, switch: u64) -> usize {
        self.physical.switch(SwitchIndex(switch as usize - 1)).unwrap().group_count()
    }

    /// The matches of those entries on a physical switch that have counted packets.
    pub fn met(&self, switch: u64) -> Vec<String> {
        let switch = self.physical.switch(SwitchIndex(switch as usize - 1)).unwrap();
        let met = switch.flows().filter(|(_, flow)| flow.packets > 0);
        met.map(|(_, flow)| flow.match_.to_string()).collect()
    }

    /// The messages that have changed the tables of a physical switch, in order, without the messages that the switch
    /// has refused.
    pub fn tables_of(&self, switch: u64) -> Vec<Vec<u8>> {
        const EXPERIMENTER: u8 = 4;
        const FLOW_MOD: u8 = 14;
        const GROUP_MOD: u8 = 15;
        let kinds = match self.version(switch) {
            Version::V1_0 => &[EXPERIMENTER, FLOW_MOD][..],
            _ => &[EXPERIMENTER, FLOW_MOD, GROUP_MOD],
        };
        let sent = &self.sent[switch as usize - 1];
        sent.iter().filter(|message| kinds.contains(&message[1])).cloned().collect()
    }

    /// Removes a message that the switch has refused from the sent messages.
    pub(super) fn forget_refused(&mut self, at: usize, answer: &[u8]) {
        const ERROR: u8 = 1;
        let sent = &mut self.sent[at];
        let refused = sent.iter().rposition(|message| message[4..8] == answer[4..8]);
        if let (ERROR, Some(refused)) = (answer[1], refused) {
            sent.remove(refused);
        }
    }

    /// The physical port of a tenant's host.
    pub fn place(&self, tenant: usize, switch: u64, port: u32) -> Place {
        place(self.host_points[self.host(tenant, switch, port)])
    }

    /// Whether a host is at this physical port.
    pub fn has_host(&self, at: Place) -> bool {
        self.host_points.iter().any(|point| place(*point) == at)
    }

    /// Sends a frame into a physical port. Gives the physical ports of the hosts that receive the frame, and the frame
    /// at each. No controller gets a message. `None` if the frame is in an endless loop.
    pub fn forward(
        &mut self,
        (switch, port): Place,
        frame: &[u8],
    ) -> Option<Vec<(Place, Vec<u8>)>> {
        let point = Point { switch: SwitchIndex(switch as usize - 1), port };
        let journey = self.physical.inject_at(self.now, point, frame);
        for at in 0..SWITCHES as usize {
            self.physical.take_output(SwitchIndex(at), SessionId::MAIN);
        }
        let at = |host: emulate::HostIndex| place(self.host_points[host.0]);
        let delivered = journey.delivered.into_iter().map(|(host, frame)| (at(host), frame));
        (!journey.endless).then(|| delivered.collect())
    }
}

pub(super) fn place(point: Point) -> Place {
    (point.switch.0 as u64 + 1, point.port)
}
