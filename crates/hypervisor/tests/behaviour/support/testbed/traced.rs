//! A comparison of the trace of a frame with the real path of the frame.

use super::tables::place;
use super::{Seen, Testbed};
use emulate::HostIndex;
use hypervisor::trace::{Packet, Passage, Step, To};
use std::collections::BTreeSet;

/// Wires between the physical switches: switch and port at both ends.
const WIRES: [[(u64, u32); 2]; 3] = [[(1, 5), (2, 5)], [(2, 6), (3, 5)], [(3, 6), (1, 6)]];

/// The ports of hosts that a frame reaches by its trace: physical switch, port and bytes.
#[derive(Default)]
struct Traced {
    certain: Vec<(u64, u32, Vec<u8>)>,
    possible: Vec<(u64, u32, Vec<u8>)>,
    /// Whether the trace is open: a packet returns to an earlier place, or the trace is uncertain.
    is_open: bool,
}

impl Testbed {
    /// A host of a tenant sends a frame. The frame reaches the hosts that the trace of the frame names.
    pub fn send_as_traced(&mut self, tenant: usize, switch: u64, port: u32, frame: &[u8]) -> Seen {
        let host = self.host(tenant, switch, port);
        let point = self.host_points[host];
        let traced = self.trace(switch, point.port, frame);
        // A frame from the tenant's virtual port enters the physical switch unchanged, by the host's physical port.
        let head = self.head(tenant, switch);
        let member = &self.cores[switch as usize - 1];
        let id = hypervisor::TenantId(tenant as u16 + 1);
        let entered = member.entrance(id, super::datapath(tenant, head), port, frame);
        assert_eq!(entered, Ok(Packet { in_port: point.port, frame: frame.to_vec() }));

        self.seen = Seen::default();
        let journey = self.physical.inject(self.now, HostIndex(host), frame);
        let at_host = |(host, bytes): &(HostIndex, Vec<u8>)| {
            let (switch, port) = place(self.host_points[host.0]);
            (switch, port, bytes.clone())
        };
        let mut delivered: Vec<_> = journey.delivered.iter().map(at_host).collect();
        delivered.sort();
        if !journey.endless && !traced.is_open {
            let mut certain = traced.certain;
            certain.sort();
            if traced.possible.is_empty() {
                assert_eq!(certain, delivered, "from {port} at {switch}");
            }
            let all: Vec<_> = certain.iter().chain(&traced.possible).collect();
            assert!(delivered.iter().all(|it| all.contains(&it)), "{delivered:?} but {all:?}");
        }
        self.take(journey);
        self.pump();
        std::mem::take(&mut self.seen).sorted()
    }

    fn trace(&self, switch: u64, port: u32, frame: &[u8]) -> Traced {
        let mut traced = Traced::default();
        let mut due = vec![(switch, Packet { in_port: port, frame: frame.to_vec() }, false)];
        let mut seen = BTreeSet::new();
        while let Some((switch, packet, is_doubtful)) = due.pop() {
            let passage = self.cores[switch as usize - 1].passage(&packet);
            let is_new = seen.insert((switch, packet));
            traced.is_open |= !is_new || is_uncertain(&passage);
            if traced.is_open {
                break;
            }
            for output in passage.outputs {
                let is_doubtful = is_doubtful || output.if_.is_some();
                let To::Port { number, is_up, .. } = output.to else { continue };
                if !is_up {
                    continue;
                }
                let here = (switch, number);
                let mut ends = WIRES.iter().flat_map(|&[a, b]| [(a, b), (b, a)]);
                if let Some((_, far)) = ends.find(|(near, _)| *near == here) {
                    due.push((far.0, Packet { in_port: far.1, frame: output.frame }, is_doubtful));
                } else if self.has_host(here) {
                    let to = if is_doubtful { &mut traced.possible } else { &mut traced.certain };
                    to.push((switch, number, output.frame));
                }
            }
        }
        traced
    }
}

fn is_uncertain(passage: &Passage) -> bool {
    let is_open = |step: &Step| match step {
        Step::Rule { is_ambiguous, .. } => *is_ambiguous,
        Step::Meter(_) | Step::Unknown => true,
        _ => false,
    };
    passage.is_cut || passage.steps.iter().any(is_open)
}
