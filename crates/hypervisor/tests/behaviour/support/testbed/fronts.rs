//! Members of big switches are lost and connect again on the testbed, and so do connections to their fronts, also
//! during changes.

use super::Testbed;
use crate::support::request;
use emulate::Fault;
use hypervisor::{Instant, TenantId};
use openflow::Version;

impl Testbed {
    /// A member of a big switch is lost.
    pub fn lose(&mut self, tenant: usize, head: u64, member: u64) {
        self.leave_seat(tenant, head, member);
        self.pump();
    }

    /// A lost member of a big switch connects again.
    pub fn find(&mut self, tenant: usize, head: u64, member: u64) {
        self.take_seat(tenant, head, member);
        self.pump();
    }

    pub(super) fn leave_seat(&mut self, tenant: usize, head: u64, member: u64) {
        let now = Instant(self.now);
        let big = self.big(tenant, head).unwrap();
        big.joint.member_disconnected(member, now);
        let seat = big.seats.remove(&member).unwrap();
        big.connected.retain(|dpid| *dpid != member);
        self.cores[member as usize - 1].controller_disconnected(seat);
    }

    pub(super) fn take_seat(&mut self, tenant: usize, head: u64, member: u64) {
        let (now, version) = (Instant(self.now), self.version(member));
        let core = &mut self.cores[member as usize - 1];
        let seat = core.joint_connected(TenantId(tenant as u16 + 1)).unwrap();
        core.handle_controller_message(seat, &request(version, 7, "features"), now);
        self.big(tenant, head).unwrap().seats.insert(member, seat);
    }

    /// The connection between a big switch and its front is lost, and made again.
    pub fn restart_front(&mut self, tenant: usize, head: u64) {
        self.lose_front(tenant, head);
        self.wait(4);
        self.find_front(tenant, head);
    }

    /// Restarts the front after these requests. A member answers no barrier for this number of seconds.
    pub fn restart_front_past(
        &mut self,
        tenant: usize,
        head: u64,
        silent: (u64, u64),
        say: &[&str],
    ) {
        let (member, seconds) = silent;
        let barrier = if self.version(member) == Version::V1_0 { 18 } else { 20 };
        self.plant(member, vec![Fault::NeverAnswers { message_type: barrier }]);
        self.pass_on(tenant, head, say);
        self.lose_front(tenant, head);
        self.wait(seconds);
        self.plant(member, Vec::new());
        self.wait(20);
        self.find_front(tenant, head);
    }

    fn lose_front(&mut self, tenant: usize, head: u64) {
        let now = Instant(self.now);
        let big = self.big(tenant, head).unwrap();
        big.front = None;
        big.joint.front_closed(now);
    }

    fn find_front(&mut self, tenant: usize, head: u64) {
        let id = TenantId(tenant as u16 + 1);
        let seat = self.serving(tenant, head).controller_connected(id).expect("not served");
        self.seats.insert((tenant, head), seat);
        self.pump();
    }

    /// Restarts the front when these requests have reached the connections of the members.
    pub fn restart_front_behind(&mut self, tenant: usize, head: u64, all: &[&str]) {
        self.pass_on(tenant, head, all);
        self.restart_front(tenant, head);
    }

    /// A controller sends requests. The requests reach the connections of the members before a quarter of a second
    /// passes.
    pub fn say_and_wait(&mut self, tenant: usize, head: u64, all: &[&str]) {
        self.pass_on(tenant, head, all);
        self.pass_a_quarter();
    }

    /// A controller sends requests, and a quarter of a second passes. The big switch handles its timeouts before these
    /// requests.
    pub fn wait_and_say(&mut self, tenant: usize, head: u64, all: &[&str]) {
        all.iter().for_each(|words| self.hand(tenant, head, words));
        self.pass_a_quarter();
    }

    /// The number of errors that the front of a big switch has received since it started.
    pub fn errors_to_front(&mut self, tenant: usize, head: u64) -> u64 {
        const ERROR: usize = 1;
        let front = self.big(tenant, head).and_then(|big| big.front.as_ref());
        front.expect("no front").counters().from_switch[ERROR]
    }

    fn pass_on(&mut self, tenant: usize, head: u64, all: &[&str]) {
        all.iter().for_each(|words| self.hand(tenant, head, words));
        self.pump_bigs();
    }
}
