//! Members of big switches that answer in the order that the test chooses.

use super::Testbed;
use crate::support::request;
use emulate::SwitchIndex;
use hypervisor::Instant;
use openflow::Version;

impl Testbed {
    /// A controller's message reaches the connections of a big switch's members.
    pub fn hand_to_members(&mut self, tenant: usize, head: u64, xid: u32, words: &str) {
        let message = request(self.version(head), xid, words);
        let (seat, now) = (self.seats[&(tenant, head)], Instant(self.now));
        self.serving(tenant, head).handle_controller_message(seat, &message, now);
        self.pump_bigs();
    }

    /// A member handles the messages at its connection, and its replies reach the connections of the other members. The
    /// other members do nothing.
    pub fn answer_alone(&mut self, member: u64) {
        for _ in 0..4 {
            self.pump_one(member as usize - 1);
            self.pump_bigs();
        }
    }

    /// All switches do their remaining work. Gives the messages that controllers have received since the last call.
    pub fn answer_all(&mut self) -> Vec<String> {
        self.pump();
        self.take_received().into_iter().map(|(_, _, words)| words).collect()
    }

    /// A lost member connects again and gets the entries that it should have. The other members do nothing.
    pub fn find_alone(&mut self, tenant: usize, head: u64, member: u64) {
        self.take_seat(tenant, head, member);
        self.answer_alone(member);
    }

    /// A lost member connects again and gets the entries that it should have. The big switch sends nothing in reply to
    /// the member.
    pub fn find_and_fill(&mut self, tenant: usize, head: u64, member: u64) {
        self.take_seat(tenant, head, member);
        let at = member as usize - 1;
        self.pump_one(at);
        self.pump_bigs();
        self.pump_one(at);
        self.pump_one(at);
    }

    /// A member is lost and connects again before any other event. The member has no more faults.
    pub fn lose_for_a_moment(&mut self, tenant: usize, head: u64, member: u64) {
        self.leave_seat(tenant, head, member);
        self.plant(member, Vec::new());
        self.take_seat(tenant, head, member);
    }

    /// Another program deletes all entries of a physical switch except these.
    pub fn wipe(&mut self, switch: u64, kept: &[String]) {
        let (at, version) = (SwitchIndex(switch as usize - 1), self.version(switch));
        let mut deletes = Vec::new();
        for (table, flow) in self.physical.switch(at).unwrap().flows() {
            let (match_, priority) = (&flow.match_, flow.priority);
            if !kept.contains(&format!("{table} prio={priority} {match_}")) {
                deletes.push(match version {
                    Version::V1_0 => format!("flow delete_strict match={match_} prio={priority}"),
                    _ => format!(
                        "flow delete table={table} cookie={:#x} cookie_mask={:#x}",
                        flow.cookie,
                        u64::MAX
                    ),
                });
            }
        }
        for words in deletes {
            self.physical.handle_message(self.now, at, &request(version, 99, &words));
        }
    }
}
