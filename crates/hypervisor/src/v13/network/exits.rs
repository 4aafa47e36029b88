//! *Exits*, by which some [buckets](super::buckets) send: groups of Weir's own, whose buckets send as the tenant's OUTPUT says, in
//! place of that.
//!
//! ```text
//!   the tenant's bucket        instead         the exit, of type INDIRECT or, for FLOOD and ALL, ALL
//!   VLAN 7, output:10          GROUP 7         tag of 10, OUTPUT 5
//!   flood                      GROUP 9         one bucket for each port
//! ```
//! An exit is kept among the tenant's [groups](crate::v13::groups), under a number that tenants cannot use, and has copies,
//! is stored, and follows the network as they do. It is made when a group first needs it, and goes with its port or the network, or a while
//! after the last that [needs](super::unused) it; the tenant is never told of it. If the switch refuses it, the groups that need it
//! are taken back, and each is refused.

use super::buckets::outputs_by_exits;
use crate::ids::TenantIndex;
use crate::network::{Network, is_entry};
use crate::store::Kind;
use crate::switch::{Cause, NumberBefore, Request, Switch};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use fabric::embedding::VirtualPort;
use openflow::error::v13 as code;
use openflow::v13::{
    Action, Bucket, GROUP_ALL, GROUP_ANY, GROUP_MAX, GroupMod, GroupModCommand, GroupType, PortNo,
};
use openflow::{ErrorCode, Header, List, ListBuf};

/// The port of an output in whose place an exit stands.
pub(crate) type Output = PortNo;

/// Whether an output stands for several ports.
pub(crate) fn is_for_several(port: PortNo) -> bool {
    matches!(port, PortNo::FLOOD | PortNo::ALL)
}

/// The ports by which an output may send. 1.3 has no bit that tells FLOOD and ALL apart.
pub(crate) fn ports_of(network: &Network, port: PortNo) -> impl Iterator<Item = u32> {
    let numbers = match port {
        port if port == PortNo::IN_PORT || is_for_several(port) => 0..=u32::MAX,
        PortNo(number) => number..=number,
    };
    let is_meant = move |it: &VirtualPort| match port {
        PortNo::IN_PORT => is_entry(it),
        _ => true,
    };
    network.ports.range(numbers).filter(move |(_, it)| is_meant(it)).map(|(&number, _)| number)
}

/// Whether it depends on the destination what becomes of packets.
pub(crate) fn needs_destination(network: &Network, port: PortNo) -> bool {
    ports_of(network, port).any(|number| network.is_shared_edge(number))
}

/// Whether packets leave by an action of a set.
pub(super) fn sends(action: &Action<'_>) -> bool {
    matches!(action, Action::Output { .. } | Action::Group(_))
}

/// The action of a set by which packets leave: the last group or, if there is none, the last output.
pub(crate) fn sent_by<'a>(written: List<'a, Action<'a>>) -> Option<Action<'a>> {
    let mut sent = None;
    for action in written {
        match (action, sent) {
            (Action::Group(_), _) => sent = Some(action),
            (Action::Output { .. }, None | Some(Action::Output { .. })) => sent = Some(action),
            _ => {}
        }
    }
    sent
}

/// Whether a number is one that tenants cannot use.
pub(crate) fn is_exit(number: u32) -> bool {
    number > GROUP_MAX
}

/// The buckets of an exit as a tenant would have written them; `None` if they are as it is described.
pub(crate) fn buckets(network: &Network, group: &GroupMod<'_>) -> Option<ListBuf<Bucket<'static>>> {
    let output = group.buckets.iter().next().and_then(|bucket| sent_by(bucket.actions));
    let Some(Action::Output { port, .. }) = output.filter(|_| is_exit(group.group_id)) else {
        return None;
    };
    if !is_for_several(port) {
        return None;
    }
    let mut buckets = ListBuf::<Bucket<'static>>::new();
    for number in ports_of(network, port) {
        let actions = ListBuf::from([Action::Output { port: PortNo(number), max_len: 0 }]);
        buckets.push(Bucket { actions: actions.as_list(), ..Bucket::default() });
    }
    Some(buckets)
}

impl Switch {
    /// A group is about to come: there are the exits that its buckets need, whose numbers are given.
    pub(crate) fn ready_exits_of_group(
        &mut self,
        request: &Request<'_>,
        group: &GroupMod<'_>,
    ) -> Result<Vec<u32>, ErrorCode> {
        let network = self.tenants[request.tenant.0 as usize].network.as_deref();
        let outputs = network.map(|network| outputs_by_exits(network, group)).unwrap_or_default();
        outputs.iter().map(|output| self.ready(request, *output, &outputs)).collect()
    }

    /// There is an exit for one of the outputs that are wanted.
    fn ready(
        &mut self,
        request: &Request<'_>,
        output: Output,
        wanted: &BTreeSet<Output>,
    ) -> Result<u32, ErrorCode> {
        let tenant = request.tenant;
        if let Some(known) = self.numbers(tenant, Kind::Group).exit(output) {
            return Ok(known);
        }
        let (change, messages) = match self.make_exit(tenant, output) {
            Err(code::GROUP_MOD_FAILED_OUT_OF_GROUPS) => {
                self.collect_exits(tenant, wanted, request.now);
                self.make_exit(tenant, output)?
            }
            made => made?,
        };
        let cause = Cause { direct: false, ..Cause::own(tenant, request.now) };
        let cause = self.begin_unasked(&cause);
        let number = change.number;
        if let Some(operation) = cause.operation {
            self.remember_numbers(operation, Vec::from([change]));
        }
        messages.iter().for_each(|message| self.submit_change(&cause, message));
        Ok(number)
    }

    /// The exits that a group's buckets send to, as far as they are there.
    pub(crate) fn exits_of(&self, tenant: TenantIndex, group: &GroupMod<'_>) -> Vec<u32> {
        let network = self.tenants[tenant.0 as usize].network.as_deref();
        let outputs = network.map(|network| outputs_by_exits(network, group)).unwrap_or_default();
        let groups = self.numbers(tenant, Kind::Group);
        outputs.into_iter().filter_map(|output| groups.exit(output)).collect()
    }

    /// The exits that groups need and that are not there: the messages that make them.
    pub(crate) fn missing_exits_of_groups(&mut self, tenant: TenantIndex) -> Vec<(u32, Vec<u8>)> {
        let mut outputs = BTreeSet::new();
        if let Some(network) = self.tenants[tenant.0 as usize].network.as_deref() {
            for (_, known) in self.numbers(tenant, Kind::Group).iter() {
                let group = GroupMod::parse(&known.body);
                outputs.extend(
                    group.map(|group| outputs_by_exits(network, &group)).unwrap_or_default(),
                );
            }
        }
        self.make_missing(tenant, outputs)
    }

    fn make_missing(
        &mut self,
        tenant: TenantIndex,
        outputs: BTreeSet<Output>,
    ) -> Vec<(u32, Vec<u8>)> {
        let state = &self.tenants[tenant.0 as usize];
        let mut messages = Vec::new();
        if !state.present || state.network.is_none() {
            return messages;
        }
        for output in outputs {
            // A group without its exit is given up.
            if self.numbers(tenant, Kind::Group).exit(output).is_none()
                && let Ok((exit, made)) = self.make_exit(tenant, output)
            {
                messages.extend(made.into_iter().map(|message| (exit.number, message)));
            }
        }
        messages
    }

    fn make_exit(
        &mut self,
        tenant: TenantIndex,
        output: Output,
    ) -> Result<(NumberBefore, Vec<Vec<u8>>), ErrorCode> {
        let known = self.numbers(tenant, Kind::Group);
        let number = numbers().find(|number| known.any(*number).is_none());
        let number = number.ok_or(code::GROUP_MOD_FAILED_OUT_OF_GROUPS)?;
        self.make_group(tenant, number, body(output))
    }
}

/// The numbers of exits.
fn numbers() -> impl Iterator<Item = u32> {
    GROUP_MAX + 1..GROUP_ALL
}

/// The output in whose place an exit stands that is described so.
pub(crate) fn output_of(body: &[u8]) -> Option<Output> {
    let group = GroupMod::parse(body).ok()?;
    match group.buckets.iter().next()?.actions.iter().next()? {
        Action::Output { port, .. } => Some(port),
        _ => None,
    }
}

/// An exit, as a tenant would have described it; for FLOOD and ALL the [buckets] depend on the network.
fn body(port: Output) -> Box<[u8]> {
    let actions = ListBuf::from([Action::Output { port, max_len: 0 }]);
    let mut buckets = ListBuf::<Bucket<'static>>::new();
    buckets.push(Bucket { actions: actions.as_list(), ..Bucket::default() });
    let type_ = if is_for_several(port) { GroupType::ALL } else { GroupType::INDIRECT };
    let command = GroupModCommand::ADD;
    let mut message = Vec::new();
    // It fits: it is one bucket with one action.
    let _ = GroupMod { command, type_, group_id: GROUP_ANY, buckets: buckets.as_list() }
        .write_message(0, &mut message);
    message.get(Header::LEN..).unwrap_or_default().into()
}
