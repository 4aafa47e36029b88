//! A big switch that forwards, and an ordinary switch of the same tenant, to measure time.
//!
//! ```text
//!   controller ── front ── BigSwitch ─┬─ core of switch 1: port 1   core of switch 3: port 1 ── controller
//!                                     └─ core of switch 2: port 2                     port 2, a link to port 3 of
//!                                                                                 the big switch
//! ```

use super::packets::packet_in;
use super::places::{Plan, know_versions, maps};
use super::warm::WarmCore;
use super::world::LLDP_KEY;
use super::{packet, policy, request};
use hypervisor::big_switch::{self, BigSwitch};
use hypervisor::{ControllerIndex, Instant, Outbox, Settings, Switch, TenantId};
use openflow::{NO_BUFFER, Version, frame};
use std::sync::Arc;

const RED: TenantId = TenantId(1);
const FIRST_TAG: u16 = 2000;

/// A big switch with two members and its front. Messages between members, big switch and front are copied in memory;
/// the driver of the daemon sends these messages through sockets.
pub struct WarmBig {
    members: [WarmCore; 2],
    joint: BigSwitch,
    front: Option<Switch>,
    controller: Option<ControllerIndex>,
    now: u64,
    bytes: Vec<u8>,
    /// The number of messages that the controller has received.
    pub north: u64,
}

impl WarmBig {
    /// The big switch and the ordinary switch of one tenant.
    pub fn new(version: Version) -> (WarmBig, WarmCore) {
        let plan = Plan {
            edges: vec![(1, 1, 1), (2, 2, 2), (3, 1, 1)],
            links: vec![[(3, 2), (2, 3)]],
            big: vec![1, 2],
            ..Plan::default()
        };
        let (mut maps, last) = maps(&[plan], FIRST_TAG);
        know_versions(&mut maps, &[version; 3]);
        let mut policy = policy("t1x: ip\n");
        policy.tenants.iter_mut().for_each(|tenant| tenant.flowspace.clear());
        policy.maps = maps.into_iter().map(|(dpid, map)| (dpid, Arc::new(map))).collect();
        policy.tags = Some(FIRST_TAG..=last);
        let policy = Arc::new(policy);
        let core = |dpid| WarmCore::of(version, dpid, Arc::clone(&policy));
        let (mut members, mut ordinary) = ([core(1), core(2)], core(3));
        ordinary.connect(RED, false);
        let (key, plan) = big_switch::plans(&policy).pop_first().unwrap();
        let mut joint = BigSwitch::new(key, plan, version);
        for (dpid, member) in (1..).zip(&mut members) {
            member.connect(RED, true);
            member.down(0, &request(version, 7, "features"));
            joint.member_connected(dpid, &member.said.replace(Vec::new()).unwrap(), Instant(2_000));
        }
        let (front, controller, bytes) = (None, None, Vec::new());
        let mut big =
            WarmBig { members, joint, front, controller, now: 3_000_000, bytes, north: 0 };
        while big.controller.is_none() {
            big.pass();
            if let Some(big_switch::Event::Start(features)) = big.joint.poll_event() {
                let (now, stored) = (Instant(big.now), Vec::new());
                let (policy, settings) = (Arc::clone(&policy), Settings::default());
                let front = Switch::new(&features, policy, settings, LLDP_KEY, stored, true, now);
                big.front = Some(front.unwrap());
            }
            if let Some(front) = big.front.as_mut().filter(|front| front.is_ready()) {
                big.controller = front.controller_connected(RED);
            }
        }
        big.finish();
        (big, ordinary)
    }

    /// A PACKET_IN that the first member or the ordinary switch sends for a packet at port 1, and a PACKET_OUT by port
    /// 2.
    pub fn messages(version: Version) -> (Vec<u8>, Vec<u8>) {
        let name = "10.1.0.1>10.9.0.1";
        let out = request(version, 7, &format!("out in_port=1 actions=output:2 data={name}"));
        (packet_in(version, NO_BUFFER, (1, Some(1 << 48 | 1 << 32)), &packet(name)), out)
    }

    /// The first member's switch sends a message.
    pub fn up(&mut self, message: &[u8]) {
        self.members[0].up(message);
        self.carry();
    }

    /// The controller sends a message.
    pub fn down(&mut self, message: &[u8]) {
        self.now += 1_000;
        let (front, now) = (self.front.as_mut().unwrap(), Instant(self.now));
        front.handle_controller_message(self.controller.unwrap(), message, now);
        self.carry_front();
        self.carry();
    }

    /// Returns when all requests of the controller are done.
    pub fn finish(&mut self) {
        while self.front.as_ref().unwrap().tenants().any(|it| it.held > 0) {
            self.pass();
        }
    }

    /// Lets a millisecond pass.
    fn pass(&mut self) {
        self.now += 1_000_000;
        self.carry_front();
        for member in &mut self.members {
            member.now += 1_000_000;
            member.carry();
        }
        self.carry();
    }

    /// The number of messages to the members' switches.
    pub fn south(&self) -> u64 {
        self.members.iter().map(|member| member.south).sum()
    }

    /// Carries messages until none is on its way.
    fn carry(&mut self) {
        while self.carry_members() | self.carry_to_front() {}
    }

    fn carry_members(&mut self) -> bool {
        let (mut moved, now) = (false, Instant(self.now));
        for (dpid, member) in (1..).zip(&mut self.members) {
            if let Some(outbox) = self.joint.member_outbox(dpid)
                && take(outbox, &mut self.bytes)
            {
                moved = true;
                frames(&self.bytes, |message| member.say(0, message));
                member.carry();
            }
            if let Some(said) = member.said.as_mut().filter(|said| !said.is_empty()) {
                moved = true;
                frames(said, |message| self.joint.handle_member(dpid, message, now));
                said.clear();
            }
        }
        moved
    }

    fn carry_to_front(&mut self) -> bool {
        let now = Instant(self.now);
        let Some(front) = &mut self.front else { return false };
        let moved = take(self.joint.front_outbox(), &mut self.bytes);
        if moved {
            frames(&self.bytes, |message| front.handle_switch_message(message, now));
            self.carry_front();
        }
        moved || self.carry_from_front()
    }

    fn carry_from_front(&mut self) -> bool {
        let now = Instant(self.now);
        let Some(front) = &mut self.front else { return false };
        let moved = take(front.switch_outbox(), &mut self.bytes);
        frames(&self.bytes, |message| self.joint.handle_front(message, now));
        self.bytes.clear();
        moved
    }

    /// Serves the front after a message: gives turns, reads the messages for the controller, and handles time-outs.
    fn carry_front(&mut self) {
        let Some(front) = &mut self.front else { return };
        loop {
            self.now += 1_000;
            let is_awaited = front.next_turn(Instant(self.now));
            while let Some(controller) = front.poll_controller() {
                let outbox = front.controller_outbox(controller).unwrap();
                self.north += u64::from(!outbox.is_empty());
                let waiting = outbox.len();
                outbox.consume(waiting);
                front.written(controller, false);
            }
            while front.poll_event().is_some() {}
            if front.poll_timeout().is_some_and(|at| at.0 <= self.now) {
                front.handle_timeout(Instant(self.now));
            }
            while front.poll_resumed().is_some() {}
            if !is_awaited {
                break;
            }
        }
    }
}

/// Takes the messages in an outbox. Gives whether there were any.
fn take(outbox: &mut Outbox, bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
    bytes.extend_from_slice(outbox.as_slice());
    outbox.consume(bytes.len());
    !bytes.is_empty()
}

fn frames(mut rest: &[u8], mut each: impl FnMut(&[u8])) {
    while let Some(length) = frame::next(rest).unwrap() {
        each(&rest[..length]);
        rest = &rest[length..];
    }
}
