//! The rules and groups of the physical switches, and the changes that a switch makes by itself.

use super::{SWITCHES, Testbed};
use emulate::{Point, SessionId, SwitchIndex};
use openflow::Version;

/// A physical switch and a port of it.
pub type Place = (u64, u32);

impl Testbed {
    /// Entries on a physical switch, in words.
    pub fn entries(&self, switch: u64) -> Vec<String> {
        let switch = self.physical.switch(SwitchIndex(switch as usize - 1)).unwrap();
        let mut entries: Vec<String> = switch
            .flows()
            .map(|(table, flow)| format!("{table} prio={} {}", flow.priority, flow.match_))
            .collect();
        entries.sort();
        entries
    }

    /// How many groups a physical switch has.
    pub fn groups(&self, switch: u64) -> usize {
        self.physical.switch(SwitchIndex(switch as usize - 1)).unwrap().group_count()
    }

    /// Those of the entries that packets have met.
    pub fn met(&self, switch: u64) -> Vec<String> {
        let switch = self.physical.switch(SwitchIndex(switch as usize - 1)).unwrap();
        let met = switch.flows().filter(|(_, flow)| flow.packets > 0);
        met.map(|(_, flow)| flow.match_.to_string()).collect()
    }

    /// The messages that have made a physical switch's tables what they are, in order; those that it refused are left out.
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

    /// What was refused is not held.
    pub(super) fn forget_refused(&mut self, at: usize, answer: &[u8]) {
        const ERROR: u8 = 1;
        let sent = &mut self.sent[at];
        let refused = sent.iter().rposition(|message| message[4..8] == answer[4..8]);
        if let (ERROR, Some(refused)) = (answer[1], refused) {
            sent.remove(refused);
        }
    }

    /// The physical port at which a host of a tenant's is.
    pub fn place(&self, tenant: usize, switch: u64, port: u32) -> Place {
        place(self.host_points[self.host(tenant, switch, port)])
    }

    /// Whether a host is at this physical port.
    pub fn has_host(&self, at: Place) -> bool {
        self.host_points.iter().any(|point| place(*point) == at)
    }

    /// What leaves the physical switches to hosts if a frame comes in there and nobody answers for controllers: where, and the
    /// frame. `None` if it went round and round.
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

fn place(point: Point) -> Place {
    (point.switch.0 as u64 + 1, point.port)
}
