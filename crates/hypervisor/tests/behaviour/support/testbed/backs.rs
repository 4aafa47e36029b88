//! A list of the rules that can send a packet back although they do not match on the ingress port, on switches of
//! OpenFlow 1.3.

use super::Testbed;
use crate::support::{describe, frames, request};
use emulate::{SessionId, SwitchIndex};
use openflow::List;
use openflow::Version;
use openflow::v13::{Action, Instruction, MultipartReply, MultipartReplyBody, OxmField, PortNo};
use std::collections::{BTreeMap, BTreeSet};

impl Testbed {
    /// The entries of a physical switch that output to IN_PORT, directly or by a group, and do not match on the ingress
    /// port.
    pub fn unsure_backs(&mut self, switch: u64) -> Vec<String> {
        if self.version(switch) == Version::V1_0 {
            return Vec::new();
        }
        let mut groups = BTreeMap::<u32, (bool, BTreeSet<u32>)>::new();
        for message in self.ask_switch(switch, "stats group_desc") {
            let reply = MultipartReply::parse(&message[8..]).unwrap();
            let MultipartReplyBody::GroupDesc(all) = reply.body else { continue };
            for group in all {
                let said = groups.entry(group.group_id).or_default();
                group.buckets.iter().for_each(|bucket| note(bucket.actions, said));
            }
        }
        let mut unsure = Vec::new();
        for message in self.ask_switch(switch, "stats flow") {
            let reply = MultipartReply::parse(&message[8..]).unwrap();
            let MultipartReplyBody::Flow(all) = reply.body else { continue };
            for flow in all.iter().filter(|it| it.match_.get(OxmField::IN_PORT).is_none()) {
                let mut said = (false, BTreeSet::new());
                for instruction in flow.instructions {
                    if let Instruction::ApplyActions(list) | Instruction::WriteActions(list) =
                        instruction
                    {
                        note(list, &mut said);
                    }
                }
                let (mut is_back, mut open) = said;
                let mut seen = BTreeSet::new();
                while let Some(group) = open.pop_first() {
                    let named = groups.get(&group).filter(|_| seen.insert(group));
                    is_back |= named.is_some_and(|it| it.0);
                    open.extend(named.into_iter().flat_map(|it| it.1.iter().copied()));
                }
                if is_back {
                    unsure.push(format!("{flow:?} of {}", describe(&message)));
                }
            }
        }
        unsure
    }

    fn ask_switch(&mut self, switch: u64, words: &str) -> Vec<Vec<u8>> {
        let at = SwitchIndex(switch as usize - 1);
        self.physical.handle_message(self.now, at, &request(Version::V1_3, 7, words));
        frames(&self.physical.take_output(at, SessionId::MAIN)).collect()
    }
}

/// Notes whether a list outputs to IN_PORT, and the groups that the list names.
fn note(list: List<'_, Action<'_>>, (is_back, groups): &mut (bool, BTreeSet<u32>)) {
    for action in list {
        match action {
            Action::Output { port: PortNo::IN_PORT, .. } => *is_back = true,
            Action::Group(group) => drop(groups.insert(group)),
            _ => {}
        }
    }
}
